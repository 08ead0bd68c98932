"""train(), evaluate(), predict(): the loops over steps; formulas, files and figures live in utils/."""

import functools
import json
import math
import signal
import zlib

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from utils import checkpoint, data_loader, logger, losses, predictions, report
from utils.errors import Diverged, Stopped
from utils.session import Session
from utils.setup import StopSignal
from utils.timing import Timer

TRAIN_SCALARS = ("train_total_loss", "train_ce_loss", "train_dice_loss", "probability_deviation", "stop_votes", "gradient_norm")


def make_train_step(session: Session):
    """A function of images, one-hot labels and this rank's vote to stop (0 or 1) → TRAIN_SCALARS, equal on all ranks."""
    model, optimizer = session.model, session.optimizer
    variables = model.trainable_variables
    values = [variable.value for variable in variables]  # Horovod: TensorFlow's own variables behind those of Keras 3

    @tf.function(jit_compile=session.config.xla)
    def forward_backward(images, labels):
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            cross_entropy = tf.reduce_mean(losses.cross_entropy(logits, labels))
            dice_loss = 1 - tf.reduce_mean(losses.soft_dice(logits, labels))
            scaled = optimizer.scale_loss(cross_entropy + dice_loss)
        deviation = tf.math.reduce_std(tf.nn.softmax(logits)[..., 1])
        return tape.gradient(scaled, values), [cross_entropy + dice_loss, cross_entropy, dice_loss, deviation]

    @tf.function
    def train_step(images, labels, stop):
        gradients, scalars = forward_backward(images, labels)
        # Horovod: averaged one by one, each as soon as the backward pass has made it.
        gradients = [hvd.allreduce(gradient, name=f"gradient/{v.path}") for gradient, v in zip(gradients, variables)]
        scalars = hvd.allreduce(tf.stack([*scalars, stop]), name="scalars")
        norm = tf.linalg.global_norm(gradients) / optimizer.scale_loss(tf.constant(1.0))
        optimizer.apply(gradients, variables)
        return tf.concat([scalars, [norm]], axis=0)

    return train_step


def seed_dropout(session: Session) -> None:
    """Dropout as a function of seed, rank and step, so that a resumed run draws what an uninterrupted one would have drawn."""
    stream = zlib.crc32(f"{session.config.seed}/dropout/{session.runtime.rank}".encode())
    for layer in session.model.layers:
        if hasattr(layer, "seed_generator"):
            layer.seed_generator.state.assign(np.array([stream, session.start_step], np.uint32))


def check_finite(scalars: dict[str, float], step: int, loss_scaled: bool) -> bool:
    """False where loss scaling skips the step because its gradients overflowed. Raises Diverged for any other non-finite number."""
    if not math.isfinite(scalars["train_total_loss"]):
        raise Diverged(f"the loss became {scalars['train_total_loss']} at step {step}; the last checkpoint is from before")
    if not math.isfinite(scalars["gradient_norm"]) and not loss_scaled:
        raise Diverged(f"the gradient's norm became {scalars['gradient_norm']} at step {step}; the last checkpoint is from before")
    return math.isfinite(scalars["gradient_norm"])


def train(session: Session) -> None:
    """Train to max_steps / ranks steps; save, log and evaluate on the way. Raises Stopped or Diverged, on all ranks alike."""
    config, runtime, data = session.config, session.runtime, session.data
    last = session.last_step
    if session.start_step >= last:
        runtime.say(f"already complete: the checkpoint is of step {session.start_step}, --max_steps asks for {last} a rank")
        return
    runtime.say(
        f"training on {len(data.training)} slices, {data.bits}-bit range, steps {session.start_step + 1} to {last}, effective batch "
        f"{config.batch_size * runtime.size} ({runtime.size} ranks × {config.batch_size}), learning rate {config.learning_rate:g}"
    )
    begin(session)
    seed_dropout(session)
    train_step, timer, means, watch, skipped = make_train_step(session), Timer(), report.Means(), report.ConstantWatch(), 0
    loss_scaled = isinstance(session.optimizer, tf.keras.optimizers.LossScaleOptimizer)
    stop = StopSignal()
    steps = report.progress(range(session.start_step + 1, last + 1), runtime.first)
    for step, (images, labels) in zip(steps, timer.waiting(data_loader.training_batches(session, session.start_step, last))):
        with timer.measure("step"):
            vote = tf.constant(0.0 if stop.received is None else 1.0)
            scalars = dict(zip(TRAIN_SCALARS, train_step(images, labels, vote).numpy().tolist()))
        stopping = scalars.pop("stop_votes") > 0
        if check_finite(scalars, step, loss_scaled):
            means.add(scalars)
        else:
            skipped += 1
        if step % config.log_every == 0 or step == last:
            log_training(session, step, means, watch, skipped if loss_scaled else None)
        if step == last or stopping or (config.save_every and step % config.save_every == 0):
            save(session, step)
        if stopping and step < last:
            number = stop.received or signal.SIGTERM
            raise Stopped(f"stopped by signal {number} after step {step}; --resume_training goes on from there", number)
        if config.evaluate_every and step % config.evaluate_every == 0 and step < last:
            evaluate(session, step)
    stop.restore()
    report.report_timing(session, timer, "train", session.model.trainable_variables)


def log_training(session: Session, step: int, means: report.Means, watch: report.ConstantWatch, skipped: int | None) -> None:
    """Log the means since the last time, and the steps that loss scaling has skipped; warn of constant predictions."""
    if session.runtime.first and means.count:
        logged = means.take()
        logger.log(step, logged | ({} if skipped is None else {"skipped_steps": skipped}))
        watch.look(logged["probability_deviation"], step)


def begin(session: Session) -> None:
    """Keep settings, folds and versions in the folder, for people, and in the log; only now, when all is read and built, is it cleared."""
    with session.runtime.together():
        if session.runtime.first and not session.config.benchmark:
            if session.config.overwrite:
                session.folder.remove(session.folder.written())
            session.folder.write_text("run.json", json.dumps(session.meta(session.start_step), indent=1))
        if session.runtime.first:
            logger.log("PARAMETER", session.config.to_dict(), screen=False)


def save(session: Session, step: int) -> None:
    """Rank 0 writes a checkpoint; all wait for it. A benchmark writes none."""
    if session.config.benchmark:
        return
    with session.runtime.together():
        if session.runtime.first:
            checkpoint.save(session.folder, session.model, session.optimizer, session.meta(step))


@functools.cache
def make_evaluation_step(model: tf.keras.Model, xla: bool):
    """A function of images, one-hot labels and weights → the weighted sums of cross-entropy, Dice, deviation, and of the weights."""

    @tf.function(jit_compile=xla)
    def evaluation_step(images, labels, weights):
        logits = model(images, training=False)
        deviation = tf.math.reduce_std(tf.nn.softmax(logits)[..., 1], axis=(1, 2))
        rows = [losses.cross_entropy(logits, labels), losses.soft_dice(logits, labels), deviation, tf.ones_like(weights)]
        return tf.reduce_sum(tf.stack(rows) * weights, axis=1)

    return evaluation_step


def evaluate(session: Session, step: int | tuple = ()) -> dict[str, float]:
    """Scores over all validation slices, each once, at the network's output size; logged under eval_…, at `step` or as a summary."""
    runtime = session.runtime
    evaluation_step = make_evaluation_step(session.model, session.config.xla)
    sums = np.zeros(4)
    for batch in data_loader.evaluation_batches(session):
        sums += evaluation_step(*batch).numpy()
    sums = hvd.allreduce(tf.constant(sums), op=hvd.Sum, name="evaluation").numpy()  # Horovod: every rank has its share of the slices
    ce, dice, deviation = (sums[:3] / sums[3]).tolist()
    scores = {"eval_ce_loss": ce, "eval_dice_loss": 1 - dice, "eval_total_loss": ce + 1 - dice, "eval_dice_score": dice}
    if runtime.first:
        logger.log(step, scores | {"eval_slices": round(sums[3])})
        report.warn_if_constant(deviation, "evaluation")
    return scores


@functools.cache
def make_prediction_step(model: tf.keras.Model, xla: bool):
    """A function of images → the probability of the interior, batch × height × width, float32."""

    @tf.function(jit_compile=xla)
    def prediction_step(images):
        return tf.nn.softmax(model(images, training=False))[..., 1]

    return prediction_step


def predict(session: Session) -> None:
    """Probabilities of the test volume at its own size, the slices shared by all ranks, written by rank 0; or a benchmark thereof."""
    config, runtime, test = session.config, session.runtime, session.data.test.array
    prediction_step = make_prediction_step(session.model, config.xla)
    stack = np.zeros(test.shape if runtime.first and not config.benchmark else (0,), np.float32)
    timer = Timer()
    for images, numbers in timer.waiting(data_loader.prediction_batches(session)):
        with timer.measure("step"):
            probabilities = prediction_step(images).numpy()
        if not config.benchmark:
            fill(stack, data_loader.to_slices(probabilities, test.shape[1:]), numbers)
    report.report_timing(session, timer, "test", None)
    if not config.benchmark:
        write_predictions(session, stack)


def fill(stack: np.ndarray, slices: tf.Tensor, numbers: tf.Tensor) -> None:
    """Put every rank's slices into the first rank's stack by their numbers; those below 0 are padding."""
    numbers = hvd.allgather(numbers, name="slice_numbers").numpy()  # Horovod: all ranks have equally many batches
    slices = hvd.allgather(slices, name="slices").numpy()
    if len(stack):
        stack[numbers[numbers >= 0]] = slices[numbers >= 0]


def write_predictions(session: Session, stack: np.ndarray) -> None:
    """Rank 0 writes the files and tells what is in them; all wait for it."""
    with session.runtime.together():
        if session.runtime.first:
            paths = predictions.write(session.folder, session.data.test.array, stack)
            figures = report.describe_probabilities(stack)
            logger.log((), figures)
            report.warn_if_constant(figures["probability_deviation"], "prediction")
            print("\n".join(f"wrote {path}" for path in paths), flush=True)
