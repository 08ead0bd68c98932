import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from utils import data_loader
from utils.data_io import Volume
from utils.data_loader import (
    Frame,
    bit_depth,
    draw,
    no_draw,
    prediction_bits,
    resample,
    sample_order,
    share,
    split,
    to_size,
    view_image,
    view_labels,
)
from utils.errors import DataError

FRAME = Frame((60, 52), (40, 32))


@pytest.mark.parametrize("n", [5, 6, 30, 31])
def test_folds_are_disjoint_and_complete(n):
    held_out = [split(n, fold)[1].tolist() for fold in range(5)]
    assert sorted(sum(held_out, [])) == list(range(n))
    for fold in range(5):
        training, validation = split(n, fold)
        assert sorted([*training, *validation]) == list(range(n))
        assert n // 5 <= len(validation) <= n // 5 + 1


def test_no_fold_trains_on_all_and_too_few_slices_are_refused():
    assert split(3, None)[0].tolist() == [0, 1, 2]
    with pytest.raises(DataError, match="3 slices cannot make 5 folds"):
        split(3, 0)


@pytest.mark.parametrize(
    "top, dtype, bits", [(255, np.uint8, 8), (3, np.uint8, 8), (4095, np.uint16, 12), (65535, np.uint16, 16), (255, np.uint16, 8)]
)
def test_bit_depth(top, dtype, bits):
    assert bit_depth(Volume(np.array([[[0, top]]], dtype), "x")) == bits


@pytest.mark.parametrize(
    "dtype, top, bits, trained_on, expected",
    [
        (np.uint16, 900, 12, "uint16", 12),
        (np.uint16, 5000, 12, "uint16", 12),
        (np.uint8, 255, 12, "uint16", 8),
        (np.uint16, 60000, 8, "uint8", 16),
        (np.uint8, 40, 8, "uint8", 8),
    ],
)
def test_prediction_scales_as_training_did_where_the_type_is_the_same(dtype, top, bits, trained_on, expected):
    assert prediction_bits(Volume(np.array([[[0, top]]], dtype), "x"), bits, trained_on) == expected


def test_order_visits_every_slice_once_an_epoch_and_is_a_function_of_position():
    numbers = np.array([3, 5, 8, 9])
    order = sample_order(numbers, seed=1, start=0, stop=40)
    assert all(sorted(epoch) == numbers.tolist() for epoch in order.reshape(10, 4))
    assert len({tuple(epoch) for epoch in order.reshape(10, 4)}) > 1
    for start, stop in ((0, 7), (3, 4), (4, 8), (17, 40), (9, 9)):
        assert np.array_equal(sample_order(numbers, 1, start, stop), order[start:stop])
    assert not np.array_equal(sample_order(numbers, 2, 0, 40), order)


@pytest.mark.parametrize("n, batch, size", [(6, 1, 1), (6, 4, 1), (5, 2, 2), (2, 1, 3), (7, 3, 2), (1, 8, 2)])
def test_shares_cover_every_number_once_with_equal_batches(n, batch, size):
    parts = [share(np.arange(n), batch, rank, size) for rank in range(size)]
    assert len({len(numbers) for numbers, _ in parts}) == 1
    assert all(len(numbers) % batch == 0 for numbers, _ in parts)
    counted = np.concatenate([numbers[weights == 1] for numbers, weights in parts])
    assert sorted(counted) == list(range(n))


def test_resizing_keeps_constants_ramps_and_identity(rng):
    image = tf.constant(rng.random((12, 17), np.float32))
    np.testing.assert_allclose(to_size(image, 12, 17), image, atol=1e-6)
    np.testing.assert_allclose(to_size(tf.ones((12, 17)), 40, 5), 1.0, atol=1e-6)
    ramp = tf.tile(tf.range(10.0)[:, None], (1, 4))
    np.testing.assert_allclose(to_size(ramp, 20, 4)[1:-1, 0], (np.arange(20) + 0.5)[1:-1] / 2 - 0.5, atol=1e-5)


@pytest.mark.parametrize("height, width", [(20, 31), (9, 40), (33, 17)])
def test_resizing_agrees_with_tensorflow_inside(rng, height, width):
    image = tf.constant(rng.random((16, 24), np.float32))
    expected = tf.image.resize(image[..., None], (height, width), antialias=True)[..., 0].numpy()
    np.testing.assert_allclose(to_size(image, height, width).numpy()[4:-4, 4:-4], expected[4:-4, 4:-4], atol=2e-3)


def test_outside_is_mirrored():
    image = tf.constant([[1.0, 2.0, 3.0]])
    rows, columns = tf.constant([0.0]), tf.constant([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    np.testing.assert_allclose(resample(image, tf.stack([rows[0], rows[0]]), columns)[0], [3, 2, 1, 1, 2, 3, 3, 2, 1, 1], atol=1e-5)


def test_view_is_the_slice_with_mirrored_surroundings(rng):
    image = rng.integers(0, 256, (40, 32), np.uint8)
    view = view_image(tf.constant(image), FRAME, no_draw(), bits=8).numpy()[..., 0]
    expected = np.pad(image / 127.5 - 1, 10, mode="symmetric")
    np.testing.assert_allclose(view, expected, atol=1e-5)
    labels = (image > 99).astype(np.uint8)
    one_hot = view_labels(tf.constant(labels), FRAME, no_draw(), 2).numpy()
    assert np.array_equal(one_hot, np.eye(2)[labels])


@pytest.mark.parametrize("shape", [(64, 64), (300, 420), (101, 101), (3, 500)])
def test_any_slice_size_gives_the_network_its_size(rng, shape):
    image = rng.integers(0, 256, shape, np.uint8)
    view = view_image(tf.constant(image), FRAME, draw(0, tf.constant(5, tf.int64)), bits=8)
    assert view.shape == (60, 52, 1)
    assert view_labels(tf.constant(image // 128), FRAME, draw(0, tf.constant(5, tf.int64)), 2).shape == (40, 32, 2)


def test_bit_depths_of_one_picture_give_one_view(rng):
    image = rng.integers(0, 256, (40, 32), np.uint8)
    views = [
        view_image(tf.constant(image), FRAME, no_draw(), 8),
        view_image(tf.constant(image.astype(np.uint16) * 257), FRAME, no_draw(), 16),
    ]
    np.testing.assert_allclose(*views, atol=1e-5)


def test_augmentation_moves_image_and_labels_together(rng):
    coarse = np.kron(rng.integers(0, 2, (5, 4), np.uint8), np.ones((16, 16), np.uint8))
    same, flips = [], set()
    for number in range(60):
        drawn = draw(3, tf.constant(number, tf.int64))
        flips.add(tuple(np.sign(drawn["window"][1] - drawn["window"][0])))
        image = view_image(tf.constant(coarse * 255), FRAME, {**drawn, "brightness": tf.constant(0.0)}, 8)[10:-10, 10:-10, 0]
        labels = view_labels(tf.constant(coarse), FRAME, drawn, 2)[..., 1]
        certain = np.abs(image) > 0.5  # away from the blurred borders
        same.append(np.mean((image.numpy() > 0)[certain] == (labels.numpy() > 0.5)[certain]))
    assert min(same) == 1.0
    assert len(flips) == 4


def test_draws_are_seeded_and_within_their_ranges():
    draws = [draw(0, tf.constant(n, tf.int64)) for n in range(200)]
    windows = np.sort(np.stack([d["window"] for d in draws]), axis=1)
    brightness = np.array([d["brightness"] for d in draws])
    assert windows[:, 0].min() >= 0 and windows[:, 0].max() <= 0.3 and windows[:, 0].max() > 0.25
    assert windows[:, 1].min() >= 0.7 and windows[:, 1].max() <= 1
    assert np.abs(brightness).max() <= 0.2 and brightness.min() < -0.15 and brightness.max() > 0.15
    again, other = draw(0, tf.constant(7, tf.int64)), draw(1, tf.constant(7, tf.int64))
    assert np.array_equal(again["window"], draws[7]["window"])
    assert not np.array_equal(other["window"], draws[7]["window"])


def test_intensities_stay_in_range_under_augmentation():
    image = tf.constant(np.tile(np.array([0, 255], np.uint8), (40, 16)))
    for number in range(20):
        view = view_image(image, FRAME, draw(0, tf.constant(number, tf.int64)), 8).numpy()
        assert view.min() >= -1 and view.max() <= 1


@dataclasses.dataclass
class Rank:
    rank: int
    size: int


@dataclasses.dataclass
class Stub:
    """What the pipelines read of a session."""

    config: object
    runtime: Rank
    data: object
    frame: Frame
    last_step: int = 4


def stub(rng, batch_size, rank, size, augment=True, pages=7):
    from utils.cmd_util import Config
    from utils.session import Data

    volume = Volume(rng.integers(0, 256, (pages, 40, 32), np.uint8), "v")
    labels = Volume((volume.array > 99).astype(np.uint8), "l")
    data = Data(volume, labels, volume, *split(pages, 0), 8, "uint8", 8)
    return Stub(Config("d", batch_size=batch_size, augment=augment), Rank(rank, size), data, FRAME)


def test_training_batches_do_not_depend_on_the_number_of_ranks():
    one = list(data_loader.training_batches(stub(np.random.default_rng(0), 4, 0, 1), 0, 3))
    two = [list(data_loader.training_batches(stub(np.random.default_rng(0), 2, rank, 2), 0, 3)) for rank in (0, 1)]
    for step in range(3):
        for part in (0, 1):
            joined = np.concatenate([two[rank][step][part] for rank in (0, 1)])
            np.testing.assert_array_equal(joined, one[step][part])
    assert not np.array_equal(two[0][0][0], two[1][0][0])


def test_training_batches_go_on_where_they_stopped():
    whole = list(data_loader.training_batches(stub(np.random.default_rng(0), 2, 0, 1), 0, 6))
    rest = list(data_loader.training_batches(stub(np.random.default_rng(0), 2, 0, 1), 4, 6))
    np.testing.assert_array_equal(rest[0][0], whole[4][0])
    np.testing.assert_array_equal(rest[1][1], whole[5][1])


def test_prediction_batches_number_their_slices(rng):
    session = stub(rng, 2, 1, 2)
    numbers = np.concatenate([number for _, number in data_loader.prediction_batches(session)])
    assert sorted(numbers) == [-1, 1, 3, 5]
