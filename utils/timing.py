"""Timing hooks on every rank and their gathering."""

import contextlib
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

PERCENTILES = (90, 95, 99)


class Timer:
    """Durations in seconds by name, one list each, and the time since it was made."""

    def __init__(self):
        self.start = time.perf_counter()
        self.seconds: dict[str, list[float]] = defaultdict(list)

    @contextlib.contextmanager
    def measure(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self.seconds[name].append(time.perf_counter() - begin)

    def waiting(self, batches: Iterable) -> Iterator:
        """The items of `batches`; the wait for each counts as "data"."""
        iterator = iter(batches)
        while True:
            begin = time.perf_counter()
            try:
                item = next(iterator)
            except StopIteration:
                return
            self.seconds["data"].append(time.perf_counter() - begin)
            yield item

    def elapsed(self) -> float:
        return time.perf_counter() - self.start

    def batches(self, skip: int) -> np.ndarray:
        """Seconds of each batch, waiting for its data included, without the first `skip`."""
        return np.array(self.seconds["data"][skip:]) + np.array(self.seconds["step"][skip:])


def gather(rows: dict[str, float]) -> list[dict[str, float]]:
    """The same figures of every rank, by rank."""
    return hvd.allgather_object(rows) if hvd.size() > 1 else [rows]  # Horovod: one dictionary from each rank


def throughput(batches: np.ndarray, images_per_batch: int) -> dict[str, float]:
    """Images per second over all ranks, and the latency of a batch in ms over all batches of all ranks: mean and percentiles."""
    ranks = [part["batches"] for part in gather({"batches": batches})]
    pooled = 1000 * np.concatenate(ranks)
    rate = sum(images_per_batch * part.size / part.sum() for part in ranks)
    return {"images_per_second": rate, "latency_mean": pooled.mean(), **{f"latency_{p}": np.percentile(pooled, p) for p in PERCENTILES}}


def allreduce_alone_ms(variables: list) -> float:
    """Milliseconds that all ranks take to average tensors of the gradients' sizes when nothing else runs: median of three."""
    tensors = [tf.zeros(variable.shape) for variable in variables]
    seconds = []
    for _ in range(3):
        hvd.allreduce(tf.zeros([]), name="start_together")  # Horovod: nobody's wait for a late rank is counted
        begin = time.perf_counter()
        hvd.grouped_allreduce(tensors)  # Horovod: as in a step, but not hidden behind the backward pass
        seconds.append(time.perf_counter() - begin)
    return 1000 * float(np.median(seconds))


def rank_row(timer: Timer, skip: int) -> dict[str, float]:
    """One rank's figures, milliseconds per batch: waiting for data, the step, both."""
    data, step = (1000 * float(np.mean(timer.seconds[name][skip:])) for name in ("data", "step"))
    return {"data_ms": data, "step_ms": step, "batch_ms": data + step, "data_share": data / (data + step)}


def table(rows: list[dict[str, float]]) -> str:
    """The figures of all ranks as text, a line a rank."""
    names = list(rows[0])
    lines = ["rank  " + "  ".join(f"{name:>18}" for name in names)]
    lines += [f"{rank:>4}  " + "  ".join(f"{row[name]:>18.3f}" for name in names) for rank, row in enumerate(rows)]
    return "\n".join(lines)


def clock(seconds: float) -> str:
    """HH:MM:SS."""
    whole = round(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
