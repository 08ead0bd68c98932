"""Every command of the README, in its order, in a folder of its own, with fewer filters and steps."""

import os
import re
import subprocess

import pytest
from conftest import ENVIRONMENT, ROOT

BLOCKS = re.findall(r"```bash\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
COMMANDS = [line for block in BLOCKS for line in block.splitlines()]
MAKE = [command for command in COMMANDS if command.startswith("make ")]
PROGRAM = [command for command in COMMANDS if not command.startswith(("make ", ". "))]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("main.py", "run.py", "model", "utils", "examples"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def smaller(command: str) -> str:
    """The command with flags at its end that make it short; the last of a flag counts."""
    if "synthetic_em" in command:
        return command + " --size 48 --pages 5"
    if "main.py" not in command and "unet_" not in command:
        return command
    steps = "--max_steps 6" if "--resume_training" in command else "--max_steps 4"
    training = "evaluate --fold" not in command.replace("train_and_evaluate", "") and "predict" not in command
    extra = ["--base_filters 1", steps if training else "", "--warmup_steps 1" if "BENCHMARK" in command else ""]
    return " ".join([command, *filter(None, extra)])


@pytest.mark.parametrize("number", range(len(PROGRAM)))
def test_command(checkout, number):
    command = smaller(PROGRAM[number])
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=ENVIRONMENT, cwd=checkout, timeout=400)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"


def test_what_the_commands_left(checkout):
    results = checkout / "results"
    assert (results / "two" / "checkpoint-00000003.npz").exists()
    assert (results / "fold0" / "predictions" / "test-probabilities.tif").exists()
    assert (results / "single" / "predictions" / "test-masks.tif").exists()
    assert sorted(path.name for path in (results / "full").iterdir()) == [*(f"fold{k}" for k in range(5)), "logs"]
    assert not list((results / "benchmark").glob("checkpoint*"))


@pytest.mark.parametrize("command", MAKE)
def test_make_knows_its_targets(command):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    result = subprocess.run([*command.split(), "--dry-run"], capture_output=True, text=True, cwd=ROOT, env=environment)
    assert result.returncode == 0, result.stderr


def test_the_first_two_commands_are_demo_and_test():
    assert COMMANDS[:2] == ["make demo", "make test"]


def test_no_blank_is_left_to_fill_in():
    assert "@@" not in (ROOT / "README.md").read_text()


def test_quoted_errors_are_the_program_s():
    """The table of errors quotes words that stand in the source."""
    source = "".join(path.read_text() for path in [*ROOT.glob("*.py"), *ROOT.glob("utils/*.py")])
    quoted = re.findall(r"^\| `(.+?)` \|", (ROOT / "README.md").read_text().split("## When something is wrong")[1], re.MULTILINE)
    assert len(quoted) >= 6
    for line in quoted:
        for words in filter(None, (part.strip("(); ,") for part in line.split("…"))):
            assert words in source, words
