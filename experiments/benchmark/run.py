"""The benchmarks: our models and others', side by side on the same ids.

    python run.py train --out runs/benchmark --rounds 5
    python run.py translate --out runs/decoding --text auto

Every peer is a process of its own, in its own environment, and only one computes at any
moment, so that whatever else the machine does falls on all alike. Times are divided by
ours of the same round; medians and quartiles are over the rounds. `results.json` and
`results.md` are what it writes.

Run it on a machine that does nothing else.
"""

import argparse
from pathlib import Path

import pages
from training import Training
from translating import Translating

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    for name, kind in {"train": Training, "translate": Translating}.items():
        command = commands.add_parser(name)
        command.set_defaults(kind=kind)
        command.add_argument(
            "--peers",
            nargs="+",
            default=list(kind.all_peers),
            help="with a variant after a colon, if any",
        )
        command.add_argument("--rounds", type=int, default=5)
        command.add_argument("--out", type=Path, default=Path(kind.out))
        kind.add_arguments(command.add_argument)
    options = parser.parse_args()
    benchmark = options.kind(options)
    benchmark.run()
    print(pages.markdown(benchmark.results))
