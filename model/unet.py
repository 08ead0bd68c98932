"""U-Net (Ronneberger, Fischer, Brox: "U-Net: Convolutional Networks for Biomedical Image Segmentation", MICCAI 2015, figure 1).

Up-sampling is by 3×3 transposed convolutions, as in NVIDIA's UNet_Medical; dropout sits at the end of the contracting path.
"""

import keras

from model import layers

DEPTH = 4
LEAST_INPUT = 188  # leaves 4 × 4 pixels at the bottom, and so 4 × 4 at the output
BORDER = 184  # pixels of each axis that the valid convolutions consume: 572 − 388


def output_size(size: int) -> int:
    """Height or width in pixels that comes out of `size` pixels (572 → 388).

    Raises ValueError, naming the nearest valid sizes, where a pooling would meet an odd size or nothing would be left.
    """
    if size < LEAST_INPUT or (size - LEAST_INPUT) % 2**DEPTH:
        above = input_size(size - BORDER)
        below = max(above - 2**DEPTH, LEAST_INPUT)
        raise ValueError(f"U-Net cannot take {size} pixels: the nearest valid sizes are {below} and {above}")
    return size - BORDER


def input_size(output: int) -> int:
    """The least valid input height or width in pixels whose output has at least `output` pixels (388 → 572)."""
    steps = max(0, -(-(output + BORDER - LEAST_INPUT) // 2**DEPTH))  # ceiling division
    return LEAST_INPUT + 2**DEPTH * steps


def build(
    input_shape: tuple[int, int, int] = (572, 572, 1), n_classes: int = 2, base_filters: int = 64, seed: int = 0, dropout: float = 0.5
) -> keras.Model:
    """U-Net from batch × height × width × channel images to logits, batch × (height − 184) × (width − 184) × n_classes."""
    for size in input_shape[:2]:
        output_size(size)
    x = images = keras.Input(input_shape, name="images")
    skips = []
    for level in range(DEPTH):
        x = layers.conv_pair(x, base_filters * 2**level, f"down{level + 1}", seed)
        skips.append(x)
        x = layers.max_pool(x, f"down{level + 1}")
    x = layers.conv_pair(x, base_filters * 2**DEPTH, "bottom", seed)
    x = keras.layers.Dropout(dropout, name="bottom_dropout")(x)
    for level in reversed(range(DEPTH)):
        filters, name = base_filters * 2**level, f"up{level + 1}"
        x = layers.up_conv(x, filters, name, seed)
        x = layers.crop_and_concat(skips[level], x, name)
        x = layers.conv_pair(x, filters, name, seed)
    return keras.Model(images, layers.classify(x, n_classes, "logits", seed), name="unet")
