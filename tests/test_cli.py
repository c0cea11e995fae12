import gzip
import io
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import types
from unittest import mock

import keras
import pytest
import tiny_run
from tiny import contents
from tiny_run import RECIPE, arguments

import reprt
from reprt.data.corpora.corpus import Corpus
from reprt.decoding.translator import Translation
from reprt.termination import Terminated
from reprt_lab.command import main
from reprt_lab.folder import RunFolder
from reprt_lab.pages.tables import plain
from reprt_lab.recipe import shipped_recipes


@pytest.fixture(scope="module", autouse=True)
def private_folders(tmp_path_factory):
    """Keeps the command away from the user's own folders."""
    with pytest.MonkeyPatch.context() as patch:
        cache = tiny_run.cache(tmp_path_factory.getbasetemp())
        patch.setenv("REPRT_CACHE", str(cache))
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        patch.delenv("REPRT_TED", raising=False)
        yield


@pytest.fixture(scope="module")
def trained_folder(tmp_path_factory):
    """The folders of a recipe, a text, and what the command made of them."""
    return tiny_run.trained_experiment(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs whose translations differ from sentence to sentence, for this file only."""
    base = tmp_path_factory.getbasetemp()
    folder = tmp_path_factory.mktemp("runs")
    for name in ("baseline", "repe"):
        shutil.copytree(tiny_run.randomized_run(base, name), folder / name)
    return folder


def test_training_ends_with_a_report_that_names_its_text(trained_folder):
    out = trained_folder / "out"
    assert (out / "report.png").read_bytes().startswith(b"\x89PNG")
    report = (out / "report.md").read_text(encoding="utf-8")
    title = report.splitlines()[0]
    assert title.startswith("# ") and title.endswith(
        "not comparable with the paper"
    )
    name = "pt_to_en from text (not the official TED-HRLR split)"
    assert name in title and f"ours, {name}" in report
    for model in ("baseline", "repe"):
        metrics = json.loads((out / model / "metrics.json").read_text())
        assert metrics["epochs"] == 2 and not metrics["out_of_time"]
        assert 0 <= metrics["test_bleu"] <= 100
        assert len(metrics["examples"]) == 5
        manifest = json.loads((out / model / "manifest.json").read_text())
        assert manifest["looks_ahead"] == (model == "repe")


def test_only_the_page_is_made_again(trained_folder, capsys):
    out = trained_folder / "out"
    old_contents, page = contents(out), out / "report.md"
    page.unlink()
    assert main(["train", *arguments(trained_folder)]) == 0
    output = capsys.readouterr()
    assert output.out.strip() == str(page)
    for model in ("baseline", "repe"):
        assert f"{model}: finished before, in " in output.err
    table = output.err[output.err.index("model ") :].splitlines()
    assert [line.split()[0] for line in table] == ["model", "baseline", "repe"]
    page.unlink()
    assert main(["page", str(page.parent)]) == 0
    assert contents(out) == old_contents


def test_runs_that_another_process_trains_are_no_success(
    trained_folder, tmp_path, capsys
):
    out = tmp_path / "out"
    shutil.copytree(trained_folder / "out", out)
    (out / "repe" / "metrics.json").unlink()
    old_contents = contents(out / "repe")
    with RunFolder(out / "repe").claim():
        assert (
            main(["train", *arguments(trained_folder), "--out", str(out)]) == 2
        )
    output = capsys.readouterr()
    reason = f"because another process works on them: {out / 'repe'}."
    assert reason in output.err.splitlines()[-1]
    assert output.out == "" and contents(out / "repe") == old_contents


@pytest.mark.long
@pytest.mark.usefixtures("eagerly")
def test_losses_and_bleu_by_step_have_a_file_and_a_picture(
    trained_folder, tmp_path, capsys
):
    keys = "validate_every=2", "bleu_sentences=3", "bleu=false", 'best="bleu"'
    overrides = [f"--set=training.{key}" for key in keys]
    command = [
        "train",
        *arguments(trained_folder, "--only", "baseline", *overrides),
    ]
    assert main([*command, "--out", str(tmp_path)]) == 0
    [row] = RunFolder(tmp_path / "baseline").log("steps.csv")
    assert row["step"] == 2 and 0 <= row["train_bleu"] <= 100 >= row["val_bleu"]
    metrics = RunFolder(tmp_path / "baseline").metrics()
    assert metrics.best_step == 2 and not metrics.stopped_early
    assert (tmp_path / "steps.png").is_file()
    assert "](steps.png)" in (tmp_path / "report.md").read_text("utf-8")


def error_line(capsys):
    """What the command says of a mistake, without what it said of its progress."""
    output = capsys.readouterr()
    assert output.out == "" and "Traceback" not in output.err
    *progress, message = output.err.splitlines()
    assert message.startswith("reprt: ")
    assert not any(line.startswith("reprt: ") for line in progress)
    return message


@pytest.mark.parametrize(
    "command, message",
    [
        (
            "train --plan",
            "Missing argument 'RECIPE'. `reprt train --help` explains",
        ),
        (
            "train TINY --train --out b",
            "Expected --train with two files, SOURCE TARGET, or with a table.",
        ),
        ("train TINY --out b --dev", "Expected --dev with two files"),
        (
            "train TINY --train a.de a.en --train b.de b.en",
            "Expected --train once. Received it 2 times: join the files.",
        ),
        ("train TINY --train=a.de a.en --train=b.de b.en", "--train once."),
        (
            f"train TINY --train {__file__}",
            "Expected two files, one sentence per line, or a table",
        ),
        (
            f"train translate --train {__file__} {__file__}",
            "names that end with languages, corpus.de and corpus.en, or --pair",
        ),
        (
            "train translate",
            "'corpus.de'. A text of your own is given by --train",
        ),
        (
            "train TINY --set training.epoch=1",
            "baseline of tiny with --set training.epoch=1: Unknown key 'epoch'",
        ),
        ("audit .", "Expected . to be a run folder."),
        ("trian TINY", "Did you mean 'train'?"),
        ("train TINY --pair xx_to_yy", "xx_to_yy"),
        ("train TINY --text 2024", "2024, given as a path"),
        ("train TINY --text=", "Expected the name of a text"),
        ("train TINY --set text.source=", "Expected the name of a text"),
        ("train TINY --pair=", "SRC_to_TGT"),
        (
            "train pt_to_en --pair de_to_en --text embedded",
            "pt_to_en. Received: de_to",
        ),
        ("train pt_to_en --text embedded --set schedule.dim=9", "key 'dim'"),
        ("train TINY --train a.de b.en", "No such file or directory: 'a.de'"),
        (
            f"train TINY --pair de-en --train {__file__} {__file__}",
            "SRC_to_TGT",
        ),
        (
            "train TINY --text embedded --test a b",
            "with --dev and --test. Received:",
        ),
        ("train TINY --cpus 2", "Expected --ray with --cpus."),
        (
            "train TINY --ray --plan",
            "--ray local or an address. Received: '--plan'",
        ),
        (
            "train TINY --plan --ray local",
            "Expected --plan or --ray. Received both.",
        ),
        (
            "train TINY --text ted --train a b",
            "--text or --train. Received both.",
        ),
        ("train absent.toml", "one of the package's recipes: ablation"),
        ("page .", "Expected a folder with run folders in it."),
        (
            f"translate RUN a --file {__file__}",
            "sentences or --file. Received both.",
        ),
        ("translate RUN a --n-best 2", "--n-best to be at most --beam"),
        (
            "translate RUN a",
            "Expected RUN to be a run folder. `reprt train` makes",
        ),
        ("translate RUN --file /no/such", "/no/such"),
        ("translate RUN -hallo", "No such option"),
        (
            f"evaluate RUN {__file__} --split dev",
            "Expected files, or --split and --text. Received both.",
        ),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    tmp_path, monkeypatch, capsys, command, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text(RECIPE)
    assert main(command.replace("TINY", "tiny.toml").split()) == 2
    output = capsys.readouterr()
    (line,) = output.err.splitlines()
    assert line.startswith("reprt: ") and message in line and output.out == ""


@pytest.mark.parametrize(
    "error, status, word",
    [
        (KeyboardInterrupt, 130, "Interrupted."),
        (Terminated, 143, "Terminated."),
    ],
)
def test_an_interruption_tells_what_goes_on(
    monkeypatch, capsys, error, status, word
):
    load = mock.Mock(side_effect=error)
    monkeypatch.setattr("reprt_lab.recipe.load_recipe", load)
    monkeypatch.setattr("reprt_lab.translate.translator_of", load)
    advice = f"{word} The same command resumes from the last checkpoint."
    for command, expected in (
        ("train RECIPE", advice),
        ("translate RUN a", word),
    ):
        assert main(command.split()) == status
        output = capsys.readouterr()
        assert (output.out, output.err.strip()) == ("", expected)


LINES = (
    b"o homem sabe\r\n"
    b"\n"
    b"a \xef\xbf\xbd\rcasa\n"  # a stray CR, which ends no line
    b" \t \r\n"
    b"ol\xc3\xa1 \xf0\x9f\x98\x80\n"
    b"e"  # and no end of the line
)
SENTENCES = [
    "o homem sabe",
    "",
    "a \ufffd\rcasa",
    " \t ",
    "ol\xe1 \U0001f600",
    "e",
]
SEARCH = ["--beam", "2", "--max-tokens", "12"]


@pytest.fixture(scope="module")
def translations(runs):
    """What the package translates, for the command to print."""
    translator = reprt.Translator.load(
        runs / "repe", beam_size=2, max_tokens=12
    )
    translations = translator(SENTENCES)
    # Two are empty.
    assert len({translation.text for translation in translations}) == 5
    return translations


@pytest.mark.parametrize("origin", ["file", "standard input"])
def test_sentences_are_translated_one_a_line(
    runs, translations, origin, capsys, tmp_path, monkeypatch
):
    content = LINES if origin == "standard input" else b"not this"
    stdin = io.TextIOWrapper(io.BytesIO(content), encoding="ascii")
    monkeypatch.setattr(sys, "stdin", stdin)
    path = tmp_path / "lines.txt.gz"
    path.write_bytes(gzip.compress(LINES))
    options = ["--file", str(path)] if origin == "file" else []
    command = ["translate", str(runs / "repe"), *options, *SEARCH]
    assert main(command) == 0
    output = capsys.readouterr()
    assert output.out.split("\n") == [
        *(translation.text for translation in translations),
        "",
    ]
    assert output.err.splitlines() == [
        f"reprt: line {number}: {note}"
        for number, translation in enumerate(translations, 1)
        for note in translation.notes
    ]
    assert "reprt: line 3: the vocabulary lacks \ufffd" in output.err


def test_output_is_utf8_whatever_the_system_writes(monkeypatch, tmp_path):
    streams = {name: io.BytesIO() for name in ("stdout", "stderr")}
    for name, stream in streams.items():
        wrapper = io.TextIOWrapper(stream, "ascii", write_through=True)
        monkeypatch.setattr(sys, name, wrapper)
    translation = Translation("olá 😀", (), ("漢字",))
    translator = types.SimpleNamespace(stream=lambda *_: [translation])
    monkeypatch.setattr(
        "reprt_lab.translate.translator_of", lambda *_: translator
    )
    for options in ([], ["--json"]):
        assert main(["translate", str(tmp_path), "olá 😀", *options]) == 0
    assert '"source": "olá 😀"' in streams["stdout"].getvalue().decode()
    assert streams["stderr"].getvalue().decode() == "reprt: line 1: 漢字\n"


def test_several_translations_are_for_people_or_programs(
    runs, translations, capsys
):
    command = [
        "translate",
        str(runs / "repe"),
        *SENTENCES,
        *SEARCH,
        "--n-best",
        "2",
    ]
    assert main(command) == 0
    table = capsys.readouterr().out.splitlines()
    assert main([*command, "--json"]) == 0
    output = capsys.readouterr()
    assert output.err == ""  # the remarks are among the data
    entries = map(json.loads, output.out.splitlines())
    expected = []
    for number, (translation, entry) in enumerate(
        zip(translations, entries, strict=True), 1
    ):
        lines = [
            f"{number}\t{alternative.score:.4f}\t{alternative.text}"
            for alternative in translation.alternatives
        ]
        expected += lines or [f"{number}\t0.0000\t"]
        assert entry["source"] == translation.source
        assert entry["translation"] == translation.text
        assert entry["notes"] == list(translation.notes)
        for row, alternative in zip(
            entry["alternatives"], translation.alternatives, strict=True
        ):
            assert row["text"] == alternative.text
            assert row["ids"] == list(alternative.ids)
            assert row["tokens"] == list(alternative.tokens)
            assert row["score"] == pytest.approx(alternative.score, rel=1e-4)
            assert row["ended"] == alternative.ended
    assert table == expected and "\U0001f600" in output.out


def test_an_evaluation_says_what_the_training_said(
    trained_folder, tmp_path, capsys
):
    run, text = tmp_path / "repe", tmp_path / "moved"
    shutil.copytree(trained_folder / "out" / "repe", run)
    shutil.copytree(trained_folder / "text", text)
    command = ["evaluate", str(run), "--split", "dev", "--text", str(text)]
    assert main(command) == 0
    result = json.loads((run / "evaluation-dev.json").read_text("utf-8"))
    page = capsys.readouterr().out
    assert page == (run / "evaluation-dev.md").read_text("utf-8")
    metrics = RunFolder(run).metrics()
    prefix, teacher_forced = result["prefix"], result["teacher_forced"]
    gain = f"| {prefix['per_token'] - teacher_forced['per_token']:+.4f} |"
    assert gain in re.sub(" +", " ", page)
    assert prefix["per_token"] == pytest.approx(
        metrics.val_prefix_loss_per_token
    )
    assert prefix["mean_of_batches"] == pytest.approx(metrics.val_prefix_loss)
    last_row = RunFolder(run).log()[-1]
    assert teacher_forced["mean_of_batches"] == pytest.approx(
        last_row["val_loss"], rel=1e-4
    )
    assert result["sentences"] == 5 and result["split"] == "dev"
    sides = [
        str(text / "datasets/pt_to_en" / f"{side}.dev") for side in ("pt", "en")
    ]
    assert main(["score", str(run), *sides]) == 0
    scores = [float(line) for line in capsys.readouterr().out.splitlines()]
    assert len(scores) == 5 and sum(scores) == pytest.approx(
        -prefix["total"], rel=1e-4
    )
    # The same sentences as other ones.
    assert main(["evaluate", str(run), *sides]) == 0
    assert capsys.readouterr().out.startswith(
        "repe on pt_to_en from pt.dev: 5 "
    )
    other_result = json.loads(
        (run / "evaluation-pt.dev.json").read_text("utf-8")
    )
    for name in ("prefix", "scores", "sentences", "teacher_forced"):
        assert other_result[name] == result[name]
    long_file = tmp_path / "long"
    long_file.write_text("o homem " * 99)
    assert main(["score", str(run), str(long_file), str(long_file)]) == 0
    assert "line 1: the first 128 tokens were scored" in capsys.readouterr().err
    assert main(["evaluate", str(run), *2 * [str(long_file)]]) == 0
    page = capsys.readouterr().out
    assert "1 of the pairs have a side of more than 128 tokens" in page
    for command in ("evaluate", "score"):
        assert main([command, str(run), sides[0], str(long_file)]) == 2
        message = f"Received: 5 and 1 in {sides[0]} and {long_file}."
        assert message in capsys.readouterr().err


def test_an_evaluation_names_search_scores_and_text(runs, capsys, monkeypatch):
    run = runs / "baseline"
    monkeypatch.setattr(Corpus, "target_language", "zh")  # which scores go by
    assert main(["evaluate", str(run), *SEARCH, "--length-penalty", "1"]) == 0
    result = json.loads((run / "evaluation-test.json").read_text("utf-8"))
    page = re.sub(" +", " ", capsys.readouterr().out)
    expected = {"beam_size": 2, "length_penalty": 1, "max_tokens": 12}
    assert result["search"] == {**expected, "dtype": "float32"}
    forms = "corpus tokens", "detokenised"
    search = "2 hypotheses, length penalty 1.0"
    names = "BLEU", "chrF", "TER"
    labels = [f"{metric}, {form}" for form in forms for metric in names]
    for label, score in zip(labels, result["scores"], strict=True):
        assert (
            f"| {label}, beam search, {search} | {score['value']:.2f} |" in page
        )
        assert f"- {label}: `{score['signature']}`" in page
    assert "tok:zh" in result["scores"][3]["signature"]
    assert "pt_to_en from text (not the official" in page.splitlines()[0]
    (run / "evaluation-test.json").unlink()
    (run / "evaluation-test.json").mkdir()  # what cannot be kept is printed
    assert main(["evaluate", str(run), *SEARCH]) == 0
    output = capsys.readouterr()
    assert "evaluation-test.json" in output.err
    assert labels[0] in output.out
    (run / "evaluation-test.json").rmdir()
    assert result["provenance"]["versions"]["reprt"] == reprt.__version__


def test_another_text_is_refused_and_both_are_named(
    trained_folder, runs, tmp_path, capsys
):
    shutil.copytree(trained_folder / "text", tmp_path / "text")
    (file,) = tmp_path.rglob("en.test")
    file.write_text(file.read_text("utf-8").replace("a", "b"), "utf-8")
    old_contents = contents(runs / "repe")
    command = ["evaluate", str(runs / "repe"), "--text", str(tmp_path / "text")]
    assert main(command) == 2
    message, manifest = error_line(capsys), runs / "repe" / "manifest.json"
    digest = json.loads(manifest.read_text("utf-8"))["text_sha256"]
    assert f"with sha256 {digest[:16]}. Received: " in message
    hint = r"\. Say where it is by --text, or in \[text\] of .*/config\.toml\.$"
    assert re.search(r"\) with [0-9a-f]{16}" + hint, message)
    assert message.count(digest[:16]) == 1 and str(tmp_path / "text") in message
    assert contents(runs / "repe") == old_contents


def test_an_evaluation_tells_which_options_it_lacks(runs, tmp_path, capsys):
    table = tmp_path / "mine.jsonl"
    table.write_text('{"de": "ja", "fr": "oui"}\n')
    assert main(["evaluate", str(runs / "repe"), "--text", str(table)]) == 2
    message = error_line(capsys)
    assert "--pair" in message
    assert message.endswith(f"from [text] of {runs / 'repe'}/config.toml.")


def test_attention_is_drawn_and_written(runs, translations, tmp_path, capsys):
    out = tmp_path / "new" / "folder"
    command = ["attention", str(runs / "repe"), "o homem sabe", *SEARCH]
    assert main([*command, "--out", str(out)]) == 0
    names = "attention.png", "attention.html", "positions.png"
    files = [str(out / name) for name in names]
    assert capsys.readouterr().out.splitlines() == [
        translations[0].text,
        *files,
    ]
    assert all((out / name).stat().st_size > 0 for name in names)
    assert main(["attention", str(runs / "repe"), " "]) == 2
    assert "Expected a sentence. Received an empty one." in error_line(capsys)


def test_a_misspelt_run_is_told_the_right_one(runs, capsys):
    assert main(["translate", str(runs / "basline"), "a"]) == 2
    assert error_line(capsys).endswith(f"Did you mean {runs / 'baseline'}?")


MODULE = """
import keras


@keras.saving.register_keras_serializable(package="of a user")
class Average(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embedding = keras.layers.Embedding(20, 4)
        self.dense = keras.layers.Dense(20)

    def call(self, inputs):
        states = self.embedding(inputs[1])
        return self.dense(states + keras.ops.mean(states, axis=1, keepdims=True))
"""


@pytest.fixture
def average(tmp_path):
    """A file of a user's model, and the module of its class, which is forgotten."""
    module, file = tmp_path / "mine.py", tmp_path / "average.keras"
    module.write_text(MODULE)

    def unregister():
        objects = keras.saving.get_custom_objects()
        for name in list(objects):
            if name.startswith("of a user"):
                del objects[name]

    model = runpy.run_path(str(module))["Average"](name="average")
    ids = keras.ops.ones((1, 3), "int32")
    model((ids, ids))
    model.compile(loss=error_line)  # some function, which no file brings back
    model.save(file)
    unregister()
    yield file, module
    unregister()


def test_the_audit_of_a_users_model(average, capsys):
    file, module = average
    command = ["audit", str(file), "--module", str(module)]
    assert main([*command, "--source-vocab", "20"]) == 3
    assert capsys.readouterr().out.startswith("average looks ahead")
    # It knows its target vocabulary by its logits, but not its source vocabulary.
    assert main(command) == 2
    assert "Expected `source_vocab_size`" in error_line(capsys)
    for content in ("def f(:", "quit(0)", "assert False, 'a\\nb'"):
        module.write_text(content)
        assert main(command) == 2 and "mine.py" in error_line(capsys)
    module.write_text("def model(size):\n    return size\n")
    assert main(["audit", str(module)]) == 2
    assert "mine.py:FUNCTION" in error_line(capsys)
    assert main(["audit", f"{module}:model"]) == 2
    message = error_line(capsys)
    assert "The function model of" in message and "argument: 'size'" in message


# An audit of which only the verdict matters, or that fails.
AUDIT = """
import sys
import reprt_lab.command

class Audit:
    looks_ahead = {looks_ahead}

def do(*arguments, **options):
    {first}
    return Audit()

reprt_lab.command._do = do
sys.exit(reprt_lab.command.main(["audit", "run"]))
"""


@pytest.mark.parametrize(
    "output, looks_ahead, first, status",
    [
        ("/dev/null", True, "", 3),
        ("/dev/null", False, "", 0),
        (">&-", True, "", 3),
        (">&-", False, "", 0),
        ("/dev/full", True, "", 2),
        ("/dev/full", False, "", 2),
        ("| true", True, "__import__('time').sleep(1)", 141),
        ("| true", False, "__import__('time').sleep(1)", 141),
        ("/dev/null", True, "sys.exit(3)", 2),
        ("/dev/null", True, "raise ValueError", 2),
        ("/dev/null", True, "raise KeyboardInterrupt", 130),
        ("/dev/null", True, "raise TypeError", 1),
        ("/dev/null", True, "__import__('os').abort()", 134),
    ],
)
def test_no_failure_has_the_status_of_a_verdict(
    output, looks_ahead, first, status
):
    script = AUDIT.format(looks_ahead=looks_ahead, first=first)
    redirection = output if output.startswith(("|", ">")) else f"> {output}"
    shell = f"{shlex.join([sys.executable, '-c', script])} {redirection}"
    command = ["bash", "-c", f'{shell}; exit "${{PIPESTATUS[0]}}"']
    environment = {**os.environ, "PYTHONPATH": str(tiny_run.REPOSITORY)}
    assert subprocess.run(command, env=environment).returncode == status


def test_standard_input_may_be_closed(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["translate", str(tmp_path)]) == 2
    assert "standard input is closed" in error_line(capsys)


def test_terminals_get_no_control_characters_and_files_get_all(
    monkeypatch, tmp_path, capsys
):
    text = "a \x1b[31m\x9b2J\rred\tword"
    translation = Translation(text, (), (text,))
    translator = types.SimpleNamespace(stream=lambda *_: [translation])
    monkeypatch.setattr(
        "reprt_lab.translate.translator_of", lambda *_: translator
    )
    monkeypatch.setattr("reprt_lab.translate._text", lambda *_: text)
    command = ["translate", str(tmp_path), text]
    visible_text = "a \ufffd[31m\ufffd2J\ufffdred\tword"
    assert plain("a \x1b[31m word") == "a \ufffd\\[31m word"  # of a page
    assert main(command) == 0
    assert capsys.readouterr() == (
        f"{text}\n",
        f"reprt: line 1: {visible_text}\n",
    )
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["source"] == text
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert main(command) == 0
    assert capsys.readouterr().out == f"{visible_text}\n"


def test_the_whole_error_is_shown_where_it_is_asked_for(monkeypatch, capsys):
    monkeypatch.setenv("REPRT_TRACEBACK", "1")
    assert main(["audit", "absent.keras"]) == 2
    *traceback, message = capsys.readouterr().err.splitlines()
    assert traceback[0] == "Traceback (most recent call last):"
    assert any("in load_model" in line for line in traceback)
    assert message.startswith("reprt: Expected a .keras file.")


COMMANDS = (
    "attention audit evaluate export freeze page schema score train translate"
).split()


def test_every_command_explains_itself(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert (
        re.findall(r"^  ([a-z]+) ", text.split("Commands:")[1], re.M)
        == COMMANDS
    )
    assert main(["train", "--help"]) == 0
    assert set(shipped_recipes()) <= {
        *re.findall(r"\w+", capsys.readouterr().out)
    }


def test_the_schema_of_recipes_has_their_tables(capsys):
    assert main(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert {"text", "training", "models"} <= schema["properties"].keys()


WITH_ARGUMENTS = [name for name in COMMANDS if name != "schema"]


@pytest.mark.parametrize("name", [None, *WITH_ARGUMENTS])
def test_a_command_alone_explains_itself(name, capsys):
    assert main([name] if name else []) == 2
    output = capsys.readouterr()
    assert output.out == "" and output.err.startswith("Usage: reprt")
    expected = {None: "schema", "train": "pt_to_en_embedded"}.get(
        name, "Options:"
    )
    assert expected in output.err


def test_help_and_mistakes_load_nothing_of_the_package():
    script = (
        "import sys\n"
        "from reprt_lab.command import main\n"
        "assert main(['train', '--help']) == 0 and main(['train']) == 2\n"
        "assert not {'reprt', 'keras', 'numpy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
