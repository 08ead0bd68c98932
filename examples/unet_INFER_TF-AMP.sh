#!/usr/bin/env bash
# unet_INFER.sh in mixed precision.
# usage: unet_INFER_TF-AMP.sh <data> <results> <batch> [flags of main.py]
set -euo pipefail
exec bash "$(dirname "$0")/unet_INFER.sh" "${@:1:3}" --amp "${@:4}"
