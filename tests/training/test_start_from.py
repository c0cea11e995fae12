"""A run that starts from another run's weights."""

import hashlib

import pytest
import tiny
from tiny import assert_same, variables

from reprt.data.encoding import encode

NAME = "repe-causal"


@pytest.fixture
def origin(eagerly, trainer):
    run = trainer("origin", NAME)
    run.train_epoch()
    return run


def test_the_weights_are_the_others_and_the_rest_begins_anew(trainer, origin):
    path = str(origin.folder.path)
    training = trainer("run", NAME, start_from=path, seed=1)
    assert_same(training.model.get_weights(), origin.model.get_weights())
    assert training.state.step == 0
    assert int(training._optimizer.iterations.numpy()) == 0
    (start,) = training.folder.manifest().starts
    content = origin.folder.model.read_bytes()
    assert start.weights_from == {
        "path": str(origin.folder.model),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def test_a_resumed_run_does_not_ask_for_it_again(trainer, origin):
    path = str(origin.folder.model)
    training = trainer("run", NAME, start_from=path)
    training.train_epoch()
    origin.folder.model.unlink()
    continuation = trainer("run", NAME, start_from=path)
    assert_same(variables(continuation), variables(training))
    _, second_start = training.folder.manifest().starts
    assert second_start.weights_from is None


def test_a_model_of_other_sizes_is_refused(trainer, origin):
    message = r"^Expected .*model.keras to be a model of .* sizes\. .*\(8,\)\."
    with pytest.raises(ValueError, match=message):
        trainer(
            "run",
            *(NAME, {"embedding_dim": 12}),
            start_from=str(origin.folder.path),
        )


def test_vocabularies_have_to_be_the_others_or_are_taken(origin, tmp_path):
    path = str(origin.folder.path)
    corpus = tiny.corpus(train=9, dev=10, test=4)
    other_text = encode(corpus, tiny.VOCABULARY, 24, tmp_path / "cache")
    run = tiny.settings(NAME, start_from=path)
    with pytest.raises(ValueError, match="Take its own, by from_run = '/"):
        tiny.make_trainer(tmp_path / "tuned" / "run", run, other_text)
    vocabulary = tiny.VOCABULARY.changed(from_run=path)
    matching_text = encode(corpus, vocabulary, 24, tmp_path / "cache")
    training = tiny.make_trainer(tmp_path / "tuned" / "run", run, matching_text)
    assert_same(training.model.get_weights(), origin.model.get_weights())
