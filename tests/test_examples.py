import os
import subprocess

import pytest
from conftest import ENVIRONMENT, ROOT
from PIL import Image

SCRIPTS = sorted((ROOT / "examples").glob("unet_*.sh"))
NAMES = {
    f"unet_{name}{twin}.sh"
    for name in ("TRAIN_FULL", "TRAIN_SINGLE", "INFER", "TRAIN_BENCHMARK", "INFER_BENCHMARK")
    for twin in ("", "_TF-AMP")
}


def test_all_scripts_are_there_and_runnable():
    assert {path.name for path in SCRIPTS} == NAMES
    assert all(os.access(path, os.X_OK) and "set -euo pipefail" in path.read_text() for path in SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_missing_arguments_print_the_usage(script):
    result = subprocess.run(["bash", str(script), "one"], capture_output=True, text=True, env=ENVIRONMENT)
    assert result.returncode == 2
    assert result.stderr.startswith(f"usage: {script.name.replace('_TF-AMP', '')} <")


@pytest.fixture
def recorder(tmp_path):
    """A horovodrun and a python that only write down how they were called."""
    for name in ("horovodrun", "python"):
        (tmp_path / name).write_text(f'#!/bin/sh\nfor word in {name} "$@"; do printf "[%s]" "$word"; done; echo\n')
        (tmp_path / name).chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


@pytest.mark.parametrize("script", [path for path in SCRIPTS if "AMP" in path.name], ids=lambda path: path.name)
def test_a_twin_is_its_sibling_with_amp_and_arguments_stay_whole(script, recorder):
    arguments = ["data with space", "results", "3"] if "INFER" in script.name else ["2", "data with space", "results", "3"]
    calls = []
    for path in (script, script.with_name(script.name.replace("_TF-AMP", ""))):
        flags = ["--seed", "7"] if path == script else ["--amp", "--seed", "7"]
        calls.append(
            subprocess.run(["bash", str(path), *arguments, *flags], capture_output=True, text=True, env=recorder, check=True).stdout
        )
    assert calls[0] == calls[1]
    assert "[--data_dir][data with space]" in calls[0]
    assert "[--amp][--seed][7]" in calls[0]


def test_the_demo_ends_with_a_picture(tmp_path):
    result = subprocess.run(
        ["bash", str(ROOT / "examples" / "demo.sh"), str(tmp_path / "demo")],
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, "DEMO_STEPS": "4"},
        timeout=300,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "eval_dice_score" in result.stdout
    with Image.open(tmp_path / "demo" / "demo.png") as picture:
        assert picture.size == (4 * 256 + 3 * 4, 3 * 256 + 2 * 4)
    assert "% of the test pixels agree with the truth" in result.stdout
