"""Train, evaluate or predict: `python main.py --help`."""

import sys

from utils.cmd_util import parse_args
from utils.errors import UserError


def main(argv: list[str] | None = None) -> int:
    """Run one command line; the exit code: 0, 1 for data, 2 for usage."""
    config = parse_args(argv)
    try:
        from utils import setup  # not at the top: --help and argument errors answer without TensorFlow

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
    except UserError as error:
        if str(error):
            print(f"main.py: error: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
