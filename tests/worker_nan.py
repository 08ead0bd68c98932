"""A training in which rank 1 alone meets a NaN in its second batch."""

import sys

sys.path.insert(0, sys.argv[1])

import main  # noqa: E402
from utils import data_loader  # noqa: E402

whole = data_loader.training_batches


def poisoned(session, start, stop):
    for number, (images, labels) in enumerate(whole(session, start, stop), start + 1):
        yield images * float("nan" if number == 2 and session.runtime.rank == 1 else 1), labels


data_loader.training_batches = poisoned
sys.exit(main.main(sys.argv[2:]))
