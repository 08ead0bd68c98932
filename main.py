"""Train, evaluate or predict: `python main.py --help`."""

import os
import sys

from utils.cmd_util import parse_args
from utils.errors import AlreadyTold, UserError


def main(argv: list[str] | None = None) -> int:
    """Run one command line; the exit code: 0, 1 for data, 2 for usage, 128 and its number for a signal."""
    config = parse_args(argv)
    try:
        from utils import setup  # not at the top: --help and argument errors answer without TensorFlow

        with setup.peers_watched():
            runtime = setup.initialise(config)
            import run
            from utils.session import open_session

            session = open_session(config, runtime)
            if config.trains:
                run.train(session)
            if config.evaluates:
                run.evaluate(session)
            if config.predicts:
                run.predict(session)
    except AlreadyTold as told:
        return told.exit_code
    except UserError as error:
        if not error.on_all_ranks or os.environ.get("HOROVOD_RANK", "0") == "0":
            print(f"main.py: error: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
