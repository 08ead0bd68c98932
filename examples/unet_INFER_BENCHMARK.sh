#!/usr/bin/env bash
# Prediction throughput and latency: 200 warm-up and 400 measured batches; writes <results>/predict_benchmark.json, no prediction.
# usage: unet_INFER_BENCHMARK.sh <data> <results> <batch> [flags of main.py]
set -euo pipefail
[ $# -ge 3 ] || { echo "usage: $(basename "$0") <data> <results> <batch> [flags of main.py]" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
data=$1 results=$2 batch=$3
shift 3
horovodrun -np 1 python "$root/main.py" --data_dir "$data" --model_dir "$results" --log_dir "$results" --batch_size "$batch" \
  --exec_mode predict --benchmark --warmup_steps 200 --max_steps 600 "$@"
