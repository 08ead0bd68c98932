"""Images from files and to files as NumPy arrays with what is needed to write them back. No TensorFlow."""

import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageSequence, UnidentifiedImageError

from utils.errors import DataError
from utils.streams import held_stderr

IMAGE_MODES = {"L": np.uint8, "I;16": np.uint16, "I;16B": np.uint16}
FLOAT_MODES = {"F": np.float32}
LABEL_MODES = {**IMAGE_MODES, "1": np.uint8}


@dataclass(frozen=True)
class Volume:
    """A stack of slices, slice × height × width, and the file that it came from."""

    array: np.ndarray
    path: str

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.array.shape


def _read_page(page: Image.Image, index: int, path: Path, modes: dict) -> np.ndarray:
    if page.mode not in modes:
        raise DataError(f"{path}: page {index} has mode {page.mode}; allowed are {', '.join(modes)} (8 or 16 bit, one channel)")
    return np.asarray(page).astype(modes[page.mode])


def _read_pages(path: Path, modes: dict) -> list[np.ndarray]:
    """The pages of a TIF file. A warning of the reader (a cut tag, a page beyond the end) is an error: nothing is skipped in silence."""
    try:
        with held_stderr(show_on_failure=False), warnings.catch_warnings():  # libtiff would add a line of its own
            warnings.simplefilter("error")
            with Image.open(path, formats=("TIFF",)) as image:
                return [_read_page(page, index, path, modes) for index, page in enumerate(ImageSequence.Iterator(image))]
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except UnidentifiedImageError:
        raise DataError(f"{path}: not a TIF file that can be read ({path.stat().st_size} bytes)") from None
    except DataError:
        raise
    except (OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, EOFError, Warning, Image.DecompressionBombError) as error:
        raise DataError(f"{path}: damaged TIF file: {' '.join(str(error).split()) or type(error).__name__}") from None


def _read_stack(path: Path, modes: dict) -> np.ndarray:
    pages = _read_pages(path, modes)
    for index, page in enumerate(pages):
        if page.shape != pages[0].shape or page.dtype != pages[0].dtype:
            first, this = (f"{p.shape[0]}×{p.shape[1]} {p.dtype}" for p in (pages[0], page))
            raise DataError(f"{path}: page 0 is {first} but page {index} is {this}; all pages must agree")
    return np.stack(pages)


def read_volume(path: str | os.PathLike) -> Volume:
    """A multi-page TIF of grey images as uint8 or uint16, page × height × width. Raises DataError."""
    return Volume(_read_stack(Path(path), IMAGE_MODES), str(path))


def read_probabilities(path: str | os.PathLike) -> Volume:
    """A multi-page TIF of 32-bit floats, page × height × width. Raises DataError."""
    return Volume(_read_stack(Path(path), FLOAT_MODES), str(path))


def read_labels(path: str | os.PathLike) -> Volume:
    """A multi-page TIF of two-class labels (1 bit, 0/1 or 0/255) as uint8 class numbers 0 and 1. Raises DataError."""
    stack = _read_stack(Path(path), LABEL_MODES)
    values = np.unique(stack)
    if values.size == 1:
        raise DataError(f"{path}: every pixel is {values[0]}; labels must hold two values, 0/1 or 0/255")
    if tuple(values) not in ((0, 1), (0, 255)):
        shown = ", ".join(str(value) for value in values[:6]) + (" …" if values.size > 6 else "")
        raise DataError(f"{path}: {values.size} label values ({shown}); allowed are 0/1 or 0/255")
    return Volume((stack > 0).astype(np.uint8), str(path))


def read_pair(image_path: str | os.PathLike, label_path: str | os.PathLike) -> tuple[Volume, Volume]:
    """A volume and its labels. Raises DataError where they differ in pages or size, or the volume has one grey value only."""
    volume, labels = read_volume(image_path), read_labels(label_path)
    if volume.shape != labels.shape:
        sizes = ", ".join(f"{v.path} has {v.shape[0]} pages of {v.shape[1]}×{v.shape[2]}" for v in (volume, labels))
        raise DataError(f"volume and labels differ: {sizes}")
    if volume.array.min() == volume.array.max():
        raise DataError(f"{image_path}: every pixel is {volume.array.min()}; there is nothing to learn from")
    return volume, labels


def write_stack(path: str | os.PathLike, stack: np.ndarray) -> None:
    """Page × height × width as a multi-page deflate-compressed TIF: uint8, or float32 (32-bit, mode F)."""
    pages = [Image.fromarray(page) for page in stack]
    pages[0].save(path, format="TIFF", compression="tiff_adobe_deflate", save_all=True, append_images=pages[1:])
