"""Copies and pickles of what translates; attributes that cannot be changed."""

import copy
import pickle

import naive
import pytest
from elsewhere import python
from naive import END, SIZES, START

from reprt.constants import RESERVED
from reprt.data.tokenizers.bpe import BPE, learn_model
from reprt.data.tokenizers.wordpiece import WordPiece
from reprt.decoding.beam_search import BeamSearch
from reprt.decoding.translator import Translator
from reprt.models import build

SENTENCE = "a casa e a rua"
WORDS = "a", "e", "casa", "rua", "o", "mar"


def cloudpickle_copy(value):
    cloudpickle = pytest.importorskip("ray.cloudpickle")
    return cloudpickle.loads(cloudpickle.dumps(value))


def pickle_copy(value):
    return pickle.loads(pickle.dumps(value))


COPY_FUNCTIONS = {
    "deepcopy": copy.deepcopy,
    "pickle": pickle_copy,
    "cloudpickle": cloudpickle_copy,
}


@pytest.fixture(scope="module")
def tokenizer():
    return WordPiece([*RESERVED, *WORDS])


@pytest.fixture
def translator(tokenizer):
    model = naive.randomize(
        build("repe-causal", 10, 10, **SIZES), seed=1, end=0.0
    )
    return Translator(model, tokenizer, tokenizer, search={"max_tokens": 5})


@pytest.mark.parametrize("is_used_before", [False, True])
@pytest.mark.parametrize("name", COPY_FUNCTIONS)
def test_copies_translate_alike_with_a_model_of_their_own(
    name, is_used_before, translator
):
    if is_used_before:
        expected = translator(SENTENCE)
    duplicate = COPY_FUNCTIONS[name](translator)
    assert duplicate.search.model is duplicate.model
    if not is_used_before:
        expected = translator(SENTENCE)
    # All but the end and one word are impossible to the original from now on.
    bias = translator.model.output_dense.bias
    bias.assign([-1e6, -1e6, -1e6, 1e6, *[-1e6] * 6])
    assert translator(SENTENCE).tokens == ()
    assert duplicate(SENTENCE).tokens == expected.tokens != ()


def test_a_shallow_copy_has_the_same_model(translator):
    expected = translator(SENTENCE)
    duplicate = copy.copy(translator)
    assert duplicate.model is translator.model
    assert duplicate(SENTENCE) == expected


def test_a_pickle_translates_in_another_process(translator, tmp_path):
    expected = translator(SENTENCE)
    path = tmp_path / "translator.pickle"
    path.write_bytes(pickle.dumps(translator))
    script = (
        "import pickle, sys\n"
        "translator = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(translator(sys.argv[2]).text)"
    )
    assert python(script, path, SENTENCE) == expected.text


@pytest.mark.parametrize("make_copy", [*COPY_FUNCTIONS.values(), copy.copy])
@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_tokenizers_are_copied_before_and_after_their_use(
    kind, make_copy, tokenizer
):
    if kind == "bpe":
        tokenizer = BPE(learn_model([SENTENCE] * 3, 20))
    for _ in range(2):
        duplicate = make_copy(tokenizer)
        assert duplicate.digest() == tokenizer.digest()
        [ids] = duplicate.encode([SENTENCE])
        [expected] = tokenizer.encode([SENTENCE])
        assert ids.tolist() == expected.tolist()
        assert duplicate.start_id == tokenizer.start_id
        # The first use makes the graph.
        tokenizer.graph


def test_what_was_compiled_for_a_value_keeps_it(translator):
    search = BeamSearch(translator.model, START, END)
    for owner in (translator, search, translator.source_tokenizer):
        for name in vars(owner):
            if name.startswith("_"):
                continue
            message = f"{name} cannot be changed.*Make"
            with pytest.raises(AttributeError, match=message):
                setattr(owner, name, None)
            with pytest.raises(AttributeError, match=message):
                delattr(owner, name)
    with pytest.raises(AttributeError, match="end_id cannot be changed"):
        translator.source_tokenizer.end_id = 5
    assert isinstance(translator.source_tokenizer.vocabulary, tuple)
