"""The blocks that every network is assembled from.

All tensors are batch × height × width × channel. Each block takes and returns symbolic tensors, so that a network reads as a list of
blocks, and names its layers by their role, so that a checkpoint can be read by a person.
"""

import zlib

import keras


def he_normal(seed: int, name: str) -> keras.initializers.Initializer:
    """He initializer (He et al. 2015, eq. 10) with a stream of its own for every layer name: equal seeds never give equal layers."""
    return keras.initializers.HeNormal(seed=zlib.crc32(f"{seed}/{name}".encode()))


def conv(x, filters: int, name: str, seed: int, padding: str = "valid"):
    """3×3 convolution and ReLU; `valid` loses one pixel at each border, `same` none."""
    layer = keras.layers.Conv2D(filters, 3, padding=padding, activation="relu", kernel_initializer=he_normal(seed, name), name=name)
    return layer(x)


def conv_pair(x, filters: int, name: str, seed: int, padding: str = "valid"):
    """Two 3×3 convolutions with ReLU: h × w → (h − 4) × (w − 4) when `valid`."""
    x = conv(x, filters, f"{name}_conv1", seed, padding)
    return conv(x, filters, f"{name}_conv2", seed, padding)


def max_pool(x, name: str):
    """2×2 maximum: h × w → h/2 × w/2."""
    return keras.layers.MaxPooling2D(2, name=f"{name}_pool")(x)


def up_conv(x, filters: int, name: str, seed: int):
    """3×3 transposed convolution of stride 2 and ReLU: h × w → 2h × 2w."""
    name = f"{name}_upconv"
    layer = keras.layers.Conv2DTranspose(
        filters, 3, strides=2, padding="same", activation="relu", kernel_initializer=he_normal(seed, name), name=name
    )
    return layer(x)


def crop_and_concat(skip, x, name: str):
    """The centre of `skip` at the size of `x`, concatenated with `x` along the channels (Ronneberger et al. 2015, "copy and crop")."""
    (height, width), (inner_height, inner_width) = skip.shape[1:3], x.shape[1:3]
    top, left = (height - inner_height) // 2, (width - inner_width) // 2
    borders = ((top, height - inner_height - top), (left, width - inner_width - left))
    skip = keras.layers.Cropping2D(borders, name=f"{name}_crop")(skip)
    return keras.layers.Concatenate(name=f"{name}_concat")([skip, x])


def classify(x, n_classes: int, name: str, seed: int):
    """1×1 convolution to one logit a class; computed and returned in float32 whatever the precision of the network."""
    layer = keras.layers.Conv2D(n_classes, 1, dtype="float32", kernel_initializer=he_normal(seed, name), name=name)
    return layer(x)
