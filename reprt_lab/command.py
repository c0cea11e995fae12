"""The console command `reprt`: its options, and which function does the work.

The module itself imports only click, so that `reprt --help` and a mistyped option are
answered at once.
"""

import io
import itertools
import os
import pkgutil
import sys
import traceback
from pathlib import Path
from typing import Any

import click

# The exit statuses. Click and the shell use these, and Python ends with 1 after an
# error. So 3 stands for the verdict of `reprt audit` only.
FAILED, INTERRUPTED, UNREAD, TERMINATED = 2, 130, 141, 143
LOOKS_AHEAD = 3
EXTRAS = "The commands need the packages of `pip install '.[train]'`."

FOLDER = click.Path(path_type=Path, file_okay=False)
FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
PATH = click.Path(path_type=Path)
COUNT = click.IntRange(min=1)
SPLITS = "--train", "--dev", "--test"


def _do(work: str, *arguments: Any, **options: Any):
    """Calls `"module:function"`, whose module is loaded only here."""
    return pkgutil.resolve_name(work)(*arguments, **options)


def _split(context, parameter, values):
    """Values of an option that may be given more than once, or joined by commas."""
    parts: list[str] = []
    for value in values:
        parts += value.split(",")
    return parts


class FilesCommand(click.Command):
    """A command whose options of files take two, or one."""

    def make_parser(self, ctx):
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_args(args):
            args = list(itertools.chain(*map(_option_and_value, args)))
            for option in SPLITS:
                count = args.count(option)
                if not count:
                    continue
                if count > 1:
                    raise click.UsageError(
                        f"Expected {option} once. Received it {count} times: join the "
                        "files."
                    )
                second = args.index(option) + 2
                if second >= len(args) or args[second].startswith("-"):
                    # Click wants as many values as there may be.
                    args.insert(second, "")
            return parse(args)

        parser.parse_args = parse_args  # type: ignore[method-assign]
        return parser


def _option_and_value(argument: str) -> list[str]:
    """Parts `--train=a.de`, which click would take for all of the option's values."""
    option, equals, value = argument.partition("=")
    if equals and option in SPLITS:
        return [option, value]
    return [argument]


def _files(context, parameter, value):
    """The files of a split, none of which is the next option."""
    if value is None:
        return None
    if value[0].startswith("-"):
        raise click.UsageError(_files_expected(parameter.opts[0]))
    return tuple(filter(None, value))


def _files_expected(option: str) -> str:
    return (
        f"Expected {option} with two files, SOURCE TARGET, or with a table. Received "
        "none."
    )


@click.group(
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="With REPRT_TRACEBACK=1 in the environment, errors show their traceback.",
)
@click.version_option(package_name="reprt", prog_name="reprt")
def command():
    """Reinforced position embedding (RePE) against its baseline: train both, compare
    them with the paper."""


run_argument = click.argument("run", type=PATH)
out_option = click.option("--out", type=FOLDER, help="Where the files go.")


def search_options(function):
    """Gives a command the options of a search."""
    beams = click.option(
        "--beam",
        "beam_size",
        type=click.IntRange(1, 1000),
        default=1,
        show_default=True,
        help="Hypotheses of each sentence; 1 is greedy search.",
    )
    penalty = click.option(
        "--length-penalty",
        type=click.FloatRange(0, 10),
        default=0.6,
        show_default=True,
        help="Exponent of the length in beam search; 0 ranks by probability only.",
    )
    longest = click.option(
        "--max-tokens",
        type=COUNT,
        help="Longest translation; by default the sentence's length plus 50.",
    )
    return beams(penalty(longest(function)))


def files_option(option: str, text: str):
    return click.option(
        option,
        nargs=2,
        metavar="SOURCE TARGET",
        help=text,
        callback=_files,
    )


RECIPES = sorted((Path(__file__).parent / "recipes").glob("*.toml"))


@command.command(
    cls=FilesCommand,
    epilog=f"Recipes: {', '.join(path.stem for path in RECIPES)}.",
)
@click.argument("recipe", type=PATH)
@click.option(
    "--pair",
    multiple=True,
    callback=_split,
    metavar="PAIR",
    help=(
        "Train on this pair, or on several in turn: az_to_en,gl_to_en. By default the "
        "recipe's, or what your own files are named."
    ),
)
@click.option(
    "--text",
    metavar="SOURCE",
    help="auto, ted, embedded, wmt14, or the path of a folder, archive or table.",
)
@files_option(
    "--train",
    "Your own text: two files with a sentence a line, or a table; one file for a "
    "language model.",
)
@files_option(
    "--dev", "Its validation text; by default a share of the training pairs."
)
@files_option("--test", "Its test text; by default another share.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting for every run, e.g. training.epochs=2.",
)
@click.option(
    "--only",
    multiple=True,
    callback=_split,
    metavar="MODEL",
    help="Train only these models or runs: repe,baseline.0.",
)
@click.option(
    "--out",
    type=FOLDER,
    help=(
        "Results folder; default runs/RECIPE/TEXT. Recipes for several texts put a "
        "folder for each text into it."
    ),
)
@click.option(
    "--plan",
    is_flag=True,
    help="Only say what is left to do and its cost.",
)
@click.option(
    "--ray",
    metavar="ADDRESS",
    help=(
        "Several runs at once, one a device, handed out by Ray: on this machine if "
        "ADDRESS is local, or on the cluster there, whose machines share --out."
    ),
)
@click.option(
    "--cpus",
    type=COUNT,
    help="With --ray, cores of each run; default 1.",
)
def train(recipe, pair, text, settings, only, out, plan, ray, cpus, **files):
    """Train a recipe's models, or resume their training, and write the recipe's page.

    RECIPE is a TOML file or the name of a recipe of the package, such as translate,
    which trains one model on a text of your own.
    """
    if ray is not None and (not ray or ray.startswith("-")):
        raise click.UsageError(
            f"Expected --ray local or an address. Received: {ray!r}"
        )
    if plan and ray:
        raise click.UsageError("Expected --plan or --ray. Received both.")
    if text is not None and files["train"]:
        raise click.UsageError("Expected --text or --train. Received both.")
    if cpus and not ray:
        raise click.UsageError(
            "Expected --ray with --cpus. Received --cpus only."
        )
    _do("reprt.termination:listen")
    recipe = _do(
        "reprt_lab.recipe:load_recipe",
        recipe,
        settings,
        pair,
        text,
        files,
    )
    if ray:
        work = "reprt_lab.ray_executor:run_on_ray"
        click.echo(_do(work, recipe, only, out, ray, cpus or 1))
    else:
        click.echo(_do("reprt_lab.job:run_job", recipe, only, out, plan))


@command.command()
def schema():
    """Print the JSON schema of recipes, with which editors complete keys."""
    click.echo(_do("reprt_lab.recipe:schema_text"))


@command.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@click.option(
    "--name", help="Another page than the folder's own, e.g. families."
)
def page(folder, name):
    """Write the page on the runs in FOLDER, live or frozen. It trains nothing."""
    click.echo(_do("reprt_lab.pages:write_page", folder, name))


@command.command()
@click.argument("runs", type=click.Path(path_type=Path, exists=True))
@click.option("--out", type=FOLDER, help="Results folder; default RUNS-frozen.")
def freeze(runs, out):
    """Put the runs in a folder into one file, with their notes and page.

    Checkpoints, models and vocabularies stay where they are.
    """
    place, unfinished = _do("reprt_lab.pages.freeze:freeze", runs, out)
    if unfinished:
        names = ", ".join(unfinished)
        click.echo(f"reprt: frozen before they had finished: {names}", err=True)
    click.echo(place)


@command.command()
@run_argument
@click.argument("sentences", nargs=-1, metavar="[SENTENCE]...")
@click.option("--file", type=FILE, help="Translate the lines of a file.")
@search_options
@click.option(
    "--n-best",
    type=COUNT,
    default=1,
    help="Lines for each sentence, from the best: its number, score and text.",
)
@click.option(
    "--json",
    is_flag=True,
    help="One JSON object a line, with everything.",
)
def translate(run, sentences, file, n_best, json, **search):
    """Translate sentences, a file or standard input, one a line and in order.

    Put -- before sentences that begin with a dash. Remarks on a line go to standard
    error.
    """
    if sentences and file:
        raise click.UsageError("Expected sentences or --file. Received both.")
    if not sentences and not file and sys.stdin is None:
        raise click.UsageError(
            "Expected sentences, --file or standard input. Received none of them: "
            "standard input is closed."
        )
    if n_best > search["beam_size"]:
        raise click.UsageError(
            f"Expected --n-best to be at most --beam. Received: {n_best} and "
            f"{search['beam_size']}."
        )
    work = "reprt_lab.translate:translate"
    _do(work, run, sentences, file, n_best, json, search)


def files_argument(required: bool):
    return click.argument(
        "files",
        type=FILE,
        nargs=-1,
        required=required,
        metavar="SOURCE TARGET" if required else "[SOURCE TARGET]",
    )


@command.command()
@run_argument
@files_argument(required=False)
@click.option(
    "--split",
    type=click.Choice(["dev", "test"]),
    help="Split of the run's text: dev, which validates, or test, the default.",
)
@click.option(
    "--text",
    metavar="SOURCE",
    help="Where the text is now, if not where it was found.",
)
@search_options
def evaluate(run, files, split, text, **search):
    """Measure losses, BLEU, chrF and TER of a trained model on a split of its text.

    Or on other sentences: two files, SOURCE and its translations TARGET, or a table;
    one file for a language model. Pairs without a word on a side are left out.

    The prefix loss gives the decoder only the tokens before each position, as search
    does. evaluation-SPLIT.json and .md, or evaluation-SOURCE.json and .md, go into the
    run's folder.
    """
    if files and (split or text):
        raise click.UsageError(
            "Expected files, or --split and --text. Received both."
        )
    work = "reprt_lab.measure:evaluate_run"
    click.echo(_do(work, run, files, split or "test", text, search))


@command.command()
@run_argument
@files_argument(required=True)
def score(run, files):
    """Print the log-probability of each line of TARGET as a translation of SOURCE's.

    Logarithms are natural. Each token is predicted from those before it. A language
    model needs TARGET only.
    """
    click.echo(_do("reprt_lab.measure:score_files", run, files))


@command.command()
@run_argument
@click.argument("sentence")
@search_options
@out_option
def attention(run, sentence, out, **search):
    """Translate a sentence and draw every head's attention.

    The run's folder, or --out, gets a page and a picture of the weights, and a picture
    of the positions.
    """
    _do("reprt_lab.translate:draw_attention", run, sentence, out, search)


@command.command()
@run_argument
@search_options
@out_option
def export(run, out, **search):
    """Write a SavedModel from strings to strings, and the Keras model.

    The files go into RUN/export by default.
    """
    out = out or run / "export"
    translator = _do("reprt_lab.translate:translator_of", run, search)
    for path in _do("reprt.decoding.export:export", translator, out):
        click.echo(path)


@command.command()
@click.argument("model", metavar="MODEL")
@click.option(
    "--vocab",
    "vocab_size",
    type=COUNT,
    help="Ids of a language model, or of both arguments of a function.",
)
@click.option(
    "--source-vocab",
    "source_vocab_size",
    type=COUNT,
    help="Source ids.",
)
@click.option(
    "--training",
    is_flag=True,
    help="Audit the model in training as well.",
)
@click.option(
    "--module",
    "modules",
    type=FILE,
    multiple=True,
    help="A Python file that registers the model's own classes with Keras.",
)
def audit(model, modules, **options):
    """Does position t of a decoder depend on tokens after t?

    MODEL is a run folder, or a .keras file of a model called on the pair of source and
    target ids, or on ids. Or it is package.module:function or file.py:function, where
    the function takes no arguments and returns a model of Keras, PyTorch or Hugging
    Face, or a function from ids to logits. The command runs that code.

    Exit status: 0 if not, 3 if so. Any other says that the audit failed.
    """
    report = _do("reprt_lab.audit:audit_by_name", model, modules, **options)
    click.echo(report)
    return LOOKS_AHEAD if report.looks_ahead else 0


def main(arguments=None) -> int:
    """Runs one command, by default the process's own, and returns its exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    _prepare_streams()
    status = _run(arguments)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        # Python would try again as it ends, and change the status.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return UNREAD
        if status in (0, LOOKS_AHEAD):
            print(f"reprt: standard output: {error.strerror}", file=sys.stderr)
            return FAILED
    return status


def _prepare_streams():
    """Makes streams UTF-8, and puts the null device in the place of closed ones."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Otherwise the next file that is opened would be written to.
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")
    for stream in (sys.stdout, sys.stderr):
        # A notebook's streams are of another kind, and are UTF-8.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=stream.errors)


def _run(arguments) -> int:
    resume_note = ""
    if arguments[:1] == ["train"]:
        resume_note = " The same command resumes from the last checkpoint."
    try:
        status = command.main(
            arguments,
            prog_name="reprt",
            standalone_mode=False,
        )
        return status or 0
    except click.UsageError as error:
        missing = isinstance(error, click.MissingParameter)
        needs_help = not arguments or (missing and len(arguments) == 1)
        if needs_help and error.ctx is not None:
            click.echo(error.ctx.get_help(), err=True)
        else:
            print(f"reprt: {_usage_message(error)}", file=sys.stderr)
    except click.ClickException as error:
        print(f"reprt: {error.format_message()}", file=sys.stderr)
    except (click.Abort, KeyboardInterrupt):
        click.echo(f"Interrupted.{resume_note}", err=True)
        return INTERRUPTED
    except SystemExit as error:
        if error.code == TERMINATED:
            click.echo(f"Terminated.{resume_note}", err=True)
            return TERMINATED
        # Click's, where the reader of standard output has gone.
        if error.code == 1:
            return UNREAD
    except ImportError as error:
        _show_traceback()
        print(f"reprt: {error}.{_advice(error)}", file=sys.stderr)
    except (ValueError, ArithmeticError, OSError) as error:
        _show_traceback()
        print(f"reprt: {error}", file=sys.stderr)
    return FAILED


def _usage_message(error: click.UsageError) -> str:
    message = error.format_message()
    if isinstance(error, click.BadOptionUsage) and error.option_name in SPLITS:
        return _files_expected(error.option_name)
    if isinstance(error, click.MissingParameter) and error.ctx is not None:
        return f"{message} `{error.ctx.command_path} --help` explains it."
    return message


def _advice(error: ImportError) -> str:
    """What to install, unless the message says so itself."""
    if "pip install" in str(error):
        return ""
    return f" {EXTRAS}"


def _show_traceback():
    """Prints the whole error, for developers of layers, where it is asked for."""
    if os.environ.get("REPRT_TRACEBACK"):
        traceback.print_exc()
