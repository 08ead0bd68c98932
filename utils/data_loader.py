"""Folds, sampling order, geometry, augmentation and tf.data pipelines from NumPy arrays.

Everything random is a pure function of the seed and a sample's number in the run, so the data of a step depend neither on the number of
ranks nor on interruptions: sample number n is image `order[n]` with the draws of (seed, n).
"""

from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from utils.cmd_util import N_FOLDS
from utils.data_io import Volume
from utils.errors import DataError

MAX_CROP = 0.3  # largest part of an axis that a crop removes at each end
MAX_BRIGHTNESS = 0.2  # largest brightness shift, of an intensity range of 2


def split(n: int, fold: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Slice numbers for training and validation: fold k holds out the slices k, k + 5, k + 10, …; no fold holds out none.

    Every slice is in exactly one fold, and every fold spans the stack. Raises DataError for fewer slices than folds.
    """
    numbers = np.arange(n)
    if fold is None:
        return numbers, numbers[:0]
    if n < N_FOLDS:
        raise DataError(f"{n} slices cannot make {N_FOLDS} folds: give at least {N_FOLDS}, or train without --fold")
    held_out = numbers % N_FOLDS == fold
    return numbers[~held_out], numbers[held_out]


def bit_depth(volume: Volume) -> int:
    """Bits of the intensity range: 8 for 8-bit files; for 16-bit files the fewest that hold their maximum, at least 8 (12-bit cameras)."""
    return max(8, int(volume.array.max()).bit_length())


def prediction_bits(volume: Volume, bits: int, dtype: str) -> int:
    """Bits to scale a volume by for a network that was trained on `bits` of a file of type `dtype`: the same for a file of that type."""
    return bits if volume.array.dtype == dtype else bit_depth(volume)


def sample_order(numbers: np.ndarray, seed: int, start: int, stop: int) -> np.ndarray:
    """The slices of samples start … stop − 1: one fresh permutation of `numbers` an epoch, each a function of (seed, epoch) alone."""
    n = len(numbers)
    epochs = range(start // n, -(-stop // n))
    order = np.concatenate([np.random.default_rng([seed, epoch]).permutation(numbers) for epoch in epochs] or [numbers[:0]])
    return order[start - n * (start // n) :][: stop - start]


@dataclass(frozen=True)
class Frame:
    """A network's field of view: height and width of its input and of its output, in pixels; the output is the input's centre."""

    input: tuple[int, int]
    output: tuple[int, int]


def _grid(pixels: int, begin: tf.Tensor, end: tf.Tensor, length: int, border: int) -> tf.Tensor:
    """Source coordinates of `pixels` target pixels that span the part begin … end of an axis of `length` pixels, half-pixel centres,
    with `border` more on both sides."""
    position = (tf.range(-border, pixels + border, dtype=tf.float32) + 0.5) / pixels
    return (begin + position * (end - begin)) * length - 0.5


def _mirror(coordinates: tf.Tensor, length: int) -> tf.Tensor:
    """Coordinates folded back into an axis of `length` pixels, its edges being mirrors."""
    folded = tf.math.floormod(coordinates + 0.5, 2.0 * length)
    return tf.minimum(folded, 2.0 * length - folded) - 0.5


def _weights(coordinates: tf.Tensor, length: int) -> tf.Tensor:
    """Bilinear interpolation as a matrix, target × source; where pixels are merged its triangle widens with the step (no aliasing)."""
    step = tf.maximum(1.0, tf.abs(coordinates[-1] - coordinates[0]) / tf.cast(tf.size(coordinates) - 1, tf.float32))
    distance = tf.abs(_mirror(coordinates, length)[:, None] - tf.range(length, dtype=tf.float32))
    weights = tf.maximum(0.0, 1.0 - distance / step)
    return weights / tf.reduce_sum(weights, axis=1, keepdims=True)


def _nearest(coordinates: tf.Tensor, length: int) -> tf.Tensor:
    return tf.clip_by_value(tf.cast(tf.round(_mirror(coordinates, length)), tf.int32), 0, length - 1)


def resample(image: tf.Tensor, rows: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
    """A float image, height × width, at the crossings of source coordinates `rows` and `columns`, mirrored outside."""
    height, width = image.shape
    return _weights(rows, height) @ image @ tf.transpose(_weights(columns, width))


def to_size(image: tf.Tensor, height: int, width: int) -> tf.Tensor:
    """A float image, height' × width', resized to height × width."""
    rows, columns = (_grid(size, 0.0, 1.0, length, 0) for size, length in zip((height, width), image.shape))
    return resample(image, rows, columns)


def draw(seed: int, number: tf.Tensor) -> dict[str, tf.Tensor]:
    """The random part of augmentation for one sample: the window begin … end on both axes (flipped when begin > end), the brightness."""
    uniform = tf.random.stateless_uniform([7], seed=tf.stack([tf.constant(seed, tf.int64), number]))
    edges = tf.reshape(uniform[:4] * MAX_CROP, (2, 2))
    begin, end = edges[:, 0], 1.0 - edges[:, 1]
    flip = uniform[4:6] > 0.5
    window = tf.stack([tf.where(flip, end, begin), tf.where(flip, begin, end)])
    return {"window": window, "brightness": (2 * uniform[6] - 1) * MAX_BRIGHTNESS}


def no_draw() -> dict[str, tf.Tensor]:
    """The whole slice, as it is."""
    return {"window": tf.constant([[0.0, 0.0], [1.0, 1.0]]), "brightness": tf.constant(0.0)}


def view_image(image: tf.Tensor, frame: Frame, drawn: dict, bits: int) -> tf.Tensor:
    """One slice as the network sees it: its window at the output's size, with real or mirrored surroundings up to the input's size.

    image: height × width, integers of `bits` bits. Returns height × width × 1, float32 in [-1, 1].
    """
    image = tf.cast(image, tf.float32) * (2.0 / (2**bits - 1)) - 1.0
    grids = _grids(image.shape, frame, drawn, border=True)
    return tf.clip_by_value(resample(image, *grids) + drawn["brightness"], -1.0, 1.0)[..., None]


def view_labels(labels: tf.Tensor, frame: Frame, drawn: dict, n_classes: int) -> tf.Tensor:
    """The labels of the same window by nearest neighbour: height × width integers → height' × width' × class, one-hot float32."""
    rows, columns = _grids(labels.shape, frame, drawn, border=False)
    height, width = labels.shape
    picked = tf.gather(tf.gather(labels, _nearest(rows, height)), _nearest(columns, width), axis=1)
    return tf.one_hot(tf.cast(picked, tf.int32), n_classes)


def _grids(shape, frame: Frame, drawn: dict, border: bool) -> list[tf.Tensor]:
    borders = [(i - o) // 2 if border else 0 for i, o in zip(frame.input, frame.output)]
    begin, end = drawn["window"][0], drawn["window"][1]
    return [_grid(frame.output[a], begin[a], end[a], shape[a], borders[a]) for a in (0, 1)]


def _batches(dataset: tf.data.Dataset, example, batch_size: int) -> tf.data.Dataset:
    dataset = dataset.map(example, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    return dataset.batch(batch_size, drop_remainder=True).prefetch(2)


def training_batches(session, start: int, stop: int) -> tf.data.Dataset:
    """Image and one-hot label batches of one rank for the steps start … stop − 1.

    Step s takes the samples s·B … (s + 1)·B − 1 of the run, B = batch_size × ranks, and gives each rank batch_size neighbouring ones.
    """
    config, data, runtime = session.config, session.data, session.runtime
    per_step = config.batch_size * runtime.size
    mine = np.arange(start * per_step, stop * per_step).reshape(-1, runtime.size, config.batch_size)[:, runtime.rank].ravel()
    order = sample_order(data.training, config.seed, start * per_step, stop * per_step)[mine - start * per_step]
    images, labels = tf.constant(data.volume.array), tf.constant(data.labels.array)

    def example(number, index):
        drawn = draw(config.seed, number) if config.augment else no_draw()
        image = view_image(tf.gather(images, index), session.frame, drawn, data.bits)
        return image, view_labels(tf.gather(labels, index), session.frame, drawn, n_classes=2)

    return _batches(tf.data.Dataset.from_tensor_slices((mine, order)), example, config.batch_size)


def share(numbers: np.ndarray, batch_size: int, rank: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """A rank's part of `numbers` in whole batches, equally many on every rank: the numbers, and 1 for each that counts, 0 for padding."""
    per_rank = -(-len(numbers) // (batch_size * size)) * batch_size
    padded = np.resize(numbers, per_rank * size).reshape(per_rank, size)[:, rank]
    counts = (np.arange(per_rank * size) < len(numbers)).reshape(per_rank, size)[:, rank]
    return padded, counts.astype(np.float32)


def evaluation_batches(session) -> tf.data.Dataset:
    """Image, one-hot label and weight batches of one rank: over all ranks every slice has weight 1 exactly once, padding has 0."""
    config, data, runtime = session.config, session.data, session.runtime
    images, labels = tf.constant(data.volume.array), tf.constant(data.labels.array)

    def example(index, weight):
        image = view_image(tf.gather(images, index), session.frame, no_draw(), data.bits)
        return image, view_labels(tf.gather(labels, index), session.frame, no_draw(), n_classes=2), weight

    shared = share(data.validation, config.batch_size, runtime.rank, runtime.size)
    return _batches(tf.data.Dataset.from_tensor_slices(shared), example, config.batch_size)


def prediction_batches(session) -> tf.data.Dataset:
    """Image batches of one rank with the slice number of each, −1 for padding; of a benchmark max_steps / ranks batches, over and over."""
    config, test, runtime = session.config, session.data.test, session.runtime
    images = tf.constant(test.array)
    index, weight = share(np.arange(len(test.array)), config.batch_size, runtime.rank, runtime.size)

    def example(index, number):
        return view_image(tf.gather(images, index), session.frame, no_draw(), session.data.test_bits), number

    dataset = tf.data.Dataset.from_tensor_slices((index, np.where(weight > 0, index, -1)))
    if config.benchmark:
        dataset = dataset.repeat().take(session.last_step * config.batch_size)
    return _batches(dataset, example, config.batch_size)


def to_slices(probabilities: np.ndarray, shape: tuple[int, int]) -> tf.Tensor:
    """Batch × height × width of the network's output back at the slices' own height and width."""
    return tf.stack([to_size(probability, *shape) for probability in tf.unstack(tf.constant(probabilities))])
