"""Process-wide switches: environment, Horovod, devices, threads, precision, seeds, signals. Imported before anything else of TensorFlow."""

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

from utils.streams import held_stderr

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # must stand before the import that reads them
os.environ["TF_USE_LEGACY_KERAS"] = "0"


# TensorFlow complains of CUDA's plug-ins before any switch can tell it not to.
with held_stderr(show_on_failure=True):
    import tensorflow as tf

from utils.errors import AlreadyTold, PeerLost, UsageError, UserError  # noqa: E402

REBUILD = "run `make horovod`, which builds it anew"


def import_horovod():
    """The module horovod.tensorflow. Raises UserError where it is absent or was built for another TensorFlow."""
    try:
        files = metadata.files("horovod") or []
        built = json.loads(next(file for file in files if file.name == "metadata.json").read_text()).get("tensorflow")
    except (metadata.PackageNotFoundError, StopIteration):
        raise UserError("Horovod is not installed: run `make setup`") from None
    if built != tf.__version__:
        raise UserError(f"Horovod was built for TensorFlow {built}, but TensorFlow {tf.__version__} is installed: {REBUILD}")
    try:
        import horovod.tensorflow as hvd
    except (ImportError, tf.errors.OpError) as error:
        raise UserError(f"Horovod does not load ({str(error).splitlines()[0]}): {REBUILD}") from None
    return hvd


hvd = import_horovod()
from horovod.common import exceptions as hvd_errors  # noqa: E402


@contextlib.contextmanager
def peers_watched() -> Iterator[None]:
    """Turn the failure of a common operation, which means that another rank has ended, into PeerLost."""
    try:
        yield
    except (hvd_errors.HorovodInternalError, tf.errors.OpError) as error:
        # Horovod: inside a graph its error comes out as TensorFlow's, told apart by its words alone.
        if isinstance(error, tf.errors.OpError) and "orovod" not in str(error):
            raise
        raise PeerLost(f"rank {os.environ.get('HOROVOD_RANK', '0')}: another rank has ended; see above for the reason") from None


@dataclass(frozen=True)
class Runtime:
    """This process among the others."""

    rank: int
    size: int
    local_rank: int
    local_size: int

    @property
    def first(self) -> bool:
        return self.rank == 0

    def say(self, message: str) -> None:
        """Print a line, once for all ranks."""
        if self.first:
            print(message, flush=True)

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Run a block on every rank; when it fails on any, the first that failed says so and all end, none left waiting.

        Raises AlreadyTold on every rank.
        """
        error = None
        try:
            yield
        except UserError as caught:
            error = caught
        # Horovod: all ranks learn of every rank's outcome.
        codes = [error.exit_code if error else 0] if self.size == 1 else hvd.allgather_object(error.exit_code if error else 0)
        teller = next((rank for rank, code in enumerate(codes) if code), None)
        if teller is None:
            return
        if teller == self.rank:
            print(f"main.py: error: {error}", file=sys.stderr, flush=True)
        if self.size > 1:
            hvd.allgather_object(None)  # Horovod: nobody leaves before the line is out, as the launcher ends all when one does.
        raise AlreadyTold(codes[teller])


def _choose_devices(local_rank: int, local_size: int) -> None:
    """One GPU for each rank of a host that has any; all cores shared evenly by its ranks."""
    gpus = tf.config.list_physical_devices("GPU")
    if gpus and local_size > len(gpus):
        raise UsageError(f"{local_size} ranks on a host with {len(gpus)} GPUs: give horovodrun -np {len(gpus)} or fewer")
    if gpus:
        tf.config.set_visible_devices(gpus[local_rank], "GPU")  # Horovod: a rank's own card
        tf.config.experimental.set_memory_growth(gpus[local_rank], True)
    threads = max(1, len(os.sched_getaffinity(0)) // local_size)  # Horovod: ranks of one host do not fight for its cores
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(max(2, threads))


def amp_policy(amp_dtype: str) -> str:
    """Keras' name of the mixed precision to use: bfloat16 on CPUs and on GPUs from compute capability 8, else float16."""
    if amp_dtype == "auto":
        gpus = tf.config.get_visible_devices("GPU")
        capability = [tf.config.experimental.get_device_details(gpu).get("compute_capability", (0, 0)) for gpu in gpus]
        amp_dtype = "float16" if any(major < 8 for major, _ in capability) else "bfloat16"
    return f"mixed_{amp_dtype}"


def initialise(config) -> Runtime:
    """Start Horovod and set every switch that `config` asks for."""
    hvd.init()
    runtime = Runtime(hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size())
    with runtime.together():
        _choose_devices(runtime.local_rank, runtime.local_size)
    if config.amp:
        tf.keras.mixed_precision.set_global_policy(amp_policy(config.amp_dtype))
    tf.keras.utils.set_random_seed(config.seed)
    return runtime


class StopSignal:
    """Remembers SIGTERM and SIGINT, so that training can end between two steps; a second one ends the process at once."""

    def __init__(self):
        self.received: int | None = None
        self._before = {number: signal.signal(number, self._receive) for number in (signal.SIGTERM, signal.SIGINT)}

    def _receive(self, number: int, _frame) -> None:
        self.received = number
        self.restore()

    def restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
