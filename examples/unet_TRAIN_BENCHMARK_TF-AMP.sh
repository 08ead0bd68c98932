#!/usr/bin/env bash
# unet_TRAIN_BENCHMARK.sh in mixed precision.
# usage: unet_TRAIN_BENCHMARK_TF-AMP.sh <gpus> <data> <results> <batch> [flags of main.py]
set -euo pipefail
exec bash "$(dirname "$0")/unet_TRAIN_BENCHMARK.sh" "${@:1:4}" --amp "${@:5}"
