"""Checkpoints: model, optimizer, step and settings in one NumPy archive, whose every member carries a checksum (CRC-32)."""

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import horovod.tensorflow as hvd
import numpy as np

from utils.errors import DataError, UsageError
from utils.run_folder import RunFolder

PATTERN = "checkpoint-*.npz"
KEEP = 2


@dataclass(frozen=True)
class Checkpoint:
    """What a file holds: `arrays` by the variable's name; `meta` has step, config and what the data were scaled by."""

    path: str
    arrays: dict[str, np.ndarray]
    meta: dict


def named_variables(model, optimizer=None) -> dict:
    """Every variable of the run's state by a name that is stable from run to run."""
    variables = {f"model/{variable.path}": variable for variable in model.variables}
    if optimizer is not None:
        variables |= {f"optimizer/{variable.path}": variable for variable in optimizer.variables}
    return variables


def save(folder: RunFolder, model, optimizer, meta: dict) -> None:
    """Write the state after step meta["step"] and drop all but the newest KEEP checkpoints. Raises DataError."""
    arrays = {name: variable.numpy() for name, variable in named_variables(model, optimizer).items()}
    with folder.replacing(f"checkpoint-{meta['step']:08d}.npz") as path, open(path, "wb") as file:
        np.savez(file, meta=np.array(json.dumps(meta)), **arrays)
    folder.remove([path.name for path in _newest_first(folder)[KEEP:]])


def _newest_first(folder: RunFolder) -> list[Path]:
    return sorted(folder.path.glob(PATTERN), reverse=True)


def read_latest(folder: RunFolder) -> Checkpoint:
    """The newest checkpoint of a folder. Raises DataError where there is none or it is damaged."""
    paths = _newest_first(folder)
    if not paths:
        raise DataError(f"--model_dir {folder.path}: no checkpoint found (looked for {PATTERN})")
    try:
        with np.load(paths[0], allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        return Checkpoint(str(paths[0]), arrays, json.loads(str(arrays.pop("meta"))))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        others = f"; remove it to use {paths[1].name}" if len(paths) > 1 else ""
        raise DataError(f"{paths[0]}: damaged checkpoint ({error}){others}") from None


def has_checkpoint(folder: RunFolder) -> bool:
    """Whether there is anything for read_latest to read."""
    return bool(_newest_first(folder))


def restore(checkpoint: Checkpoint, model, optimizer=None) -> None:
    """Assign every variable from the checkpoint. Raises DataError, naming the first differences, unless names and shapes all agree."""
    variables = named_variables(model, optimizer)
    wanted = {name: tuple(variable.shape) for name, variable in variables.items()}
    found = {name: array.shape for name, array in checkpoint.arrays.items() if optimizer is not None or name.startswith("model/")}
    if wanted != found:
        different = [name for name in {**wanted, **found} if wanted.get(name) != found.get(name)]
        shown = "; ".join(f"{name}: {found.get(name, 'absent')} instead of {wanted.get(name, 'absent')}" for name in different[:3])
        raise DataError(f"{checkpoint.path}: not a checkpoint of this network, {len(different)} variables differ ({shown})")
    for name, variable in variables.items():
        variable.assign(checkpoint.arrays[name])


def adopt(config, checkpoint: Checkpoint, names: tuple[str, ...]) -> dict:
    """Settings `names` as the checkpoint's run had them. Raises UsageError where a flag was given that says otherwise."""
    saved = checkpoint.meta["config"]
    for name in names:
        if name in config.explicit and getattr(config, name) != saved[name]:
            raise UsageError(f"--{name} {getattr(config, name)} contradicts {checkpoint.path}, made with --{name} {saved[name]}")
    return {name: saved[name] for name in names}


def broadcast(model, optimizer=None) -> None:
    """Give every rank the state of rank 0."""
    # Horovod: the values, as Keras 3 variables are not TensorFlow's; the optimizer is built by now, so its slots are among them.
    hvd.broadcast_variables([variable.value for variable in named_variables(model, optimizer).values()], root_rank=0)
