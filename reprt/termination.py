"""SIGTERM, by which schedulers and machines ask a process to end.

A process that listens unwinds, as for Ctrl-C, and leaves nothing half-written. Code
that has to save first puts it off.
"""

import contextlib
import functools
import os
import signal
import sys
import threading
from collections.abc import Iterator

STATUS = 128 + signal.SIGTERM  # the shell's, of a process that ends so
MOMENT = 0.1  # seconds


class Terminated(SystemExit):
    """The process was asked to end."""

    def __init__(self):
        super().__init__(STATUS)


class _Request:
    """Whether the process was asked to end, and whether it puts that off."""

    asked = False
    put_off = False


_request = _Request()


def listen():
    """Lets SIGTERM raise `Terminated` in the main thread.

    Python ignores exceptions at some places, such as calls from its garbage collector.
    SIGTERM and SIGINT are put off there for a moment.
    """
    signal.signal(signal.SIGTERM, _note)
    sys.unraisablehook = functools.partial(_ignored, sys.unraisablehook)


def _ignored(usual, unraisable):
    signals = {KeyboardInterrupt: signal.SIGINT, Terminated: signal.SIGTERM}
    if again := signals.get(unraisable.exc_type):
        _request.asked = False  # because it raises once more
        threading.Timer(MOMENT, os.kill, (os.getpid(), again)).start()
    else:
        usual(unraisable)


def _note(number, frame):
    first, _request.asked = not _request.asked, True
    if first and not _request.put_off:  # what unwinds is not disturbed
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
