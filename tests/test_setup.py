import os
import shutil
import subprocess
import sys

import keras
import pytest
from conftest import ROOT

from model import unet
from utils import setup
from utils.errors import UserError
from utils.optimizer import build_optimizer


def test_a_changed_tensorflow_is_told_with_the_command_that_mends_it(monkeypatch):
    built = setup.tf.__version__
    monkeypatch.setattr(setup.tf, "__version__", "2.18.99")
    with pytest.raises(
        UserError, match=f"Horovod was built for TensorFlow {built}, but TensorFlow 2.18.99 is installed: run `make horovod`"
    ):
        setup.import_horovod()


def test_an_absent_horovod_is_told(monkeypatch):
    monkeypatch.setattr(setup.metadata, "files", lambda _: None)
    with pytest.raises(UserError, match="Horovod is not installed: run `make setup`"):
        setup.import_horovod()


@pytest.mark.parametrize("amp_dtype, policy", [("auto", "mixed_bfloat16"), ("bfloat16", "mixed_bfloat16"), ("float16", "mixed_float16")])
def test_mixed_precision_on_a_cpu(amp_dtype, policy):
    assert setup.amp_policy(amp_dtype) == policy


@pytest.mark.parametrize("capability, policy", [((7, 0), "mixed_float16"), ((8, 0), "mixed_bfloat16"), ((9, 0), "mixed_bfloat16")])
def test_mixed_precision_on_a_gpu_follows_its_capability(monkeypatch, capability, policy):
    monkeypatch.setattr(setup.tf.config, "get_visible_devices", lambda _: ["gpu"])
    monkeypatch.setattr(setup.tf.config.experimental, "get_device_details", lambda _: {"compute_capability": capability})
    assert setup.amp_policy("auto") == policy


def test_more_ranks_than_gpus_is_refused(monkeypatch):
    monkeypatch.setattr(setup.tf.config, "list_physical_devices", lambda _: ["gpu"])
    with pytest.raises(UserError, match="2 ranks on a host with 1 GPUs: give horovodrun -np 1 or fewer"):
        setup._choose_devices(local_rank=1, local_size=2)


def test_loss_scaling_is_for_float16_alone():
    before = keras.config.dtype_policy()
    kinds = {}
    try:
        for policy in ("mixed_float16", "mixed_bfloat16", "float32"):
            keras.config.set_dtype_policy(policy)
            kinds[policy] = type(build_optimizer(unet.build((188, 188, 1), 2, 1), 1e-4, 0.0)).__name__
    finally:
        keras.config.set_dtype_policy(before)
    assert kinds == {"mixed_float16": "LossScaleOptimizer", "mixed_bfloat16": "Adam", "float32": "Adam"}


@pytest.fixture
def checkout(tmp_path):
    """The set-up's files in a folder of their own, with an empty cache."""
    for name in ["utils/install.sh", "constraints.txt", *(path.name for path in ROOT.glob("requirements*.txt"))]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def install(checkout, python, **environment):
    environment = {**os.environ, "XDG_CACHE_HOME": str(checkout / "cache"), **environment}
    command = ["bash", str(checkout / "utils/install.sh"), python]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("version", ["3.9", "3.13"])
def test_set_up_says_which_python_works(checkout, version):
    fake = checkout / "python"
    fake.write_text(f"#!/bin/sh\necho {version}\n")
    fake.chmod(0o755)
    result = install(checkout, str(fake))
    assert result.returncode == 1
    expected = f"setup: error: {fake} is Python {version}; 3.10, 3.11 and 3.12 work: give make PYTHON=/path/to/python3.11"
    assert result.stderr.splitlines() == [expected]
    assert not (checkout / ".venv").exists()


def test_set_up_says_that_a_compiler_is_missing(checkout):
    result = install(checkout, sys.executable, CXX="no-such-compiler")
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1
    assert "no C++ compiler (no-such-compiler), which Horovod's build needs: install one" in result.stderr
    assert not (checkout / ".venv").exists()


def test_requirements_leave_the_container_s_packages_alone():
    """What the program needs on top must never name TensorFlow or Horovod, and must admit numpy 1.26."""
    from packaging.requirements import Requirement

    lines = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if line and not line.startswith("#")]
    needed = {requirement.name: requirement for requirement in map(Requirement, lines)}
    assert not {"tensorflow", "horovod", "keras"} & needed.keys()
    assert needed["numpy"].specifier.contains("1.26.4")
