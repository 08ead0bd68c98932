"""The output folder: what the program wrote is listed in `written.json`, and only that is ever replaced or removed."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from utils.errors import DataError, UsageError

MANIFEST = "written.json"


class RunFolder:
    """A folder that holds one run. Files appear under their name only when they are complete."""

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)

    def written(self) -> list[str]:
        """Names, relative to the folder, of all files that the program wrote into it."""
        try:
            return json.loads((self.path / MANIFEST).read_text())
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise DataError(f"{self.path / MANIFEST}: cannot be read: {error}") from None

    def empty(self) -> bool:
        """Whether the folder holds nothing at all."""
        return not any(self.path.iterdir())

    def prepare(self, resume: bool, overwrite: bool) -> None:
        """Check that a training may use the folder; nothing in it changes. Raises UsageError where it holds something and neither flag
        is given, DataError where it cannot be made or written to."""
        self.create()
        if not self.empty() and not (resume or overwrite):
            raise UsageError(f"--model_dir {self.path} is not empty: choose another, or give --resume_training or --overwrite")
        self.check_writable()
        self.written()

    def create(self) -> None:
        """Make the folder where it is not there yet. Raises DataError."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"--model_dir {self.path}: cannot be created: {error.strerror}") from None

    def check_writable(self) -> None:
        """Raises DataError where no file can be written into the folder."""
        try:
            with tempfile.TemporaryFile(dir=self.path) as file:
                file.write(b"1")
        except OSError as error:
            raise DataError(f"--model_dir {self.path}: cannot be written to: {error.strerror}") from None

    @contextlib.contextmanager
    def replacing(self, name: str) -> Iterator[Path]:
        """A path to write `name` to; when the block ends well it is flushed to disk and takes its name, when not it is removed.

        Raises DataError where a file of that name is not the program's own, or the disk refuses.
        """
        target = self.path / name
        part = target.with_name(target.name + ".part")
        if target.exists() and name not in self.written():
            raise DataError(f"{target}: was not written by this program and is not overwritten; move it away")
        try:
            target.parent.mkdir(exist_ok=True)
            yield part
            _flush(part)
            self._write_manifest(sorted({*self.written(), name}))
            os.replace(part, target)
            _flush(target.parent)
        except OSError as error:
            raise DataError(f"{target}: cannot be written: {error.strerror or error}") from None
        finally:
            part.unlink(missing_ok=True)

    def write_text(self, name: str, text: str) -> None:
        """Write a small text file. Raises DataError."""
        with self.replacing(name) as path:
            path.write_text(text + "\n", encoding="utf-8")

    def remove(self, names: list[str]) -> None:
        """Remove files that the program wrote; any other name is left alone."""
        own = self.written()
        for name in set(names) & set(own):
            (self.path / name).unlink(missing_ok=True)
        self._write_manifest([name for name in own if name not in names])

    def _write_manifest(self, names: list[str]) -> None:
        part = self.path / (MANIFEST + ".part")
        part.write_text(json.dumps(names, indent=1))
        _flush(part)
        os.replace(part, self.path / MANIFEST)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
