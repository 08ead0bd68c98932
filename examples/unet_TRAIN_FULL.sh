#!/usr/bin/env bash
# Five-fold cross-validation of U-Net on the ISBI 2012 stack: 6,400 images a fold (max_steps, shared by the ranks), augmented.
# One fold in its own folder <results>/fold<k>; logs in <results>/logs; ends with a table of the scores, their mean and deviation.
# usage: unet_TRAIN_FULL.sh <gpus> <data> <results> <batch> [flags of main.py]
set -euo pipefail
[ $# -ge 4 ] || { echo "usage: $(basename "$0") <gpus> <data> <results> <batch> [flags of main.py]" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
gpus=$1 data=$2 results=$3 batch=$4
shift 4
for fold in 0 1 2 3 4; do
  horovodrun -np "$gpus" python "$root/main.py" --data_dir "$data" --model_dir "$results/fold$fold" --log_dir "$results/logs" \
    --batch_size "$batch" --exec_mode train_and_evaluate --fold "$fold" --augment --max_steps 6400 "$@"
done
python "$root/utils/parse_results.py" --model_dir "$results/logs" --exec_mode convergence
