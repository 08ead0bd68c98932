"""Errors that are about the user's input: one line on the screen, no traceback."""


class UserError(Exception):
    """Something that the user can mend; the message is one line that names the file or flag, the value received and the values allowed."""

    exit_code = 1
    on_all_ranks = False  # True where every rank raises it at the same place, so that one of them is enough to tell


class DataError(UserError):
    """A file is missing, unreadable or not what it must be."""


class UsageError(UserError):
    """Flags that contradict each other or what they are used on."""

    exit_code = 2


class AlreadyTold(UserError):
    """Ends a rank after the message has been printed by one of them."""

    def __init__(self, exit_code: int):
        super().__init__("already told")
        self.exit_code = exit_code


class Stopped(UserError):
    """A signal ended the training between two steps, after its checkpoint was written."""

    on_all_ranks = True

    def __init__(self, message: str, number: int):
        super().__init__(message)
        self.exit_code = 128 + number


class Diverged(UserError):
    """The loss or its gradient is not a finite number."""

    on_all_ranks = True


class PeerLost(UserError):
    """Another rank has ended in the middle of a common operation."""
