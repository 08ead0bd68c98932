"""What native code writes to the standard error, past Python."""

import contextlib
import os
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def held_stderr(show_on_failure: bool) -> Iterator[None]:
    """Hold back everything that the process writes to its standard error in a block; drop it, or show it after all if the block fails."""
    with tempfile.TemporaryFile() as held:
        saved = os.dup(2)
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            if show_on_failure:
                held.seek(0)
                os.write(saved, held.read())
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)
