"""An electron-microscopy-like stack with known membranes: `python examples/synthetic_em.py FOLDER [--size N] [--pages N] [--seed N]`.

Cells are the Voronoi regions of jittered lattice points that drift from slice to slice, their borders bent by a smooth random field;
membranes are dark lines of varying width; staining is uneven, some cells hold dark blobs (mitochondria), and everything is blurred and
noisy. Writes train-volume.tif, train-labels.tif, test-volume.tif as the ISBI 2012 challenge names them, and test-truth.tif. Deterministic.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.spatial import cKDTree

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from utils.data_io import read_volume, write_stack  # noqa: E402
from utils.errors import DataError  # noqa: E402

CELL = 34.0  # mean distance of cell centres in pixels
MEMBRANE = 1.7  # half of a membrane's width in pixels


def smooth_field(rng: np.random.Generator, size: int, scale: float) -> np.ndarray:
    """A random field of mean 0 and deviation 1 that varies over about `scale` pixels: size × size."""
    field = gaussian_filter(rng.normal(size=(size, size)), scale, mode="wrap")
    return (field - field.mean()) / max(field.std(), 1e-9)


def make_slice(rng: np.random.Generator, centres: np.ndarray, bend: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """One image and its labels (0 membrane, 255 interior), size × size uint8, for cell centres n × 2."""
    grid = np.stack(np.mgrid[:size, :size], axis=-1) + bend
    distances, cells = cKDTree(centres).query(grid, k=2)
    to_border = (distances[..., 1] - distances[..., 0]) / 2 - 0.5 * smooth_field(rng, size, 12)
    inside = to_border > MEMBRANE
    tone = np.random.default_rng(0).normal(0, 12, len(centres))[cells[..., 0]]
    image = 150 + tone + 14 * smooth_field(rng, size, 2) + 18 * smooth_field(rng, size, size / 5)
    image = np.where(inside & (smooth_field(rng, size, 5) > 2.0), image - 45, image)
    image = gaussian_filter(np.where(inside, image, image - 75), 1.0) + rng.normal(rng.normal(0, 6), 9, (size, size))
    return np.clip(image, 0, 255).astype(np.uint8), np.where(inside, 255, 0).astype(np.uint8)


def make_stack(size: int, pages: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels, page × size × size, uint8."""
    rng = np.random.default_rng(seed)
    lattice = np.arange(-CELL, size + CELL, CELL)
    centres = np.stack(np.meshgrid(lattice, lattice), axis=-1).reshape(-1, 2)
    centres = centres + rng.uniform(-0.45 * CELL, 0.45 * CELL, centres.shape)
    bend = 5 * np.stack([smooth_field(rng, size, 10), smooth_field(rng, size, 10)], axis=-1)
    slices = []
    for _ in range(pages):
        slices.append(make_slice(rng, centres, bend, size))
        centres = centres + rng.normal(0, 2.0, centres.shape)
        bend = bend + 0.8 * np.stack([smooth_field(rng, size, 10), smooth_field(rng, size, 10)], axis=-1)
    images, labels = zip(*slices)
    return np.stack(images), np.stack(labels)


def write_new(path: Path, stack: np.ndarray) -> None:
    """Write a stack where nothing is yet; the same stack may be there already, another file ends the program."""
    if not path.exists():
        return write_stack(path, stack)
    try:
        same = np.array_equal(read_volume(path).array, stack)
    except DataError:
        same = False
    if not same:
        raise SystemExit(f"synthetic_em: error: {path} is there and is something else; it is not overwritten: choose another folder")
    return None


def write_data(folder: Path, size: int, pages: int, seed: int) -> None:
    """The four files, a training and a test stack of `pages` each, into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, truth, stream in (("train-volume", "train-labels", 2 * seed), ("test-volume", "test-truth", 2 * seed + 1)):
        images, labels = make_stack(size, pages, stream)
        write_new(folder / f"{name}.tif", images)
        write_new(folder / f"{truth}.tif", labels)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write an electron-microscopy-like stack with known membranes.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", type=int, default=256, help="pixels of a side (default: 256)")
    parser.add_argument("--pages", type=int, default=10, help="slices of each stack (default: 10)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    write_data(arguments.folder, arguments.size, arguments.pages, arguments.seed)
