import hashlib
import os
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from synthetic_em import write_data  # noqa: E402

TINY = ["--base_filters", "1"]
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def run_main(*arguments, ranks: int = 0, timeout: int = 240, program=("main.py",), environment=None) -> subprocess.CompletedProcess:
    """Run the program as a user would; `ranks` above 0 under horovodrun. Standard error is told apart from standard output."""
    command = [sys.executable, *(str(ROOT / program[0]), *program[1:]), *map(str, arguments)]
    if ranks:
        command = ["horovodrun", "-np", str(ranks), *command]
    environment = {**ENVIRONMENT, **(environment or {})}
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment, cwd=ROOT)


def own_errors(text: str) -> list[str]:
    """The program's own error lines in what a run printed, without horovodrun's prefix."""
    return [line[line.index("main.py: error: ") :] for line in text.splitlines() if "main.py: error: " in line]


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder with its checksum."""
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> Path:
    """A folder with six training and three test slices of 64 × 64."""
    folder = tmp_path_factory.mktemp("data")
    write_data(folder, size=64, pages=6, seed=0)
    return folder


@pytest.fixture(scope="session")
def trained(data, tmp_path_factory) -> Path:
    """The run folder of a tiny U-Net after 6 steps with fold 0 held out, its logs in log/."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    flags = ["--data_dir", data, "--model_dir", folder, "--log_dir", folder.parent / "log", "--max_steps", 6, "--log_every", 2]
    result = run_main(*flags, *TINY, "--exec_mode", "train_and_evaluate", "--fold", 0, "--augment", "--save_every", 3)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture(scope="session")
def isbi() -> Path:
    folder = Path(os.environ.get("ISBI2012", ROOT.parent / "shared" / "data" / "isbi2012"))
    if not (folder / "train-volume.tif").exists():
        pytest.skip(f"the ISBI 2012 stack is not in {folder}: download it from the challenge and set ISBI2012 to its folder")
    return folder


@pytest.fixture(scope="session")
def one_rank():
    """Horovod with this process as the only rank."""
    from utils.setup import hvd

    hvd.init()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
