"""Predicted stacks to files, and pictures of them."""

from pathlib import Path

import numpy as np
from PIL import Image

from utils.data_io import write_stack
from utils.run_folder import RunFolder

FOLDER = "predictions"
GAP = 4  # pixels between the panels of a picture
MEMBRANE = np.array([255, 64, 0])


def to_masks(probabilities: np.ndarray) -> np.ndarray:
    """Probabilities of the interior → 255 where it is at least 0.5, else 0."""
    return np.where(probabilities >= 0.5, 255, 0).astype(np.uint8)


def _grey(image: np.ndarray) -> np.ndarray:
    """Height × width of any range → height × width × 3 of 0 … 255, darkest to brightest."""
    low, high = float(image.min()), float(image.max())
    scaled = (image.astype(np.float32) - low) / max(high - low, 1e-6) * 255
    return np.repeat(scaled.astype(np.uint8)[..., None], 3, axis=2)


def overlay(image: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The image in grey, the membrane (mask 0) tinted red: height × width × 3, uint8."""
    grey = _grey(image)
    tinted = (0.4 * grey + 0.6 * MEMBRANE).astype(np.uint8)
    return np.where((mask == 0)[..., None], tinted, grey)


def panels(image: np.ndarray, probability: np.ndarray, truth: np.ndarray | None = None) -> np.ndarray:
    """One slice as a row of pictures: input, truth where given (0 and 255), probability of the interior, overlay."""
    mask = to_masks(probability)
    shown = [_grey(image), None if truth is None else np.repeat(truth[..., None], 3, axis=2)]
    shown += [np.repeat((255 * probability).astype(np.uint8)[..., None], 3, axis=2), overlay(image, mask)]
    gap = np.full((image.shape[0], GAP, 3), 255, np.uint8)
    row = [part for picture in shown if picture is not None for part in (picture, gap)]
    return np.concatenate(row[:-1], axis=1)


def preview(images: np.ndarray, probabilities: np.ndarray, truth: np.ndarray | None = None) -> Image.Image:
    """The first, middle and last slice of a stack, a row each."""
    numbers = sorted({0, len(images) // 2, len(images) - 1})
    rows = []
    for n in numbers:
        row = panels(images[n], probabilities[n], None if truth is None else truth[n])
        rows += [row, np.full((GAP, row.shape[1], 3), 255, np.uint8)]
    return Image.fromarray(np.concatenate(rows[:-1]))


def write(folder: RunFolder, images: np.ndarray, probabilities: np.ndarray) -> list[Path]:
    """Write masks (0 membrane, 255 interior), 32-bit float probabilities of the interior and a preview. Raises DataError."""
    names = [f"{FOLDER}/{name}" for name in ("test-masks.tif", "test-probabilities.tif", "preview.png")]
    with folder.replacing(names[0]) as path:
        write_stack(path, to_masks(probabilities))
    with folder.replacing(names[1]) as path:
        write_stack(path, probabilities)
    with folder.replacing(names[2]) as path:
        preview(images, probabilities).save(path, format="PNG")
    return [folder.path / name for name in names]
