"""Everything that train, evaluate and predict work on, read and checked before the first step."""

import dataclasses
import platform
from dataclasses import dataclass
from pathlib import Path

import horovod
import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf

from model import build_model
from model.unet import input_size
from utils import checkpoint, data_io, logger, report
from utils.checkpoint import Checkpoint
from utils.cmd_util import Config
from utils.data_io import Volume
from utils.data_loader import Frame, bit_depth, prediction_bits, split
from utils.errors import DataError, UsageError
from utils.optimizer import build_optimizer
from utils.run_folder import RunFolder
from utils.setup import Runtime

N_CLASSES = 2
OUTPUT_SIZE = (388, 388)


@dataclass(frozen=True)
class Data:
    """The volumes that the mode needs; `training` and `validation` are slice numbers of `volume`."""

    volume: Volume | None
    labels: Volume | None
    test: Volume | None
    training: np.ndarray
    validation: np.ndarray
    bits: int  # of the intensity range that training maps to [-1, 1]
    dtype: str  # of the training volume
    test_bits: int


@dataclass(frozen=True)
class Session:
    """One run, ready to step: settings, this process, folder, data, network; `start_step` steps are already done."""

    config: Config
    runtime: Runtime
    folder: RunFolder
    data: Data
    frame: Frame
    model: keras.Model
    optimizer: keras.optimizers.Optimizer | None
    start_step: int

    @property
    def last_step(self) -> int:
        """Steps that each rank has done at the end: max_steps shared by the ranks."""
        return max(1, self.config.max_steps // self.runtime.size)

    def meta(self, step: int) -> dict:
        """What a checkpoint keeps beside the variables, ready for JSON."""
        return {
            "step": step,
            "config": self.config.to_dict(),
            "ranks": self.runtime.size,
            "bits": self.data.bits,
            "dtype": self.data.dtype,
            "folds": {"training": self.data.training.tolist(), "validation": self.data.validation.tolist()},
            "versions": {
                "python": platform.python_version(),
                "tensorflow": tf.__version__,
                "keras": keras.__version__,
                "horovod": horovod.__version__,
                "numpy": np.__version__,
            },
        }


def open_session(config: Config, runtime: Runtime) -> Session:
    """Read the checkpoint and the data that the mode needs, build the network. Raises UserError on every rank."""
    folder = RunFolder(config.model_dir)
    found = None
    with runtime.together():
        _check_benchmark(config, runtime.size)
    with runtime.together():
        if runtime.first:
            found = _open_folder(config, folder)
    meta = hvd.broadcast_object(found.meta if found else None) if runtime.size > 1 else found and found.meta  # Horovod: rank 0 reads
    with runtime.together():
        config = _settle(config, found or Checkpoint(config.model_dir, {}, meta)) if meta else config
        data = _read_data(config, meta)
        if runtime.first:
            logger.start(config)
            _warn_of_seen_slices(config, meta)
    frame = Frame(tuple(map(input_size, OUTPUT_SIZE)), OUTPUT_SIZE)
    model = build_model(config.model, (*frame.input, 1), N_CLASSES, config.base_filters, config.seed, config.dropout)
    optimizer = build_optimizer(model, config.learning_rate, config.weight_decay) if config.trains else None
    with runtime.together():
        if found:
            checkpoint.restore(found, model, optimizer)
            if optimizer:
                optimizer.learning_rate = config.learning_rate
    checkpoint.broadcast(model, optimizer)
    return Session(config, runtime, folder, data, frame, model, optimizer, meta["step"] if meta and config.trains else 0)


def _check_benchmark(config: Config, ranks: int) -> None:
    if config.benchmark and config.max_steps // ranks <= config.warmup_steps:
        raise UsageError(
            f"--benchmark on {ranks} ranks: --max_steps {config.max_steps} leaves {config.max_steps // ranks} a rank, "
            f"which must exceed --warmup_steps {config.warmup_steps}"
        )


def _open_folder(config: Config, folder: RunFolder) -> Checkpoint | None:
    """Ready the folder for what the mode does there; the checkpoint to start from, where there is one to be."""
    if config.benchmark:
        return checkpoint.read_latest(folder) if config.predicts and checkpoint.has_checkpoint(folder) else None
    if config.trains:
        folder.prepare(config.resume_training, config.overwrite)
        own_or_empty = folder.written() or folder.empty()
        new = not config.resume_training or (own_or_empty and not checkpoint.has_checkpoint(folder))
        return None if new else checkpoint.read_latest(folder)
    found = checkpoint.read_latest(folder)
    if config.predicts:
        folder.check_writable()
    return found


def _settle(config: Config, found: Checkpoint) -> Config:
    """`config` with the settings that belong to the run it continues or uses."""
    names = ("model", "base_filters")
    if config.trains:
        names += ("fold", "seed")
    elif config.evaluates and found.meta["config"]["fold"] is not None:
        names += ("fold",)
    return dataclasses.replace(config, **checkpoint.adopt(config, found, names))


def _warn_of_seen_slices(config: Config, meta: dict | None) -> None:
    if config.evaluates and meta and meta["config"]["fold"] is None:
        report.warn(f"the network of {config.model_dir} was trained on all slices, so this score is not one of held-out slices")


def _read_data(config: Config, meta: dict | None) -> Data:
    directory = Path(config.data_dir)
    if not directory.is_dir():
        raise DataError(f"--data_dir {directory}: no such folder")
    volume = labels = test = None
    training = validation = np.arange(0)
    if config.trains or config.evaluates:
        volume, labels = data_io.read_pair(directory / "train-volume.tif", directory / "train-labels.tif")
        training, validation = split(len(volume.array), config.fold)
    if config.predicts:
        test = data_io.read_volume(directory / "test-volume.tif")
    bits, dtype = (meta["bits"], meta["dtype"]) if meta else (bit_depth(volume or test), str((volume or test).array.dtype))
    test_bits = prediction_bits(test, bits, dtype) if test else bits
    if test and test.array.max() >= 2**test_bits:
        report.warn(f"{test.path}: values above {2**test_bits - 1}, the range of the training ({test_bits} bits), are clipped")
    return Data(volume, labels, test, training, validation, bits, dtype, test_bits)
