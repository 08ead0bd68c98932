#!/usr/bin/env bash
# unet_TRAIN_SINGLE.sh in mixed precision.
# usage: unet_TRAIN_SINGLE_TF-AMP.sh <gpus> <data> <results> <batch> [flags of main.py]
set -euo pipefail
exec bash "$(dirname "$0")/unet_TRAIN_SINGLE.sh" "${@:1:4}" --amp "${@:5}"
