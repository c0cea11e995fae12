"""A run that starts from another run's weights."""

import hashlib

import pytest
import tiny
from tiny import assert_same, variables

from reprt.data.corpora import embedded
from reprt.data.encoding import encode

NAME = "repe-causal"


@pytest.fixture
def origin(eagerly, trainer):
    run = trainer("origin", NAME)
    run.train_epoch()
    return run


def test_the_weights_are_the_others_and_the_rest_begins_anew(trainer, origin):
    place = str(origin.folder.path)
    ours = trainer("run", NAME, start_from=place, seed=1)
    assert_same(ours.model.get_weights(), origin.model.get_weights())
    assert ours.state.step == 0 == int(ours._optimizer.iterations.numpy())
    (start,) = ours.folder.manifest().starts
    content = origin.folder.model.read_bytes()
    assert start.weights_from == {
        "path": str(origin.folder.model),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def test_a_resumed_run_does_not_ask_for_it_again(trainer, origin):
    place = str(origin.folder.model)
    ours = trainer("run", NAME, start_from=place)
    ours.train_epoch()
    origin.folder.model.unlink()
    again = trainer("run", NAME, start_from=place)
    assert_same(variables(again), variables(ours))
    _, second = ours.folder.manifest().starts
    assert second.weights_from is None


def test_a_model_of_other_sizes_is_refused(trainer, origin):
    message = r"^Expected .*model.keras to be a model of .* sizes\. .*\(8,\)\."
    with pytest.raises(ValueError, match=message):
        trainer(
            "run",
            *(NAME, {"embedding_dim": 12}),
            start_from=str(origin.folder.path),
        )


def test_vocabularies_have_to_be_the_others_or_are_taken(origin, tmp_path):
    place = str(origin.folder.path)
    corpus = embedded.load(train=9, dev=10, test=4)
    other = encode(corpus, tiny.VOCABULARY, 24, tmp_path / "cache")
    run = tiny.settings(NAME, start_from=place)
    with pytest.raises(ValueError, match="Take its own, by from_run = '/"):
        tiny.make_trainer(tmp_path / "tuned" / "run", run, other)
    vocabulary = tiny.VOCABULARY.changed(from_run=place)
    taken = encode(corpus, vocabulary, 24, tmp_path / "cache")
    ours = tiny.make_trainer(tmp_path / "tuned" / "run", run, taken)
    assert_same(ours.model.get_weights(), origin.model.get_weights())
