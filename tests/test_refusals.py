"""Bad input: one line, the right exit code, nothing changed."""

import json

import numpy as np
import pytest
from conftest import TINY, run_main, tree

from utils.data_io import read_labels, write_stack


def break_data(folder, kind):
    """A copy of the data with one fault."""
    label = read_labels(folder / "train-labels.tif").array * 255
    if kind == "missing":
        (folder / "train-labels.tif").unlink()
    elif kind == "pages":
        write_stack(folder / "train-labels.tif", label[:2])
    elif kind == "constant":
        write_stack(folder / "train-labels.tif", label * 0)
    elif kind == "empty":
        (folder / "train-volume.tif").write_bytes(b"")
    elif kind == "cut":
        whole = (folder / "train-volume.tif").read_bytes()
        (folder / "train-volume.tif").write_bytes(whole[: len(whole) // 2])


@pytest.mark.parametrize(
    "kind, words",
    [
        ("missing", "train-labels.tif: no such file"),
        ("pages", "has 6 pages of 64×64"),
        ("constant", "train-labels.tif: every pixel is 0"),
        ("empty", "train-volume.tif: not a TIF file that can be read (0 bytes)"),
        ("cut", "train-volume.tif: damaged TIF file"),
    ],
)
def test_bad_data_is_one_line_and_leaves_nothing(data, tmp_path, kind, words):
    folder = tmp_path / "data"
    folder.mkdir()
    for path in data.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    break_data(folder, kind)
    before = tree(tmp_path)
    result = run_main("--data_dir", folder, "--model_dir", tmp_path / "run", *TINY, "--max_steps", 1)
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1
    assert words in result.stderr
    assert tree(tmp_path) == before


def refusals(trained, data, tmp_path):
    (tmp_path / "file").write_text("")
    return {
        "contradiction": (["--model_dir", trained, "--exec_mode", "predict", "--base_filters", 8], 2, "--base_filters 8 contradicts"),
        "fold": (["--model_dir", trained, "--exec_mode", "evaluate", "--fold", 1], 2, "made with --fold 0"),
        "no run": (["--model_dir", tmp_path / "none", "--exec_mode", "predict"], 1, "no checkpoint found"),
        "unwritable": (["--model_dir", tmp_path / "file" / "run"], 1, "cannot be created: Not a directory"),
        "no data": (["--data_dir", tmp_path / "none", "--model_dir", tmp_path / "run"], 1, "no such folder"),
    }


@pytest.mark.parametrize("kind", ["contradiction", "fold", "no run", "unwritable", "no data"])
def test_refusals_are_one_line(trained, data, tmp_path, kind):
    flags, code, words = refusals(trained, data, tmp_path)[kind]
    before = tree(trained)
    result = run_main("--data_dir", data, *flags)
    assert result.returncode == code, result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert words in result.stderr
    assert tree(trained) == before


def test_a_foreign_checkpoint_is_refused(data, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    meta = {"step": 1, "bits": 8, "dtype": "uint8", "config": {"model": "unet", "base_filters": 1, "fold": None, "seed": 0}}
    np.savez(folder / "checkpoint-00000001.npz", meta=np.array(json.dumps(meta)), **{"model/dense/kernel": np.zeros((3, 3))})
    result = run_main("--data_dir", data, "--model_dir", folder, "--exec_mode", "predict")
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1
    assert "not a checkpoint of this network" in result.stderr
    assert not (folder / "predictions").exists()
