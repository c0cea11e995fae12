"""SIGTERM, by which schedulers and machines ask a process to end.

A process that listens unwinds, as for Ctrl-C, and leaves nothing half-written. Code
that has to save first puts it off.
"""

import contextlib
import signal
import types
from collections.abc import Iterator


class Terminated(SystemExit):
    """The process was asked to end; the status is the shell's of one that ends so."""

    def __init__(self, status: int = 128 + signal.SIGTERM):
        # It is an argument because pickle makes the error anew with its arguments.
        super().__init__(status)


# Whether the process was asked to end, and whether it puts that off.
_request = types.SimpleNamespace(asked=False, put_off=False)


def listen():
    """Lets SIGTERM raise `Terminated` in the main thread."""
    signal.signal(signal.SIGTERM, _note)


def _note(number, frame):
    was_asked = _request.asked
    _request.asked = True
    # A process that unwinds already is not disturbed.
    if not was_asked and not _request.put_off:
        raise Terminated


def asked() -> bool:
    """Returns whether SIGTERM has come."""
    return _request.asked


@contextlib.contextmanager
def put_off() -> Iterator[None]:
    """Only notes SIGTERM while it lasts; raises `Terminated` at its end."""
    _request.put_off = True
    try:
        yield
    finally:
        _request.put_off = False
    if _request.asked:
        raise Terminated
