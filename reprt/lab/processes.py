"""Calls that leave no memory behind."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable

from reprt import termination


def in_own_process(function: Callable, *arguments):
    """Calls a function in a process of its own, whose memory goes with it.

    TensorFlow keeps graphs of every model that a process has trained. Ctrl-C reaches
    the caller alone. Ctrl-C and SIGTERM ask the process to end, and the caller waits
    until it has saved its work. The end of the caller ends it, too.

    Args:
        function: of a module; what it takes and returns can be pickled.
        *arguments: the function's.

    Returns:
        What the function returned.

    Raises:
        ChildProcessError: if the process was lost, perhaps because memory ran out.
        Exception: whatever the function raised.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, function, arguments))
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which the process inherits
    try:
        process.start()
    except BrokenPipeError:  # which would be taken for that of a closed output
        raise ChildProcessError("A process of this job was lost as it began.") from None
    finally:
        signal.signal(signal.SIGINT, usual)
    sender.close()
    try:
        result, error = receiver.recv()
    except EOFError:
        process.join()
        raise ChildProcessError(
            f"A process of this job was lost; it ended with status {process.exitcode}. "
            "The same command goes on from its last checkpoint."
        ) from None
    finally:
        receiver.close()
        process.terminate()  # it has answered, or the caller was interrupted
        process.join()
    if error is not None:
        raise error
    return result


def _answer(sender, function, arguments):
    threading.Thread(target=_end_with_the_caller, daemon=True).start()
    termination.listen()
    try:
        result, raised = function(*arguments), None
    except Exception as error:
        result, raised = None, error
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # nothing is left to be saved
    sender.send((result, raised))


def _end_with_the_caller():
    caller = multiprocessing.parent_process()
    assert caller is not None
    multiprocessing.connection.wait([caller.sentinel])
    os._exit(1)
