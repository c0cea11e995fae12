"""CTranslate2 translates as the package does, and is refused what it cannot run."""

import json

import keras
import naive
import numpy as np
import pytest
import tensorflow as tf
import tiny
import variants

from reprt import models
from reprt.data.corpora import embedded
from reprt.data.encoding import encode
from reprt.data.tokenizers.bpe import BPESettings
from reprt.data.tokenizers.wordpiece import WordPiece
from reprt.decoding.ctranslate2_export import export_ctranslate2
from reprt.decoding.ctranslate2_translator import CTranslate2Translator
from reprt.decoding.export import ExportedTranslator
from reprt.decoding.translator import Translator
from reprt.lab.folder import RunFolder
from reprt.training.settings import TextSettings
from reprt_command import main

PAD, UNKNOWN, START, END = range(4)
NEVER = [PAD, START]
LETTERS = WordPiece(["[PAD]", "[UNK]", "[START]", "[END]", *"abcdefghijklmnop"])
# "\u200b" is something, of which the vocabulary makes nothing.
SENTENCES = ["a b c", "", "p", "d e f g", "ß", " ", "\u200b", "o n " * 40]
ORIGINAL, MODERN = ("transformer-base", {}), ("transformer-modern", {})
KNOWN = {
    "baseline": ("baseline", {}),
    "original": ORIGINAL,
    "modern": MODERN,
    "baseline, to the letter": variants.PAPERS["baseline, to the letter"],
    "baseline, unscaled, wide values": ("baseline", {"scale": "none", "value_dim": 6}),
    "norms before": variants.FAMILY["norms before"],
    "a last norm": variants.FAMILY["norms after, a last one"],
    **{
        f"position={name}": ("baseline", {"position": name})
        for name in ("none", "rotary", "relative")
    },
    "projected": ("baseline", {"output_tying": "projected", "shared_embedding": True}),
}
UNKNOWN_TO_IT = {
    "repe": "'position' one of .*'concat'",
    "position=alibi": "'position' one of .*'alibi'",
    "baseline, root mean squares": "'embedding_norm' one of .*'rms'",
    "baseline, a norm in the decoder": "'decoder_norm' one of .*'rms'",
    "baseline, no gains": "'layer_norm_gains' one of .*False",
    "baseline, queries and keys normed": "'query_key_norm' one of .*True",
    "decoder-only": "a DecoderOnly",
    "recurrent": "a Recurrent",
}


def lively(name, settings, tokenizer=LETTERS, seed=2):
    """A model with random weights whose translations are not all alike.

    As of trained models, all words are as likely on the mean, but [PAD] and [START],
    whose rows of the last matrix are equal and orthogonal to the others.
    """
    size, random = len(tokenizer), np.random.default_rng(seed)
    model = models.build(name, size, size, **{**naive.SIZES, **settings})
    for weight in model.weights:
        kind, values = weight.path.split("/")[-1], random.normal(size=weight.shape)
        scale = 1.2 if "kernel" in kind else 0.5 if "bed" in kind else 0.2
        weight.assign((kind == "gamma") + scale * values)
    against = 0
    if model.output_dense is not None:
        bias = model.output_dense.bias
        bias.assign(np.where(np.isin(np.arange(size), NEVER), -30, 0))
    else:
        table = model.target_embedding.embedding.embeddings
        rows = np.array(table.value)
        never = rows[START] / np.linalg.norm(rows[START])
        rows = 2 * (rows - np.outer(rows @ never, never))
        rows[NEVER] = never
        table.assign(rows)
        against = 30 * never
    words = random.integers(4, size, (2, 20, 30))
    away = against + np.array(model.states(tuple(words))).mean((0, 1))
    if model.output_projection is not None:
        away = np.linalg.solve(np.array(model.output_projection.kernel).T, away)
    stack = model.decoder
    last = stack.final_norm or stack.blocks[-1].feed_forward_norm
    last.beta.assign(last.beta - away)
    return model


def both(translator, folder, **options):
    """A translator, and that of CTranslate2 in its place."""
    place = export_ctranslate2(translator, folder, **options)
    engine = {"intra_threads": 1}
    return translator, CTranslate2Translator.load(place, engine)


def scores(translator, sources, targets):
    """What CTranslate2 makes of each target token, given those before it."""
    pieces = translator.source_tokenizer.vocabulary
    words = translator.target_tokenizer.vocabulary
    # It adds start and end of a target itself.
    found = translator.model.engine.score_batch(
        [[pieces[index] for index in row if index] for row in sources],
        [[words[index] for index in row] for row in targets],
    )
    return [np.array(each.log_probs) for each in found]


@pytest.mark.parametrize("variant", KNOWN)
def test_it_scores_as_the_model_does(variant, tmp_path):
    model = lively(*KNOWN[variant])
    _, theirs = both(Translator(model, LETTERS, LETTERS), tmp_path)
    sources = np.array([[2, 9, 5, 7, 4, 3], [2, 6, 8, 3, 0, 0]])
    targets = np.array([[4, 7, 5, 6, 9], [8, 5, 11, 12, 4]])
    start, end = np.full((2, 1), START), np.full((2, 1), END)
    logits = np.array(model((sources, np.hstack([start, targets]))))
    logits[..., NEVER] = -np.inf
    expected = np.take_along_axis(
        naive.log_softmax(logits), np.hstack([targets, end])[..., None], axis=2
    )[..., 0]
    assert expected.std() > 0.5
    found = scores(theirs, sources, targets)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("variant", ["baseline", "original", "modern"])
@pytest.mark.parametrize(
    "search",
    [{}, {"beam_size": 3, "max_tokens": 9}, {"beam_size": 4, "length_penalty": 1.0}],
    ids=str,
)
def test_it_translates_as_the_package_does(variant, search, briefly, tmp_path):
    model = lively(*KNOWN[variant])
    ours, theirs = both(Translator(model, LETTERS, LETTERS, 8, search), tmp_path)
    expected, found = ours(SENTENCES), theirs(SENTENCES)
    assert [one.text for one in found] == [one.text for one in expected]
    assert [one.notes for one in found] == [one.notes for one in expected]
    assert [one.tokens for one in found] == [one.tokens for one in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.score == pytest.approx(other.score, rel=1e-4, abs=1e-4)
        assert len(one.alternatives) == len(other.alternatives)
    assert len({one.text for one in found}) > 3


def test_what_has_ended_comes_before_what_the_limit_cuts(briefly, tmp_path):
    """CTranslate2 itself would have it the other way."""
    model = lively(*KNOWN["baseline"])
    kernel, bias = model.output_dense.weights
    kernel.assign(0 * kernel)
    bias.assign(np.eye(len(LETTERS))[5] * 9 + np.eye(len(LETTERS))[END] * 2)
    search = {"beam_size": 2, "max_tokens": 6, "length_penalty": 0.0}
    ours, theirs = both(Translator(model, LETTERS, LETTERS, 8, search), tmp_path)
    [expected], [found] = ours(["a b"]), theirs(["a b"])
    assert found.text == expected.text
    assert found.alternatives[0].ended
    with pytest.raises(ValueError, match="keeps no attention weights"):
        theirs.attention("a b")


TAGGED = BPESettings(size=150, shared=True, tags=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of the original Transformer on two languages of one vocabulary."""
    corpus = embedded.load(train=60, dev=2, test=2)
    text = encode(corpus, TAGGED, 24, tmp_path_factory.mktemp("cache"))
    folder = RunFolder(tmp_path_factory.mktemp("runs") / "original")
    of_text = {"vocabulary": TAGGED, "text": TextSettings(max_tokens=9)}
    settings = tiny.settings("transformer-base", model=naive.SIZES, **of_text)
    folder.open(settings, text)
    folder.save_model(lively(*ORIGINAL, tokenizer=text.target_tokenizer))
    return folder.path


OF_RUN = ["O homem", "", "a  casa", " \t ", "漢 a\u00a0casa", "a " * 20, "<en>"]


def test_a_run_is_exported_with_its_vocabularies(run, briefly, tmp_path, capsys):
    command = ["export", str(run), "--to", "ctranslate2", "--out", str(tmp_path)]
    assert main([*command, "--max-tokens", "4"]) == 0
    place = tmp_path / "ctranslate2"
    assert capsys.readouterr().out.splitlines() == [str(place)]
    assert json.loads((place / "config.json").read_text())["decoder_start_token"] == (
        "<en>"
    )
    for search in ({"max_tokens": 4}, {"beam_size": 2}):
        # A search of its own takes the place of the one that it was exported with.
        theirs = CTranslate2Translator.load(place, **search)
        ours = Translator.load(run, **{"max_tokens": 4, **search})
        expected, found = ours(OF_RUN), theirs(OF_RUN)
        assert [one.text for one in found] == [one.text for one in expected]
        assert [one.notes for one in found] == [one.notes for one in expected]
        assert len({one.text for one in found}) > 4
        exported = ExportedTranslator(ours)(tf.constant(OF_RUN)).numpy()
        assert [text.decode() for text in exported] == [one.text for one in expected]
    assert any("the first 9 of" in str(one.notes) for one in found)
    assert any("the vocabulary lacks " in note for note in found[4].notes)
    attended = ours.attention(OF_RUN[0])
    assert (attended.source[0], attended.target[0]) == ("<pt>", "<en>")

    before = sorted(path.name for path in place.iterdir())
    assert main(command) == 2
    assert "without ctranslate2. Received" in capsys.readouterr().err
    assert sorted(path.name for path in place.iterdir()) == before


def test_int8_is_smaller_and_nearly_the_same(tmp_path):
    keras.utils.set_random_seed(0)
    sizes = {**naive.SIZES, "embedding_dim": 64}
    model = models.build("transformer-base", len(LETTERS), len(LETTERS), **sizes)
    translator = Translator(model, LETTERS, LETTERS)
    _, exact = both(translator, tmp_path / "exact")
    _, rough = both(translator, tmp_path / "rough", quantization="int8")
    large, small = (
        (tmp_path / name / "ctranslate2" / "model.bin").stat().st_size
        for name in ("exact", "rough")
    )
    positions = 4 * 64 * 2048  # which stay as they are
    assert small - positions < 0.5 * (large - positions)
    random = np.random.default_rng(0)
    sources, targets = random.integers(4, len(LETTERS), (2, 8, 12))
    expected, found = (
        np.array(scores(each, sources, targets)) for each in (exact, rough)
    )
    error = np.abs(found - expected)
    # Processors without 8-bit products of their own round more.
    assert 0 < error.mean() < 0.4 * expected.std()


@pytest.mark.parametrize("variant", UNKNOWN_TO_IT)
def test_what_it_does_not_know_is_named(variant, tmp_path):
    name, settings = variants.ALL.get(variant, (variant, {}))
    sizes = tiny.RECURRENT if name == "recurrent" else tiny.TINY
    model = models.build(name, 20, 20, **{**sizes, **settings})
    translator, told = Translator(model, LETTERS, LETTERS), UNKNOWN_TO_IT[variant]
    with pytest.raises(ValueError, match=f"{told}\\. CTranslate2 cannot run it: "):
        export_ctranslate2(translator, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_quantization_is_that_of_ctranslate2(run, tmp_path):
    with pytest.raises(ValueError, match="'int8'.*quantization='int4'"):
        export_ctranslate2(Translator.load(run), tmp_path, "int4")


def test_a_folder_that_holds_something_else_is_refused(run):
    with pytest.raises(ValueError, match="to hold translator.json and a model of"):
        CTranslate2Translator.load(run)
