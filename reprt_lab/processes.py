"""Calls that leave no memory behind."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from reprt import termination


def in_own_process(function: Callable, *arguments):
    """Calls a function in a process of its own, whose memory goes with it.

    TensorFlow keeps graphs of every model that a process has trained. Ctrl-C and
    SIGTERM ask the process to end, and the caller waits until it has saved its work.
    The end of the caller ends it, too. A lost process is a `ChildProcessError`.
    """
    context = multiprocessing.get_context("spawn")
    siblings = set(multiprocessing.active_children())
    with ProcessPoolExecutor(1, context, _begin) as pool:
        try:
            # The process inherits that it is deaf to Ctrl-C.
            handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
            try:
                call = pool.submit(function, *arguments)
            finally:
                signal.signal(signal.SIGINT, handler)
            return call.result()
        except BrokenProcessPool as error:
            raise ChildProcessError(
                "A process of this job was lost, perhaps because memory ran out. The "
                "same command resumes from its last checkpoint."
            ) from error
        finally:
            # It has answered, or the caller was interrupted.
            for process in set(multiprocessing.active_children()) - siblings:
                process.terminate()


def _begin():
    termination.listen()
    threading.Thread(target=_end_with_the_caller, daemon=True).start()


def _end_with_the_caller():
    caller = multiprocessing.parent_process()
    assert caller is not None
    caller.join()
    os._exit(1)
