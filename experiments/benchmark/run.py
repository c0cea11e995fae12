"""The benchmarks: our models and others', side by side on the same ids.

    python run.py train --out runs/benchmark --rounds 5
    python run.py translate --out runs/decoding --text auto

Every peer is a process of its own, in its own environment, and only one computes at any
moment, so that whatever else the machine does falls on all alike. Times are divided by
ours of the same round; medians and quartiles are over the rounds.

`results.json` and `results.md` are written after every round. Run it on a machine that
does nothing else: PyTorch's threads wait by spinning, and a competitor for the cores
then costs it ten times its time.
"""

import argparse
from pathlib import Path

import pages
import training
import translating


def main():
    """Reads the command line and runs one of the two."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    for name, module, benchmark, peers, out in (
        ("train", training, training.Training, training.PEERS, "runs/benchmark"),
        (
            *("translate", translating, translating.Translating),
            *((*translating.BASELINES, *translating.INFORMATION), "runs/decoding"),
        ),
    ):
        command = commands.add_parser(name, help=module.__doc__.splitlines()[0])
        command.set_defaults(benchmark=benchmark)
        command.add_argument(
            "--peers",
            nargs="+",
            default=[*peers],
            help="names, each with a variant after a colon if it has any",
        )
        command.add_argument("--rounds", type=int, default=5)
        command.add_argument("--out", type=Path, default=Path(out))
        module.add_arguments(command)
    options = parser.parse_args()
    benchmark = options.benchmark(options)
    benchmark.run()
    print(pages.markdown(benchmark.found))


if __name__ == "__main__":
    main()
