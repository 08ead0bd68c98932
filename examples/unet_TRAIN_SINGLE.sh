#!/usr/bin/env bash
# Trains U-Net on four fifths of the ISBI 2012 stack (fold 0 held out) for 6,400 steps, shared by the ranks, and scores it on the rest.
# usage: unet_TRAIN_SINGLE.sh <gpus> <data> <results> <batch> [flags of main.py]
set -euo pipefail
[ $# -ge 4 ] || { echo "usage: $(basename "$0") <gpus> <data> <results> <batch> [flags of main.py]" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
gpus=$1 data=$2 results=$3 batch=$4
shift 4
horovodrun -np "$gpus" python "$root/main.py" --data_dir "$data" --model_dir "$results" --log_dir "$results/logs" \
  --batch_size "$batch" --exec_mode train_and_evaluate --fold 0 --augment --max_steps 6400 "$@"
