#!/usr/bin/env bash
# Segments <data>/test-volume.tif with the newest checkpoint in <results>; writes <results>/predictions.
# usage: unet_INFER.sh <data> <results> <batch> [flags of main.py]
set -euo pipefail
[ $# -ge 3 ] || { echo "usage: $(basename "$0") <data> <results> <batch> [flags of main.py]" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
data=$1 results=$2 batch=$3
shift 3
horovodrun -np 1 python "$root/main.py" --data_dir "$data" --model_dir "$results" --batch_size "$batch" --exec_mode predict "$@"
