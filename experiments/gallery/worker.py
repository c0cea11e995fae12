"""Audits the models of one module, in its environment, and prints a JSON line for each.

    python worker.py transformers_models ['PACKAGE NAME' ...]

Models that are named have been audited, and are left out. The audit itself needs NumPy
only, so that it comes from the repository, by PYTHONPATH.
"""

import importlib
import importlib.metadata
import json
import signal
import sys
import time
import warnings

from reprt.analysis import audit

SECONDS = 300


class OutOfTime(BaseException):
    """No model's and no audit's own code takes it for an error of theirs."""


def out_of_time(number, frame):
    raise OutOfTime(f"it took more than {SECONDS} seconds")


def audit_row(entry):
    """Returns the findings on a model, or why there are none."""
    start = time.perf_counter()
    row = {
        "package": entry.package,
        "version": importlib.metadata.version(entry.package),
        "name": entry.name,
        "note": entry.note,
    }
    signal.alarm(SECONDS)
    try:
        findings = audit(entry.make(), **entry.options)
    # The row says what a model raises, whatever it is.
    except (Exception, OutOfTime) as error:
        lines = str(error).strip().splitlines() or [""]
        return row | {"error": f"{type(error).__name__}: {lines[0]}"}
    finally:
        signal.alarm(0)
    modes = {"evaluation": findings}
    if findings.training is not None:
        modes["training"] = findings.training
    for name, mode in modes.items():
        row[name] = {
            "looks_ahead": name in findings.leaking_modes,
            "neighbours": mode.depends_on_neighbours,
            "first": mode.first_offending,
        }
    return row | {"seconds": time.perf_counter() - start}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, out_of_time)
    module, *names = sys.argv[1:]
    for entry in importlib.import_module(module).entries():
        if f"{entry.package} {entry.name}" not in names:
            print(json.dumps(audit_row(entry)), flush=True)
