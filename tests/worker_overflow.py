"""One rank of a float16 training whose loss scale is far too high on the first step; prints what happened to the weights."""

import hashlib
import sys

sys.path.insert(0, sys.argv[1])

from utils import setup  # noqa: E402
from utils.cmd_util import parse_args  # noqa: E402

config = parse_args(sys.argv[2:])
runtime = setup.initialise(config)

import tensorflow as tf  # noqa: E402

import run  # noqa: E402
from utils import data_loader  # noqa: E402
from utils.session import open_session  # noqa: E402

session = open_session(config, runtime)
session.optimizer.dynamic_scale.assign(2.0**60)
step = run.make_train_step(session)


def digest():
    return hashlib.sha256(b"".join(v.numpy().tobytes() for v in session.model.trainable_variables)).hexdigest()[:12]


for images, labels in data_loader.training_batches(session, 0, 2):
    before = digest()
    scalars = dict(zip(run.TRAIN_SCALARS, step(images, labels, tf.constant(0.0)).numpy().tolist()))
    finite = run.check_finite(scalars, 1, loss_scaled=True)
    scale = float(session.optimizer.dynamic_scale.numpy())
    print(f"RESULT {'applied' if finite else 'skipped'} {before != digest()} {digest()} {scale}", flush=True)
    session.optimizer.dynamic_scale.assign(1.0)
