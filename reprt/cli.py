"""The console command `reprt`."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from reprt import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status.

    Args:
        arguments: the command line; None for the process's own.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return options.command(options)
    except KeyboardInterrupt:
        print(
            "\nInterrupted. The same command goes on from the last checkpoint.",
            file=sys.stderr,
        )
        return 130
    except (ValueError, ArithmeticError, ImportError, OSError) as error:
        print(f"reprt: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="reprt",
        description="Reinforced position embedding (RePE) against its baseline: "
        "train both, compare them with the paper.",
    )
    parser.add_argument("--version", action="version", version=f"reprt {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    train = commands.add_parser(
        "train",
        help="train a recipe's models side by side and report on them",
        description="Trains the models of a recipe side by side, or goes on where it "
        "was interrupted, and writes report.md and report.png.",
    )
    train.add_argument("recipe", type=Path, help="a file such as those in experiments/")
    train.add_argument(
        "--pair", metavar="PAIR", help="one of the 14 pairs, e.g. az_to_en"
    )
    train.add_argument(
        "--text",
        metavar="SOURCE",
        help="auto, ted, embedded, or the path of a folder or archive",
    )
    train.add_argument(
        "--only", nargs="+", default=[], metavar="MODEL", help="train these models only"
    )
    train.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a setting of the recipe, e.g. training.epochs=2",
    )
    train.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="folder of the results; default runs/RECIPE/TEXT",
    )
    train.set_defaults(command=_train)

    report = commands.add_parser(
        "report",
        help="write the report of trained models again",
        description="Writes report.md and report.png from the runs in a folder.",
    )
    report.add_argument("folder", type=Path, help="a folder with run folders in it")
    report.set_defaults(command=_report)
    return parser


def _train(options) -> int:
    from reprt.training.recipe import load_recipe

    overrides = list(options.set)
    if options.pair:
        overrides.append(f"text.pair={_quoted(options.pair)}")
    if options.text:
        overrides.append(f"text.source={_quoted(options.text)}")
    recipe = load_recipe(options.recipe, overrides)

    from reprt.training.job import run_job

    report = run_job(recipe, only=options.only, out=options.out)
    print(report)
    return 0


def _quoted(text: str) -> str:
    """A string as TOML writes it, lest a folder called 2024 be taken for a number."""
    return json.dumps(text, ensure_ascii=False)


def _report(options) -> int:
    from reprt.report import write_report

    print(write_report(options.folder))
    return 0
