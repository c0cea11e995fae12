"""Candidates: how they are learnt, and what a search makes of them."""

import json
import shutil

import numpy as np
import pytest
import tiny_run
from naive import END, START
from tiny import RECURRENT, TINY

from reprt import models
from reprt.cli import main
from reprt.decoding.beam_search import BeamSearch
from reprt.decoding.candidates import Candidates
from reprt.decoding.translator import Translator
from reprt.runs.run_folder import RunFolderError

SOURCES = np.array([[2, 9, 5, 7, 4, 3], [2, 6, 8, 3, 0, 0]], dtype="int32")
PAIRS = [
    (np.array([2, 4, 5, 3]), np.array([2, 6, 7, 3])),
    (np.array([2, 4, 4, 3]), np.array([2, 6, 6, 3])),
    (np.array([2, 5, 3]), np.array([2, 7, 8, 3])),
]


def build(name, **settings):
    sizes = RECURRENT if name == "recurrent" else TINY
    model = models.build(name, 11, 11, **{**sizes, **settings})
    random = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(weight + 0.5 * random.normal(size=weight.shape))
    return model


def assert_alike(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        assert [each.ids for each in ours] == [each.ids for each in theirs]
        scores = [[each.score for each in row] for row in (ours, theirs)]
        assert scores[0] == pytest.approx(scores[1], rel=1e-5, abs=1e-5)


def test_likely_pieces_are_those_that_stand_in_the_same_pairs():
    found = Candidates.learn(iter(PAIRS), 7, 9, common=2, likely=2)
    # 2 and 3 stand in all targets, and reserved ids are always common.
    assert found.common.tolist() == [0, 1, 2, 3]
    # 4 is in two pairs, both times with 6; 7 is in one of them, and in two in all.
    assert found.likely[4].tolist() == [6, 2]
    assert found.likely[5].tolist() == [7, 2]
    assert [len(found.likely[piece]) for piece in (0, 1, 6)] == [0, 0, 0]
    few = Candidates.learn(iter(PAIRS), 7, 9, common=0, likely=1)
    assert few.likely[4].tolist() == [6] and few.likely[5].tolist() == [7]


def test_counts_do_not_depend_on_how_many_pairs_are_counted_at_a_time(monkeypatch):
    random = np.random.default_rng(0)
    pairs = [random.integers(4, 40, (2, 6)) for _ in range(50)]
    whole = Candidates.learn(pairs, 40, 40)
    monkeypatch.setattr("reprt.decoding.candidates.PAIRS_AT_A_TIME", 7)
    parts = Candidates.learn(pairs, 40, 40)
    for one, other in zip(whole.likely, parts.likely, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "name, settings",
    [
        ("baseline", {}),
        ("repe", {}),
        ("repe", {"embedding_norm": "none", "output_tying": "projected"}),
        ("decoder-only", {}),
        ("recurrent", {}),
    ],
)
def test_a_search_scores_candidates_and_chooses_no_other(name, settings):
    model = build(name, **settings)
    limits = {"beam_size": 2, "max_tokens": 8}
    every = Candidates(range(11), [[]] * 11)
    usual = BeamSearch(model, START, END, **limits)(SOURCES)
    search = BeamSearch(model, START, END, **limits, candidates=every)
    assert_alike(search(SOURCES), usual)

    allowed = [START, END, 5, 6, 9]
    few = Candidates(allowed[:2], [allowed[2:]] * 11)
    search = BeamSearch(model, START, END, **limits, candidates=few)
    found = search(SOURCES)
    words = {word for row in found for each in row for word in each.ids}
    assert words and words <= {5, 6, 9}
    # As if all the others were impossible.
    logits = type(model).logits

    def masked(states, projection=None):
        barred = np.full(11, -1e9, "float32")
        barred[allowed] = 0
        return logits(model, states) + barred

    model.logits = masked
    assert_alike(found, BeamSearch(model, START, END, **limits)(SOURCES))


def test_batches_may_have_any_numbers_of_candidates(monkeypatch):
    monkeypatch.setattr("reprt.decoding.beam_search.PIECES_MULTIPLE", 2)
    model = build("baseline")
    candidates = Candidates(range(4), [[]] * 4 + [[5], [6], [5, 7], [8], [9], [4, 5]])
    search = BeamSearch(
        model, START, END, beam_size=2, max_tokens=6, candidates=candidates
    )
    for source in ([4, 4], [5, 6], [9, 5, 6], [4, 5, 6, 7, 8, 9], [5, 8]):
        allowed = set(candidates(np.array([source])))
        (hypotheses,) = search(np.array([source]))
        assert {word for each in hypotheses for word in each.ids} <= allowed


@pytest.fixture
def run(tmp_path, tmp_path_factory, monkeypatch):
    base = tmp_path_factory.getbasetemp()
    monkeypatch.setenv("REPRT_CACHE", str(tiny_run.cache(base)))
    trained = tiny_run.trained(base)
    shutil.copytree(trained / "out" / "baseline", tmp_path / "baseline")
    return tmp_path / "baseline"


def test_the_commands_learn_and_use_them(run, capsys):
    with pytest.raises(RunFolderError, match="`reprt candidates` writes. Received a r"):
        Translator.load(run, candidates=True)
    assert main(["candidates", str(run)]) == 0
    assert capsys.readouterr().out == f"{run / 'candidates.json'}\n"
    translator = Translator.load(run, candidates=True)
    assert len(translator.search.candidates.likely) == len(translator.source_tokenizer)
    assert main(["translate", str(run), "--candidates", "a casa"]) == 0
    assert main(["evaluate", str(run), "--candidates", "--split", "dev"]) == 0
    assert "greedy search, candidates" in capsys.readouterr().out
    result = json.loads((run / "evaluation-dev.json").read_text())
    assert result["search"]["candidates"] is True


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "JSON"),
        ('{"common": [1], "likely": [["a"]]}', "candidates.json.*'a'"),
        ('{"common": [1], "likely": [[2]]}', "a list for each of the .* Received 1 li"),
    ],
)
def test_a_file_of_other_vocabularies_is_refused(run, text, message):
    (run / "candidates.json").write_text(text)
    with pytest.raises(RunFolderError, match=message):
        Translator.load(run, candidates=True)
