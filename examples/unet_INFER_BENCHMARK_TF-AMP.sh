#!/usr/bin/env bash
# unet_INFER_BENCHMARK.sh in mixed precision.
# usage: unet_INFER_BENCHMARK_TF-AMP.sh <data> <results> <batch> [flags of main.py]
set -euo pipefail
exec bash "$(dirname "$0")/unet_INFER_BENCHMARK.sh" "${@:1:3}" --amp "${@:4}"
