#!/usr/bin/env bash
# Trains a small U-Net on a synthetic EM stack with two ranks, scores it on a held-out fold, predicts the test stack and draws it.
# Expect, after about three minutes on two cores: eval_dice_score above 0.9 and a picture in which the membranes are found.
# usage: examples/demo.sh <folder>
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:?usage: examples/demo.sh <folder>}
python "$here/examples/synthetic_em.py" "$folder/data"
horovodrun -np 2 python "$here/main.py" --data_dir "$folder/data" --model_dir "$folder/run" --log_dir "$folder/log" --overwrite \
  --exec_mode train_and_evaluate --fold 0 --augment --amp --base_filters 16 --max_steps "${DEMO_STEPS:-600}" --learning_rate 5e-4 --log_every 50
horovodrun -np 2 python "$here/main.py" --data_dir "$folder/data" --model_dir "$folder/run" --exec_mode predict --amp
python "$here/examples/draw_demo.py" "$folder/data" "$folder/run" "$folder/demo.png"
