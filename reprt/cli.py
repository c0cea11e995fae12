"""The console command `reprt`."""

import argparse
import contextlib
import dataclasses
import importlib.util
import json
import math
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from reprt import __version__, termination
from reprt.constants import (
    AUDITED_TOKENS,
    LENGTH_PENALTY,
    MOST_BEAMS,
    QUANTIZATIONS,
    STEEPEST_PENALTY,
)
from reprt.reports.registry import PAGES, page_on
from reprt.termination import Terminated

FAILED = 2  # argparse's own; 1 is left to `reprt audit`, for a model that looks ahead
BACKENDS = ("tensorflow", "jax", "torch", "numpy", "openvino")  # Keras has them
NO_READER = 141  # the shell's, of a command whose output nobody reads any more


class WrongValue(ValueError):
    """A value that an option or argument cannot take."""


class _CommandParser(argparse.ArgumentParser):
    """Reads the arguments of a command; tells a wrong value in one line."""

    def error(self, message):
        if message.startswith("argument "):
            raise WrongValue(message)
        super().error(message)


def _number(kind, least, most=math.inf):
    """Returns the type of an option that takes a number from `least` to `most`."""
    name = "a whole number" if kind is int else "a number"
    upper = f"at least {least}" if most == math.inf else f"from {least} to {most}"

    def number(text):
        with contextlib.suppress(ValueError):
            if least <= kind(text) <= most:
                return kind(text)
        raise argparse.ArgumentTypeError(
            f"Expected {name}, {upper}. Received: {text!r}."
        )

    return number


def _name(text):
    """The type of what names something: it is not empty, and can stand in a file."""
    with contextlib.suppress(UnicodeEncodeError):
        if text.encode():
            return text
    raise argparse.ArgumentTypeError(
        f"Expected a name in UTF-8 that is not empty. Received: {text!r}."
    )


def _path(text):
    return Path(_name(text))


def _folder(text):
    """The type of a folder that is made if it is not there."""
    path = _path(text)
    if path.exists() and not path.is_dir():
        raise argparse.ArgumentTypeError(f"Expected a folder. {path} is a file.")
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status.

    Args:
        arguments: the command line; None for the process's own.
    """
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _close_output()
        return NO_READER
    except OSError as error:
        status = _failed(f"Expected to write to standard output. Received: {error}.")
        _close_output()
        return status


def _run(arguments) -> int:
    parser = _parser()
    try:
        options, rest = parser.parse_known_args(arguments)
    except WrongValue as error:
        return _failed(str(error))
    # argparse ends a list of arguments at the first option.
    if rest and (options.command is not _translate or any(map(_is_option, rest))):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        options.sentences += rest
    try:
        if options.command not in (_page, _freeze):  # which load no Keras
            _check_backend()
        return options.command(options)
    except (KeyboardInterrupt, Terminated) as ending:
        asked = isinstance(ending, Terminated)
        goes_on = " The same command goes on from the last checkpoint."
        print(
            "Terminated." if asked else "\nInterrupted.",
            goes_on if options.command is _train else "",
            sep="",
            file=sys.stderr,
        )
        return termination.STATUS if asked else 130
    except BrokenPipeError:
        raise
    except (ValueError, ArithmeticError, ImportError, OSError) as error:
        missing = isinstance(error, ImportError) and "pip install" not in str(error)
        extras = ". The commands need the packages of `pip install '.[train]'`."
        return _failed(f"{error}{extras if missing else ''}")
    except BaseException as error:
        if options.command is not _audit:
            raise
        # An exit of someone's model would be taken for the verdict.
        return _failed(f"The audit of {options.model} failed: {_in_short(error)}")


def _check_backend():
    """Says what is wrong with KERAS_BACKEND before anything is loaded."""
    backend = os.environ.get("KERAS_BACKEND")
    if not backend:
        return
    if backend not in BACKENDS:
        raise ValueError(
            f"Expected KERAS_BACKEND to be one of {', '.join(BACKENDS)}. Received: "
            f"{backend!r}."
        )
    if importlib.util.find_spec(backend) is None:
        raise ValueError(
            f"Expected the package of KERAS_BACKEND={backend} to be installed. It is "
            f"missing: pip install {backend}."
        )


def _close_output():
    """Python would write what is left once more as it ends, and fail at that."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.close()


def _failed(why: str) -> int:
    """Says why a command did nothing, and returns the status of that."""
    print(f"reprt: {why}", file=sys.stderr)
    return FAILED


def _in_short(error: BaseException) -> str:
    """An error of someone else's code, which may be of any kind, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="reprt",
        description="Reinforced position embedding (RePE) against its baseline: "
        "train both, compare them with the paper.",
    )
    parser.add_argument("--version", action="version", version=f"reprt {__version__}")
    commands = parser.add_subparsers(
        required=True, metavar="COMMAND", parser_class=_CommandParser
    )

    for add in (
        _train_parser,
        _page_parsers,
        _freeze_parser,
        _translate_parser,
        _evaluate_parser,
        _attention_parser,
        _export_parser,
        _audit_parser,
    ):
        add(commands)
    return parser


def _train_parser(commands):
    parser = commands.add_parser(
        "train",
        help="train a recipe's models side by side and report on them",
        description="Trains the models of a recipe side by side, or goes on where it "
        "was interrupted, and writes report.md and report.png.",
    )
    _add_recipe(parser)
    parser.add_argument(
        "--only",
        type=_name,
        nargs="+",
        default=[],
        metavar="MODEL",
        help="train these models only",
    )
    parser.add_argument(
        "--out",
        type=_folder,
        metavar="FOLDER",
        help="folder of the results; default runs/RECIPE/TEXT",
    )
    parser.add_argument(
        "--plan",
        action="store_true",
        help="only say what there is left to do, and what it costs: parameters, "
        "tokens, and floating-point operations by two rules",
    )
    parser.add_argument(
        "--ray",
        type=_name,
        nargs="?",
        const="here",
        metavar="ADDRESS",
        help="several runs at once, one a device, handed out by Ray: on this machine, "
        "or on the cluster with this address; its machines share --out. It stands "
        "after RECIPE",
    )
    parser.add_argument(
        "--cpus",
        type=_number(int, 1),
        metavar="N",
        help="with --ray, cores of each run; default 1",
    )
    parser.set_defaults(command=_train)


def _page_parsers(commands):
    for name, page in PAGES.items():
        if name == "comparison":  # what `report` is on trials
            continue
        parser = commands.add_parser(
            name,
            help=f"{page.help}, from result files",
            description=f"Writes {name}.md and its pictures from the runs in a folder. "
            "It trains nothing, and marks what was not run.",
        )
        parser.add_argument(
            "folder",
            type=_path,
            help="a folder with run folders in it, or with a folder of them for each "
            "text",
        )
        parser.set_defaults(command=_page, page=name)


def _freeze_parser(commands):
    parser = commands.add_parser(
        "freeze",
        help="put the results of runs into a few files",
        description="Writes recipe.toml, runs.csv, epochs.csv and provenance.json from "
        "the runs in a folder, with its notes.md and its pages, which can be written "
        "again from these files alone. Checkpoints, models and vocabularies stay "
        "where they are.",
    )
    parser.add_argument(
        "runs",
        type=_path,
        metavar="RUNS",
        help="a folder with run folders in it, or with a folder of them for each text",
    )
    _add_out(parser, "RUNS-frozen")
    parser.set_defaults(command=_freeze)


def _translate_parser(commands):
    parser = commands.add_parser(
        "translate",
        help="translate sentences",
        description="Translates sentences, one a line and in order, from arguments, a "
        "file or standard input. Remarks on a line go to standard error.",
    )
    _add_run(parser)
    parser.add_argument("sentences", nargs="*", metavar="SENTENCE")
    parser.add_argument(
        "--file", type=_path, metavar="FILE", help="translate the lines of a file"
    )
    _add_search(parser, beam_size=4)
    parser.add_argument(
        "--n-best",
        type=_number(int, 1),
        default=1,
        metavar="N",
        help="lines for each sentence, from the best: its number, score and text, "
        "separated by tabs",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="one JSON object a line, with tokens, scores and remarks",
    )
    parser.set_defaults(command=_translate)


def _evaluate_parser(commands):
    parser = commands.add_parser(
        "evaluate",
        help="losses, BLEU and chrF of a trained model",
        description="Measures a model on the dev or test split of its text: "
        "teacher-forced loss, prefix loss (the decoder is given only the tokens before "
        "each position, as in search), BLEU and chrF. Writes evaluation-SPLIT.json and "
        ".md into the run's folder.",
    )
    _add_run(parser)
    parser.add_argument("--split", choices=("dev", "test"), default="test")
    _add_text_of_run(parser)
    _add_search(parser, beam_size=1)
    parser.set_defaults(command=_evaluate)


def _attention_parser(commands):
    parser = commands.add_parser(
        "attention",
        help="draw what a model attends to",
        description="Translates a sentence and draws attention: every head of the last "
        "layer as a picture, attention.png, and all of them as a page to explore, "
        "attention.html.",
    )
    _add_run(parser)
    parser.add_argument("sentence", metavar="SENTENCE")
    _add_search(parser, beam_size=1)
    _add_out(parser, "the run's folder")
    parser.set_defaults(command=_attention)


def _export_parser(commands):
    parser = commands.add_parser(
        "export",
        help="write a SavedModel from strings to strings, and a .keras file",
        description="Writes saved_model, which takes and returns strings and needs "
        "only TensorFlow and tensorflow-text, and model.keras; or the folder "
        "ctranslate2, which CTranslate2 runs, for encoder-decoder Transformers that it "
        "knows.",
    )
    _add_run(parser)
    parser.add_argument(
        "--to",
        choices=("tensorflow", "ctranslate2"),
        default="tensorflow",
        help="what is to run the model; default %(default)s",
    )
    parser.add_argument(
        "--quantization",
        choices=QUANTIZATIONS,
        default=QUANTIZATIONS[0],
        help="with --to ctranslate2, how matrices are kept; default %(default)s",
    )
    _add_search(parser, beam_size=1)
    _add_out(parser, "RUN/export")
    parser.set_defaults(command=_export)


def _audit_parser(commands):
    parser = commands.add_parser(
        "audit",
        help="does position t depend on tokens after t?",
        description="Looks for dependence of the decoder's positions on later target "
        "tokens, by perturbation, truncation and gradient. Exit status: 0 if there is "
        "none, 1 if there is, 2 if it could not be found out.",
    )
    parser.add_argument(
        "model",
        type=_path,
        metavar="MODEL_OR_RUN",
        help="a run folder, or a .keras file of a model called on the pair of source "
        "and target ids",
    )
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}-vocab",
            type=_number(int, 1),
            metavar="N",
            help=f"{side} ids",
        )
    parser.add_argument(
        "--length",
        type=_number(int, 3),
        metavar="N",
        help="tokens of the target; the source has two more; default what the model "
        f"is built for, or else {AUDITED_TOKENS}",
    )
    parser.add_argument("--seed", type=_number(int, 0), default=0, metavar="N")
    parser.add_argument(
        "--module",
        type=_path,
        action="append",
        default=[],
        metavar="FILE",
        help="a Python file that registers the model's own classes with Keras",
    )
    parser.set_defaults(command=_audit)


def _add_recipe(parser):
    """Adds a recipe, and options that take precedence over it."""
    parser.add_argument(
        "recipe",
        type=_path,
        metavar="RECIPE",
        help="a recipe of the package, e.g. pt_to_en, or a TOML file",
    )
    parser.add_argument(
        "--pair",
        type=_name,
        nargs="+",
        default=[],
        metavar="PAIR",
        help="these pairs, one after the other: of the 14, e.g. az_to_en, or with the "
        "same layout",
    )
    parser.add_argument(
        "--text",
        type=_name,
        metavar="SOURCE",
        help="auto, ted, embedded, wmt14, or the path of a folder or archive",
    )
    parser.add_argument(
        "--set",
        type=_name,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a setting of the recipe, e.g. training.epochs=2",
    )


def _add_run(parser):
    parser.add_argument(
        "run", type=_path, metavar="RUN", help="a run folder, as `reprt train` makes it"
    )


def _add_text_of_run(parser):
    parser.add_argument(
        "--text",
        type=_name,
        metavar="SOURCE",
        help="where the text is now, if not where the run found it",
    )


def _add_search(parser, beam_size):
    parser.add_argument(
        "--beam",
        type=_number(int, 1, MOST_BEAMS),
        default=beam_size,
        metavar="SIZE",
        help="hypotheses of each sentence; 1 is greedy search; default %(default)s",
    )
    parser.add_argument(
        "--length-penalty",
        type=_number(float, 0, STEEPEST_PENALTY),
        metavar="ALPHA",
        help="with several hypotheses, 0 ranks by probability alone; default "
        f"{LENGTH_PENALTY}",
    )
    parser.add_argument(
        "--max-tokens",
        type=_number(int, 1),
        metavar="N",
        help="longest translation; default the sentence's length plus 50",
    )


def _search(options):
    penalty = options.length_penalty
    # A single hypothesis is ranked among no others; --json prints its score.
    if penalty is not None and options.beam == 1 and not vars(options).get("json"):
        raise ValueError(
            "Expected --length-penalty with a --beam of at least 2: it ranks "
            f"hypotheses. Received: {penalty} and {options.beam}."
        )
    return {
        "beam_size": options.beam,
        "length_penalty": LENGTH_PENALTY if penalty is None else penalty,
        "max_tokens": options.max_tokens,
    }


def _add_out(parser, default):
    parser.add_argument(
        "--out",
        type=_folder,
        metavar="FOLDER",
        help=f"where the files go; default {default}",
    )


def _recipe(options):
    from reprt.runs.recipe import load_recipe

    overrides = list(options.set)
    if options.pair:
        overrides.append(f"trials.pairs=[{', '.join(map(_quoted, options.pair))}]")
    if options.text:
        overrides.append(f"text.source={_quoted(options.text)}")
    return load_recipe(options.recipe, overrides)


def _train(options) -> int:
    recipe = _recipe(options)
    if options.cpus is not None and not options.ray:
        raise ValueError("Expected --ray with --cpus, the cores of each of its runs.")
    if options.ray and options.plan:
        raise ValueError("Expected --plan or --ray. Received both.")
    if options.ray:
        from reprt.jobs.ray_executor import run_on_ray

        where = options.ray, 1 if options.cpus is None else options.cpus
        print(run_on_ray(recipe, options.only, options.out, *where))
        return 0

    from reprt.jobs.job import run_job

    print(run_job(recipe, options.only, options.out, plan_only=options.plan))
    return 0


def _quoted(text: str) -> str:
    """A string as TOML writes it, so that a folder called 2024 is no number."""
    return json.dumps(text, ensure_ascii=False)


def _page(options) -> int:
    print(page_on(options.page, options.folder).write(options.folder))
    return 0


def _freeze(options) -> int:
    from reprt.reports.freeze import freeze

    place, unfinished = freeze(options.runs, options.out)
    if unfinished:
        they = "frozen before they had finished: " + ", ".join(unfinished)
        print(f"reprt: {they}", file=sys.stderr)
    print(place)
    return 0


def _translate(options) -> int:
    if options.sentences and options.file:
        raise ValueError("Expected sentences or --file. Received both.")
    if options.n_best > options.beam:
        raise ValueError(
            "Expected --n-best to be at least 1 and at most --beam. Received: "
            f"{options.n_best} and {options.beam}."
        )
    search = _search(options)
    # Opened before the model is loaded, which takes time.
    with _given(options) as lines:
        from reprt.decoding.translator import AHEAD, Translator

        translator = Translator.load(options.run, **search)
        typed = not (options.sentences or options.file) and sys.stdin.isatty()
        # A user who types gets an answer to each line.
        found = translator.stream(map(_decoded, lines), 1 if typed else AHEAD)
        for number, each in enumerate(found, 1):
            for note in each.notes if not options.json else ():
                print(f"reprt: line {number}: {note}", file=sys.stderr)
            print(_line(number, each, options), flush=typed)
    return 0


def _given(options):
    """The lines to be translated, as bytes, in a context that closes them."""
    if options.sentences:
        return contextlib.nullcontext(map(os.fsencode, options.sentences))
    if options.file:
        return open(options.file, "rb")
    return sys.stdin.buffer


def _decoded(line: bytes) -> str:
    """A line's text. What is not UTF-8 becomes a sign that no vocabulary knows."""
    return line.decode("utf-8", errors="replace").rstrip("\r\n")


def _is_option(argument):
    return argument.startswith("-")


def _line(number, found, options):
    best = found.alternatives[: options.n_best]
    if options.json:
        entry = {
            "source": found.source,
            "translation": found.text,
            "alternatives": [dataclasses.asdict(each) for each in best],
            "notes": found.notes,
        }
        return json.dumps(entry, ensure_ascii=False)
    if options.n_best == 1:
        return found.text
    return "\n".join(f"{number}\t{each.score:.4f}\t{each.text}" for each in best)


def _evaluate(options) -> int:
    search = _search(options)
    from reprt.jobs.evaluate_run import evaluate_run

    print(evaluate_run(options.run, options.split, options.text, search))
    return 0


def _attention(options) -> int:
    search = _search(options)
    from reprt.decoding.attention_maps import draw, write_page
    from reprt.decoding.translator import Translator

    translator = Translator.load(options.run, **search)
    maps = translator.attention(_decoded(os.fsencode(options.sentence)))
    folder = options.out or options.run
    folder.mkdir(parents=True, exist_ok=True)
    picture, page = folder / "attention.png", folder / "attention.html"
    draw(maps, picture)
    write_page(maps, page)
    print(maps.translation, picture, page, sep="\n")
    return 0


def _export(options) -> int:
    engine = options.to == "ctranslate2"
    if options.quantization != QUANTIZATIONS[0] and not engine:
        raise ValueError(
            "Expected --to ctranslate2 with --quantization. Received: "
            f"{options.quantization} and --to {options.to}."
        )
    search = _search(options)
    from reprt.decoding.translator import Translator

    translator = Translator.load(options.run, **search)
    out = options.out or options.run / "export"
    if engine:
        from reprt.decoding.ctranslate2_export import export_ctranslate2

        print(export_ctranslate2(translator, out, options.quantization))
        return 0

    from reprt.decoding.export import export

    print(*export(translator, out), sep="\n")
    return 0


def _audit(options) -> int:
    from reprt.analysis.audit import audit

    for module in options.module:
        _run_module(module)
    result = audit(
        _model(options.model),
        options.source_vocab,
        options.target_vocab,
        length=options.length,
        seed=options.seed,
    )
    print(result)
    return int(result.looks_ahead)


def _model(path):
    if path.is_dir():
        from reprt.runs.run_folder import RunFolder

        return RunFolder(path).load_model()
    from reprt.models.saving import load_model

    return load_model(path)


def _run_module(path):
    """Runs someone else's code, whose mistakes may be of any kind."""
    try:
        runpy.run_path(path)
    except (Exception, SystemExit) as error:
        raise ValueError(f"The module {path} failed: {_in_short(error)}") from error
