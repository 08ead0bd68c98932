"""The networks by name. Importing this package is cheap: a network's own module, and TensorFlow with it, is imported when one is built."""

import importlib

BUILDERS = {"unet": "model.unet"}
MODEL_NAMES = tuple(BUILDERS)


def build_model(name: str, input_shape: tuple[int, int, int], n_classes: int, base_filters: int, seed: int = 0, dropout: float = 0.5):
    """A keras.Model from batch × height × width × channel images to logits, batch × height' × width' × n_classes, float32.

    `input_shape` is height, width, channels. Raises ValueError for an unknown name (listing the known) or an impossible size.
    """
    if name not in BUILDERS:
        raise ValueError(f"unknown model {name!r}: choose from {', '.join(MODEL_NAMES)}")
    return importlib.import_module(BUILDERS[name]).build(input_shape, n_classes, base_filters, seed, dropout)
