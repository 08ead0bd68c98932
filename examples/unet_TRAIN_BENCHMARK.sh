#!/usr/bin/env bash
# Training throughput and latency: 200 warm-up and 800 measured steps on every rank; writes <results>/train_benchmark.json, no checkpoint.
# usage: unet_TRAIN_BENCHMARK.sh <gpus> <data> <results> <batch> [flags of main.py]
set -euo pipefail
[ $# -ge 4 ] || { echo "usage: $(basename "$0") <gpus> <data> <results> <batch> [flags of main.py]" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
gpus=$1 data=$2 results=$3 batch=$4
shift 4
horovodrun -np "$gpus" python "$root/main.py" --data_dir "$data" --model_dir "$results" --log_dir "$results" --batch_size "$batch" \
  --exec_mode train --benchmark --augment --warmup_steps 200 --max_steps "$((1000 * gpus))" "$@"
