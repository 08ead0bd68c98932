import numpy as np
import pytest
import tensorflow as tf

from utils.losses import cross_entropy, soft_dice


def one_pixel(*scores):
    return tf.constant([[[list(scores)]]], tf.float32)


FIRST = one_pixel(1, 0)


@pytest.mark.parametrize("scores, expected", [((10, -10), 2.0611537e-9), ((0, 0), 0.693147), ((-10, 10), 20.0)])
def test_cross_entropy_by_hand(scores, expected):
    np.testing.assert_allclose(cross_entropy(one_pixel(*scores), FIRST), [expected], atol=1e-6)


def test_dice_by_hand():
    """Two pixels, p = (0.8, 0.4) for class 0 where g = (1, 0): 2·0.8 / (0.8 + 1) and 2·0.6 / (0.4 + 1)."""
    p = np.array([[0.8, 0.2], [0.4, 0.6]], np.float32)
    g = tf.constant([[[[1, 0], [0, 1]]]], tf.float32)
    expected = (1.6 / (0.64 + 0.16 + 1) + 1.2 / (0.04 + 0.36 + 1)) / 2
    np.testing.assert_allclose(soft_dice(tf.math.log(p)[None, None], g), [expected], rtol=1e-5)


@pytest.mark.parametrize("interior, expected", [(0.78, 0.6185), (0.5, 0.6127)])
def test_dice_of_constant_predictions_at_the_stack_s_balance(interior, expected):
    """With 78 % interior: the constant prior scores 0.6185, the uniform prediction 0.6127."""
    truth = np.zeros((1, 100, 100), int)
    truth[0].flat[:7800] = 1
    logits = np.broadcast_to(np.log([1 - interior, interior]), (1, 100, 100, 2))
    np.testing.assert_allclose(soft_dice(logits, np.eye(2)[truth]), [expected], atol=5e-5)


def test_dice_of_the_all_interior_prediction():
    truth = np.zeros((1, 100, 100), int)
    truth[0].flat[:7800] = 1
    logits = np.broadcast_to([-50.0, 50.0], (1, 100, 100, 2))
    np.testing.assert_allclose(soft_dice(logits, np.eye(2)[truth]), [0.4382], atol=5e-5)


def test_perfect_prediction():
    labels = tf.one_hot(np.random.default_rng(0).integers(0, 2, (3, 8, 8)), 2)
    np.testing.assert_allclose(soft_dice(100 * labels, labels), 1, atol=1e-6)
    np.testing.assert_allclose(cross_entropy(100 * labels, labels), 0, atol=1e-6)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32])
def test_large_images_do_not_overflow_in_half_precision(dtype):
    labels = tf.one_hot(tf.zeros((1, 512, 512), tf.int32), 2)
    logits = tf.cast(50 * labels, dtype)
    np.testing.assert_allclose(soft_dice(logits, tf.cast(labels, dtype)), 1, atol=1e-3)
    assert np.isfinite(cross_entropy(logits, tf.cast(labels, dtype))).all()


def test_gradients_are_finite_at_the_extremes():
    labels = tf.one_hot([[[0, 1], [1, 1]]], 2)
    for sign in (1, -1):
        logits = tf.Variable(sign * 1000.0 * (2 * labels - 1))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(cross_entropy(logits, labels)) + 1 - tf.reduce_mean(soft_dice(logits, labels))
        assert np.isfinite(loss)
        assert np.isfinite(tape.gradient(loss, logits)).all()
