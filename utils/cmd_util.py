"""Command line → Config: the single source of names, defaults and help. Imports no TensorFlow."""

import argparse
import dataclasses
import os
import sys
from dataclasses import dataclass

from model import MODEL_NAMES

EXEC_MODES = ("train", "train_and_predict", "predict", "evaluate", "train_and_evaluate")
N_FOLDS = 5


@dataclass(frozen=True)
class Config:
    """One run's settings: made and checked once by `parse_args`, never edited. `explicit` holds the names given on the command line."""

    data_dir: str
    exec_mode: str = "train"
    model_dir: str = "/results"
    log_dir: str | None = None
    model: str = "unet"
    base_filters: int = 64
    batch_size: int = 1
    learning_rate: float = 1e-4
    fold: int | None = None
    max_steps: int = 1000
    weight_decay: float = 5e-4
    dropout: float = 0.5
    log_every: int = 100
    evaluate_every: int = 0
    save_every: int = 200
    warmup_steps: int = 200
    seed: int = 0
    augment: bool = False
    benchmark: bool = False
    amp: bool = False
    amp_dtype: str = "auto"
    xla: bool = False
    resume_training: bool = False
    overwrite: bool = False
    explicit: frozenset[str] = frozenset()

    @property
    def trains(self) -> bool:
        return self.exec_mode.startswith("train")

    @property
    def evaluates(self) -> bool:
        return self.exec_mode.endswith("evaluate")

    @property
    def predicts(self) -> bool:
        return self.exec_mode.endswith("predict")

    def to_dict(self) -> dict:
        """Every setting by its flag's name, ready for JSON."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "explicit"}


class Parser(argparse.ArgumentParser):
    """An argument parser that says an error once, not once a rank."""

    def error(self, message: str):
        if os.environ.get("HOROVOD_RANK", "0") == "0":
            print(f"{self.prog}: error: {message}", file=sys.stderr)
        raise SystemExit(2)


def number(kind: type, least: float, strict: bool = False, below: float = float("inf")):
    """An argparse type: a number of `kind` that is at least (`strict`: above) `least` and below `below`."""
    bound = f"{'above' if strict else 'of at least'} {least}" + (f" and below {below}" if below < float("inf") else "")

    def convert(text: str):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value < below or (strict and value == least):
            raise argparse.ArgumentTypeError(f"{text!r} is not a {'whole number' if kind is int else 'number'} {bound}")
        return value

    return convert


def build_parser() -> argparse.ArgumentParser:
    """The parser. Its defaults are suppressed, so that what comes out is what was given; the defaults proper are Config's."""
    parser = Parser(
        prog="main.py",
        description="U-Net for biomedical image segmentation, trained data-parallel with Horovod.",
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    defaults = {field.name: field.default for field in dataclasses.fields(Config)}

    def add(name: str, text: str, *aliases: str, **options):
        shown = "" if options.get("required") else f" (default: {defaults[name]})"
        parser.add_argument(f"--{name}", *aliases, dest=name, help=text.replace("%", "%%") + shown, **options)

    def switch(name: str, text: str, *aliases: str):
        add(name, text, *aliases, action=argparse.BooleanOptionalAction)

    add("exec_mode", "what to do", choices=EXEC_MODES)
    add("data_dir", "folder with train-volume.tif, train-labels.tif and test-volume.tif", required=True)
    add("model_dir", "folder for checkpoints and predictions")
    add("log_dir", "folder for the JSON log lines")
    add("model", "network", choices=MODEL_NAMES)
    add("base_filters", "channels of the first level; doubled at every level below", type=number(int, 1))
    add("batch_size", "images per step and rank", type=number(int, 1))
    add("learning_rate", "learning rate of Adam", type=number(float, 0, strict=True))
    add("fold", "fold held out, 0 to 4; none: train on everything", "--crossvalidation_idx", type=int, choices=range(N_FOLDS))
    add("max_steps", "training steps, divided by the number of ranks; batches, for a prediction benchmark", type=number(int, 1))
    add("weight_decay", "decoupled weight decay on the kernels, per step and unit of learning rate", type=number(float, 0))
    add("dropout", "share of the bottom's activations dropped while training", type=number(float, 0, below=1))
    add("log_every", "steps between log lines", type=number(int, 1))
    add("evaluate_every", "steps between evaluations while training with train_and_evaluate; 0: at the end only", type=number(int, 0))
    add("save_every", "steps between checkpoints; 0: at the end only", type=number(int, 0))
    add("warmup_steps", "first steps that a benchmark leaves out", type=number(int, 0))
    add("seed", "seed of the initial weights, the data order, augmentation and dropout", type=number(int, 0))
    switch("augment", "random flips, crops and brightness shifts while training")
    switch("benchmark", "measure throughput and latency of train or predict; writes nothing")
    switch("amp", "mixed precision", "--use_amp")
    add("amp_dtype", "16-bit type of mixed precision; auto: bfloat16 where it is fast", choices=("auto", "bfloat16", "float16"))
    switch("xla", "compile with XLA", "--use_xla")
    switch("resume_training", "go on from the last checkpoint in model_dir")
    switch("overwrite", "replace what an earlier run wrote in model_dir; other files stay")
    return parser


def check(config: Config) -> str | None:
    """What is wrong with the combination of flags, or None."""
    if config.evaluates and config.fold is None:
        return f"--exec_mode {config.exec_mode} needs --fold: choose from 0 to {N_FOLDS - 1}"
    if config.benchmark and config.exec_mode not in ("train", "predict"):
        return f"--benchmark measures --exec_mode train or predict, not {config.exec_mode}"
    if config.benchmark and config.max_steps <= config.warmup_steps:
        return f"--benchmark needs --max_steps above --warmup_steps: received {config.max_steps} and {config.warmup_steps}"
    if config.benchmark and (config.resume_training or config.overwrite):
        return "--benchmark leaves --model_dir alone: it goes with neither --resume_training nor --overwrite"
    if config.evaluate_every and config.exec_mode != "train_and_evaluate":
        return f"--evaluate_every goes with --exec_mode train_and_evaluate, not {config.exec_mode}"
    if config.resume_training and config.overwrite:
        return "--resume_training and --overwrite exclude each other"
    if config.resume_training and not config.trains:
        return f"--resume_training goes with the training modes, not {config.exec_mode}"
    if "amp_dtype" in config.explicit and not config.amp:
        return "--amp_dtype needs --amp"
    if os.path.realpath(config.model_dir) == os.path.realpath(config.data_dir):
        return f"--model_dir and --data_dir are the same folder: {config.model_dir}"
    return None


def parse_args(argv: list[str] | None = None) -> Config:
    """The checked Config of a command line. Prints one line and exits with 2 where it is not valid."""
    parser = build_parser()
    given = vars(parser.parse_args(argv))
    config = Config(**given, explicit=frozenset(given))
    problem = check(config)
    if problem:
        parser.error(problem)
    return config
