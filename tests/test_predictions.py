import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT
from PIL import Image
from synthetic_em import make_stack, write_data

from utils import predictions


def test_masks_are_0_and_255():
    assert predictions.to_masks(np.array([[0.0, 0.49, 0.5, 1.0]], np.float32)).tolist() == [[0, 0, 255, 255]]


def test_overlay_tints_the_membrane_and_leaves_the_rest_grey():
    image = np.arange(16, dtype=np.uint8).reshape(4, 4)
    mask = np.full((4, 4), 255, np.uint8)
    mask[1, 2] = 0
    picture = predictions.overlay(image, mask)
    grey = picture[..., 0] == picture[..., 1]
    assert not grey[1, 2] and grey.sum() == 15
    assert picture[1, 2, 0] > picture[1, 2, 2]


def test_preview_has_a_row_a_slice_and_a_column_a_picture(rng):
    images = rng.integers(0, 256, (7, 20, 30), np.uint8)
    probabilities = rng.random((7, 20, 30), np.float32)
    assert predictions.preview(images, probabilities).size == (3 * 30 + 2 * 4, 3 * 20 + 2 * 4)
    assert predictions.preview(images[:1], probabilities[:1], images[:1]).size == (4 * 30 + 3 * 4, 20)


def test_synthetic_stack_is_deterministic_and_like_em():
    images, labels = make_stack(size=128, pages=4, seed=5)
    again, _ = make_stack(size=128, pages=4, seed=5)
    assert np.array_equal(images, again)
    assert images.shape == labels.shape == (4, 128, 128)
    assert set(np.unique(labels)) == {0, 255}
    assert 0.1 < (labels == 0).mean() < 0.35
    assert images[labels == 0].mean() + 30 < images[labels == 255].mean()
    neighbours, distant = ((labels[a] == labels[b]).mean() for a, b in ((0, 1), (0, 3)))
    assert neighbours > distant


def test_a_synthetic_stack_never_replaces_another_file(tmp_path):
    write_data(tmp_path, size=32, pages=2, seed=0)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write_data(tmp_path, size=32, pages=2, seed=0)
    (tmp_path / "test-volume.tif").write_bytes(b"mine")
    with pytest.raises(SystemExit, match="test-volume.tif is there and is something else"):
        write_data(tmp_path, size=32, pages=2, seed=0)
    with pytest.raises(SystemExit, match="train-volume.tif is there and is something else"):
        write_data(tmp_path, size=32, pages=3, seed=0)
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert after == {**before, "test-volume.tif": b"mine"}


def test_the_diagram_is_drawn_by_its_script(tmp_path):
    path = tmp_path / "unet.png"
    subprocess.run([sys.executable, str(ROOT / "images" / "draw_unet.py"), str(path)], check=True, capture_output=True)
    with Image.open(path) as drawn, Image.open(ROOT / "images" / "unet.png") as kept:
        assert drawn.size == kept.size
        assert np.abs(np.asarray(drawn, int) - np.asarray(kept, int)).mean() < 5
