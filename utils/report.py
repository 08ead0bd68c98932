"""What a loop tells while it runs and when it ends: running means, progress, timing."""

import sys

import numpy as np
from tqdm import tqdm

from utils import logger, timing
from utils.timing import Timer

CONSTANT = 0.02  # standard deviation of a slice's probabilities below which a prediction counts as constant


def warn(message: str) -> None:
    """Print a warning, set apart from the results."""
    print(f"main.py: warning: {message}", file=sys.stderr, flush=True)


class Means:
    """Means of named numbers over a logging interval."""

    def __init__(self):
        self.sums, self.count = {}, 0

    def add(self, scalars: dict[str, float]) -> None:
        self.sums = {name: self.sums.get(name, 0.0) + value for name, value in scalars.items()}
        self.count += 1

    def take(self) -> dict[str, float]:
        """The means since the last call, or since the start."""
        means = {name: float(total / self.count) for name, total in self.sums.items()}
        self.sums, self.count = {}, 0
        return means


class ConstantWatch:
    """Warns when predictions become constant: from step 100 on, once until they recover."""

    def __init__(self):
        self.warned = False

    def look(self, deviation: float, step: int) -> None:
        """Take note of an interval's mean deviation."""
        if step >= 100 and not self.warned:
            self.warned = warn_if_constant(deviation, f"step {step}")
        self.warned = self.warned and deviation < CONSTANT


def warn_if_constant(deviation: float, where: str) -> bool:
    """Warn where the probabilities hardly differ from pixel to pixel: the network has not learnt, or has collapsed."""
    constant = deviation < CONSTANT
    if constant:
        warn(
            f"{where}: predictions are almost constant (standard deviation {deviation:.4f}); "
            "train longer, lower --learning_rate, or look at the labels"
        )
    return constant


def progress(steps: range, first: bool):
    """`steps` with a bar on the first rank's terminal; as they are in a pipe, where the log lines tell."""
    return tqdm(steps, unit="step", leave=False) if first and sys.stderr.isatty() else steps


def report_timing(session, timer: Timer, mode: str, variables: list | None) -> None:
    """Gather every rank's times and tell them: a table, and throughput_<mode>, latency_<mode>_… in the log.

    The first batch, which compiles, is left out; of a benchmark the warm-up is. `variables` are those whose gradients are reduced.
    """
    batches = len(timer.seconds["step"])
    skip = min(session.config.warmup_steps if session.config.benchmark else 1, batches - 1)
    figures = timing.throughput(timer.batches(skip), session.config.batch_size)
    row = timing.rank_row(timer, skip)
    if variables is not None and session.runtime.size > 1:
        alone = timing.allreduce_alone_ms(variables)
        row |= {"allreduce_alone_ms": alone, "allreduce_share": alone / row["step_ms"]}
    rows = timing.gather(row)
    seconds, compilation = timer.elapsed(), timer.seconds["step"][0]
    if not session.runtime.first:
        return
    print(timing.table(rows), flush=True)
    rate, latency = figures["images_per_second"], figures["latency_mean"]
    summary = {f"throughput_{mode}": rate} | {f"{name[:7]}_{mode}_{name[8:]}": v for name, v in figures.items() if name[:7] == "latency"}
    logger.log((), {**summary, f"total_time_{mode}": seconds, f"compilation_{mode}": compilation})
    logger.log((), {f"timing_{mode}": rows}, screen=False)
    print(
        f"total time {timing.clock(seconds)}, average latency per batch {latency:.1f} ms, {rate:.3f} images/s "
        f"({batches - skip} batches on {session.runtime.size} ranks; without the first {skip}, compilation {compilation:.1f} s)",
        flush=True,
    )


def describe_probabilities(stack: np.ndarray) -> dict[str, float]:
    """Least, mean and greatest probability, their spread, and the share of pixels called interior."""
    spread = float(np.mean([page.std() for page in stack]))
    return {
        "probability_min": float(stack.min()),
        "probability_mean": float(stack.mean()),
        "probability_max": float(stack.max()),
        "probability_deviation": spread,
        "interior_share": float((stack >= 0.5).mean()),
    }
