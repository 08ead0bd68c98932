import dataclasses

import keras
import numpy as np
import pytest

from model import unet
from utils import checkpoint
from utils.cmd_util import parse_args
from utils.errors import DataError, UsageError
from utils.optimizer import build_optimizer
from utils.run_folder import RunFolder


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path)
    folder.create()
    return folder


@pytest.fixture
def network():
    model = unet.build((188, 188, 1), 2, 1)
    optimizer = build_optimizer(model, 1e-3, 5e-4)
    optimizer.apply([np.ones(v.shape, np.float32) for v in model.trainable_variables])
    return model, optimizer


def meta(step):
    return {"step": step, "config": parse_args(["--data_dir", "d", "--base_filters", "1"]).to_dict(), "bits": 8}


def state(model, optimizer):
    return {name: variable.numpy() for name, variable in checkpoint.named_variables(model, optimizer).items()}


def test_everything_comes_back(folder, network):
    model, optimizer = network
    before = state(model, optimizer)
    checkpoint.save(folder, model, optimizer, meta(1))
    optimizer.apply([np.ones(v.shape, np.float32) for v in model.trainable_variables])
    assert any(not np.array_equal(before[name], value) for name, value in state(model, optimizer).items())
    found = checkpoint.read_latest(folder)
    checkpoint.restore(found, model, optimizer)
    after = state(model, optimizer)
    assert found.meta == meta(1)
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert after["optimizer/adam/iteration"] == 1
    assert sum("momentum" in name for name in after) == len(model.trainable_variables)


def test_the_newest_two_stay_and_the_newest_is_read(folder, network):
    for step in (5, 10, 200):
        checkpoint.save(folder, *network, meta(step))
    assert [path.name for path in sorted(folder.path.glob("*.npz"))] == ["checkpoint-00000010.npz", "checkpoint-00000200.npz"]
    assert checkpoint.read_latest(folder).meta["step"] == 200


def test_an_empty_folder_is_an_error(folder):
    with pytest.raises(DataError, match=r"no checkpoint found \(looked for checkpoint-\*\.npz\)"):
        checkpoint.read_latest(folder)


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "text"])
def test_damage_is_noticed_and_the_one_before_named(folder, network, damage):
    checkpoint.save(folder, *network, meta(1))
    checkpoint.save(folder, *network, meta(2))
    path = folder.path / "checkpoint-00000002.npz"
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 0xFF
    path.write_bytes({"cut": whole[: len(whole) // 2], "flip": whole, "empty": b"", "text": b"hello"}[damage])
    with pytest.raises(DataError, match="00000002.npz: damaged checkpoint .*; remove it to use checkpoint-00000001.npz"):
        checkpoint.read_latest(folder)


def test_another_network_is_refused_by_name_and_shape(folder, network):
    checkpoint.save(folder, *network, meta(1))
    wider = unet.build((188, 188, 1), 2, 2)
    before = [v.numpy() for v in wider.variables]
    with pytest.raises(DataError, match=r"variables differ \(model/down1_conv1/kernel: \(3, 3, 1, 1\) instead of \(3, 3, 1, 2\)"):
        checkpoint.restore(checkpoint.read_latest(folder), wider)
    assert all(np.array_equal(v.numpy(), b) for v, b in zip(wider.variables, before))
    other = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, name="dense")])
    with pytest.raises(DataError, match="absent"):
        checkpoint.restore(checkpoint.read_latest(folder), other)


def test_settings_are_taken_from_the_run_and_contradictions_told():
    found = checkpoint.Checkpoint("c.npz", {}, meta(1))
    config = parse_args(["--data_dir", "d"])
    assert checkpoint.adopt(config, found, ("base_filters",)) == {"base_filters": 1}
    given = dataclasses.replace(config, base_filters=64, explicit=frozenset({"base_filters"}))
    with pytest.raises(UsageError, match="--base_filters 64 contradicts c.npz, made with --base_filters 1"):
        checkpoint.adopt(given, found, ("base_filters",))


def test_decay_is_on_kernels_only_and_apart_from_the_gradient():
    """A step with zero gradients shrinks a kernel by learning_rate · weight_decay and leaves a bias alone."""
    model = unet.build((188, 188, 1), 2, 1)
    optimizer = build_optimizer(model, learning_rate=0.1, weight_decay=0.5)
    for variable in model.trainable_variables:
        variable.assign(np.ones(variable.shape))
    optimizer.apply([np.zeros(v.shape, np.float32) for v in model.trainable_variables])
    for variable in model.trainable_variables:
        np.testing.assert_allclose(variable.numpy(), 0.95 if variable.name == "kernel" else 1.0, rtol=1e-6)
