"""The run's log: lines for people on the screen, JSON lines in a folder; written by dllogger where it is installed."""

import os
from pathlib import Path

from utils.errors import DataError

try:
    import dllogger
except ImportError:
    from utils import dllog as dllogger

METRICS = {
    "learning_rate": ("", ".2e"),
    "eval_ce_loss": ("nats", ".4f"),
    "eval_dice_loss": ("", ".4f"),
    "eval_total_loss": ("", ".4f"),
    "eval_dice_score": ("", ".4f"),
    "train_ce_loss": ("nats", ".4f"),
    "train_dice_loss": ("", ".4f"),
    "train_total_loss": ("", ".4f"),
    "gradient_norm": ("", ".3f"),
    "probability_deviation": ("", ".4f"),
    **{f"throughput_{mode}": ("images/s", ".3f") for mode in ("train", "test")},
    **{f"latency_{mode}_{part}": ("ms", ".1f") for mode in ("train", "test") for part in ("mean", "90", "95", "99")},
    **{f"{name}_{mode}": ("s", ".1f") for mode in ("train", "test") for name in ("total_time", "compilation")},
    **{f"probability_{name}": ("", ".4f") for name in ("min", "mean", "max")},
    "interior_share": ("", ".4f"),
}


def _format_step(step) -> str:
    return f"step {step}" if isinstance(step, int) else "summary" if step == () else str(step)


def log_path(config) -> Path | None:
    """Where the JSON lines of a run go: one file for each mode and fold, appended to; None without --log_dir."""
    if config.log_dir is None:
        return None
    fold = "" if config.fold is None else f"_fold{config.fold}"
    return Path(config.log_dir) / f"{config.exec_mode}{'_benchmark' if config.benchmark else ''}{fold}.json"


def _check_own(path: Path) -> None:
    if path.exists() and path.stat().st_size:
        with open(path, "rb") as file:
            if file.read(5) != b"DLLL ":
                raise DataError(f"{path}: is not a log of this program and is not appended to; choose another --log_dir")


def start(config) -> None:
    """Open the log on the one rank that writes it. Raises DataError where the folder cannot be written to."""
    backends = [dllogger.StdOutBackend(dllogger.Verbosity.DEFAULT, step_format=_format_step)]
    path = log_path(config)
    try:
        if path is not None:
            os.makedirs(config.log_dir, exist_ok=True)
            _check_own(path)
            backends.append(dllogger.JSONStreamBackend(dllogger.Verbosity.VERBOSE, str(path), append=True))
    except OSError as error:
        raise DataError(f"--log_dir {config.log_dir}: cannot be written to: {error.strerror}") from None
    dllogger.init(backends=backends)
    for metric, (unit, form) in METRICS.items():
        dllogger.metadata(metric, {"unit": unit, "format": f":{form}"})


def log(step, data: dict, screen: bool = True) -> None:
    """Log names to values; `step` is a step's number, or () for a summary of the run. Without `screen` into the JSON lines only."""
    dllogger.log(step=step, data=data, verbosity=dllogger.Verbosity.DEFAULT if screen else dllogger.Verbosity.VERBOSE)
    dllogger.flush()
