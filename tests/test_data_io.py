import numpy as np
import pytest
import tifffile
from PIL import Image

from utils.data_io import read_labels, read_pair, read_probabilities, read_volume, write_stack
from utils.errors import DataError


def save_pages(path, pages, **options):
    pages = [page if isinstance(page, Image.Image) else Image.fromarray(page) for page in pages]
    pages[0].save(path, save_all=True, append_images=pages[1:], **options)
    return path


@pytest.fixture
def grey(rng):
    return rng.integers(0, 256, (3, 20, 30), np.uint8)


@pytest.fixture
def mask(grey):
    return (grey > 99).astype(np.uint8)


@pytest.mark.parametrize("pages", [1, 3, 4, 64])
def test_number_of_slices_is_number_of_pages(tmp_path, rng, pages):
    stack = rng.integers(0, 256, (pages, 7, 9), np.uint8)
    assert np.array_equal(read_volume(save_pages(tmp_path / "a.tif", stack)).array, stack)
    tifffile.imwrite(tmp_path / "b.tif", stack, photometric="minisblack")
    assert np.array_equal(read_volume(tmp_path / "b.tif").array, stack)


@pytest.mark.parametrize("compression", [None, "tiff_adobe_deflate", "tiff_lzw", "packbits"])
def test_eight_bit(tmp_path, grey, compression):
    volume = read_volume(save_pages(tmp_path / "a.tif", grey, compression=compression))
    assert volume.array.dtype == np.uint8
    assert np.array_equal(volume.array, grey)


@pytest.mark.parametrize("byteorder", ["<", ">"])
def test_sixteen_bit(tmp_path, grey, byteorder):
    stack = grey.astype(np.uint16) * 257
    tifffile.imwrite(tmp_path / "a.tif", stack, byteorder=byteorder, photometric="minisblack")
    volume = read_volume(tmp_path / "a.tif")
    assert volume.array.dtype == np.uint16
    assert np.array_equal(volume.array, stack)


def test_labels_of_every_kind_are_the_same(tmp_path, mask):
    bits = [Image.fromarray(255 * page).convert("1") for page in mask]
    paths = [
        save_pages(tmp_path / "a.tif", mask),
        save_pages(tmp_path / "b.tif", 255 * mask),
        save_pages(tmp_path / "c.tif", bits),
        save_pages(tmp_path / "d.tif", mask.astype(np.uint16)),
    ]
    tifffile.imwrite(tmp_path / "e.tif", mask == 0, photometric="miniswhite")
    for path in [*paths, tmp_path / "e.tif"]:
        labels = read_labels(path)
        assert labels.array.dtype == np.uint8
        assert np.array_equal(labels.array, mask), path


def bad_labels(mask):
    return {
        "rgb": [Image.fromarray(255 * page).convert("RGB") for page in mask],
        "constant": np.zeros_like(mask),
        "grey": (mask * 255 + np.arange(30, dtype=np.uint8)),
        "two": mask * 2,
    }


@pytest.mark.parametrize(
    "kind, words",
    [
        ("rgb", "page 0 has mode RGB; allowed are L, I;16"),
        ("constant", "every pixel is 0; labels must hold two values, 0/1 or 0/255"),
        ("grey", "label values (0, 1, 2, 3, 4, 5 …); allowed are 0/1 or 0/255"),
        ("two", "2 label values (0, 2); allowed are 0/1 or 0/255"),
    ],
)
def test_bad_labels(tmp_path, mask, kind, words):
    path = save_pages(tmp_path / "a.tif", bad_labels(mask)[kind])
    with pytest.raises(DataError) as caught:
        read_labels(path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)


def make_broken(path, grey, kind):
    save_pages(path, grey)
    whole = path.read_bytes()
    if kind == "absent":
        path.unlink()
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "text":
        path.write_text("version https://example.org/pointer")
    elif kind == "sizes":
        save_pages(path, [grey[0], grey[1][:, :20]])
    elif kind == "depths":
        save_pages(path, [Image.fromarray(grey[0]), Image.fromarray(grey[1].astype(np.uint16))])
    elif kind == "float":
        save_pages(path, grey.astype(np.float32))
    elif kind == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(whole[: int(len(whole) * float(kind))])


@pytest.mark.parametrize(
    "kind, words",
    [
        ("absent", "no such file"),
        ("empty", "not a TIF file that can be read (0 bytes)"),
        ("text", "not a TIF file"),
        ("sizes", "page 0 is 20×30 uint8 but page 1 is 20×20 uint8"),
        ("depths", "page 0 is 20×30 uint8 but page 1 is 20×30 uint16"),
        ("float", "page 0 has mode F"),
        ("folder", "damaged TIF"),
    ],
)
def test_bad_volumes(tmp_path, grey, kind, words):
    path = tmp_path / "a.tif"
    make_broken(path, grey, kind)
    with pytest.raises(DataError) as caught:
        read_volume(path)
    message = str(caught.value)
    assert str(path) in message
    assert words in message
    assert "\n" not in message


def test_every_truncation_is_noticed(tmp_path, grey):
    path = save_pages(tmp_path / "whole.tif", grey)
    whole = path.read_bytes()
    cut = tmp_path / "cut.tif"
    for length in range(0, len(whole) - 1, 37):
        cut.write_bytes(whole[:length])
        with pytest.raises(DataError):
            read_volume(cut)


@pytest.mark.parametrize("pages, rows", [(2, 20), (3, 16)])
def test_pair_that_differs_names_both(tmp_path, grey, mask, pages, rows):
    image, label = save_pages(tmp_path / "v.tif", grey), save_pages(tmp_path / "l.tif", mask[:pages, :rows])
    with pytest.raises(DataError) as caught:
        read_pair(image, label)
    assert str(caught.value) == (f"volume and labels differ: {image} has 3 pages of 20×30, {label} has {pages} pages of {rows}×30")


def test_constant_volume(tmp_path, mask):
    image, label = save_pages(tmp_path / "v.tif", mask * 0 + 7), save_pages(tmp_path / "l.tif", mask)
    with pytest.raises(DataError, match="every pixel is 7"):
        read_pair(image, label)


def test_written_stacks_come_back(tmp_path, mask, rng):
    probabilities = rng.random((3, 20, 30), np.float32)
    write_stack(tmp_path / "m.tif", 255 * mask)
    write_stack(tmp_path / "p.tif", probabilities)
    assert np.array_equal(read_labels(tmp_path / "m.tif").array, mask)
    assert np.array_equal(read_probabilities(tmp_path / "p.tif").array, probabilities)
    with tifffile.TiffFile(tmp_path / "p.tif") as file:
        assert len(file.pages) == 3
        assert file.pages[0].dtype == np.float32
        assert file.pages[0].compression == tifffile.COMPRESSION.ADOBE_DEFLATE
        assert np.array_equal(file.asarray(key=slice(None)), probabilities)
