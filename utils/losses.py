"""Losses and the Dice score as pure functions of logits and one-hot labels; float32 arithmetic whatever comes in."""

import tensorflow as tf

SMOOTH = 1e-6


def cross_entropy(logits: tf.Tensor, one_hot: tf.Tensor) -> tf.Tensor:
    """Soft-max cross-entropy of each image, in nats, averaged over its pixels.

    logits, one_hot: batch × height × width × class. Returns batch.
    """
    logits, one_hot = tf.cast(logits, tf.float32), tf.cast(one_hot, tf.float32)
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=one_hot, logits=logits), axis=(1, 2))


def soft_dice(logits: tf.Tensor, one_hot: tf.Tensor) -> tf.Tensor:
    """Soft Dice of each image, averaged over all classes, background included; squared denominators, as NVIDIA's UNet_Medical scores.

    For class c: (2 Σ p g + 1e-6) / (Σ p² + Σ g² + 1e-6), sums over the pixels, p the soft-max of the logits.
    logits, one_hot: batch × height × width × class. Returns batch, each in [0, 1].
    """
    probabilities, one_hot = tf.nn.softmax(tf.cast(logits, tf.float32)), tf.cast(one_hot, tf.float32)
    overlap = tf.reduce_sum(probabilities * one_hot, axis=(1, 2))
    total = tf.reduce_sum(tf.square(probabilities), axis=(1, 2)) + tf.reduce_sum(tf.square(one_hot), axis=(1, 2))
    return tf.reduce_mean((2 * overlap + SMOOTH) / (total + SMOOTH), axis=-1)
