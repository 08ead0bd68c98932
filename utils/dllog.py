"""Log lines in the format of NVIDIA's dllogger, for machines that lack it: the same few functions and classes, the same lines."""

import json
import time
from datetime import datetime

_backends: list = []
_start = time.time()


class Verbosity:
    """How much a backend shows: what is logged at its own level or below."""

    OFF, DEFAULT, VERBOSE = -1, 0, 1


class StdOutBackend:
    """Lines for people: `DLL <datetime> - <step> name : value unit …`."""

    def __init__(self, verbosity: int, step_format=str):
        self.verbosity, self.step_format, self.known = verbosity, step_format, {}

    def metadata(self, now: datetime, metric: str, metadata: dict) -> None:
        self.known.setdefault(metric, {}).update(metadata)

    def log(self, now: datetime, step, data: dict) -> None:
        print(f"DLL {now} - {self.step_format(step)}", *(self._item(name, value) for name, value in data.items()), flush=True)

    def _item(self, name: str, value) -> str:
        known = self.known.get(name, {})
        shown = f"{{{known['format']}}}".format(value) if "format" in known and value is not None else value
        return f"{name} : {shown} {known.get('unit', '')}"

    def flush(self) -> None:
        """Nothing to do: every line is flushed."""


class JSONStreamBackend:
    """Lines for programs: `DLLL {json}`, each flushed, so that a killed run leaves what it has logged."""

    def __init__(self, verbosity: int, filename: str, append: bool = False):
        self.verbosity = verbosity
        self.file = open(filename, "a" if append else "w", encoding="utf-8")  # noqa: SIM115 open for the life of the process, as in dllogger

    def _write(self, now: datetime, kind: str, **fields) -> None:
        elapsed = time.time() - _start
        times = {"timestamp": str(now.timestamp()), "datetime": str(now), "elapsedtime": str(elapsed)}
        self.file.write("DLLL " + json.dumps({**times, "type": kind, **fields}) + "\n")
        self.file.flush()

    def metadata(self, now: datetime, metric: str, metadata: dict) -> None:
        self._write(now, "METADATA", metric=metric, metadata=metadata)

    def log(self, now: datetime, step, data: dict) -> None:
        self._write(now, "LOG", step=step, data=data)

    def flush(self) -> None:
        self.file.flush()


def init(backends: list) -> None:
    """Send what is logged from now on to `backends`."""
    _backends[:] = backends


def log(step, data: dict, verbosity: int = Verbosity.DEFAULT) -> None:
    """Log `data`, names to values; `step` is a number, a tuple of numbers, or () for a summary."""
    now = datetime.now()
    for backend in _backends:
        if backend.verbosity >= verbosity:
            backend.log(now, step, data)


def metadata(metric: str, metadata: dict) -> None:
    """Tell the unit and format of a metric, e.g. {"unit": "ms", "format": ":.2f"}."""
    now = datetime.now()
    for backend in _backends:
        backend.metadata(now, metric, metadata)


def flush() -> None:
    """Bring everything logged so far to its place."""
    for backend in _backends:
        backend.flush()
