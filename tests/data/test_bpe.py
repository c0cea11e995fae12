import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st

from reprt.constants import RESERVED, START_ID
from reprt.data.corpora.corpus import Split
from reprt.data.tokenizers import tokenizer as tokenizers
from reprt.data.tokenizers.bpe import BPE, BPESettings
from reprt_lab.recipe import load_recipe

TAGS = ("<pt>", "<en>")
SETTINGS = {
    "separate": BPESettings(size=150),
    "shared": BPESettings(size=150, shared=True),
    "tagged": BPESettings(size=150, shared=True, tags=True),
}
UNUSUAL_TEXTS = [
    "",
    " \t ",
    "  O homem\u00a0 sabe.\n",
    "[START] [END] [PAD] <pt> <en>",
    "漢字 e 漢x漢",
    "a\x00casa\u200b, ﬁ ½ …",
    "▁a ▁",
    "\ufffd \ufeff e\u0301",
]


@pytest.fixture(scope="module")
def corpus():
    corpus = tiny.corpus(train=60, dev=1, test=1)
    sides = (corpus.train.source, corpus.train.target)
    train = Split(*([line.capitalize() for line in lines] for lines in sides))
    return dataclasses.replace(corpus, train=train)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("vocabularies")


@pytest.fixture(scope="module")
def vocabularies(corpus, folder):
    return {
        name: options.learn(corpus, folder)
        for name, options in SETTINGS.items()
    }


@pytest.fixture(params=SETTINGS)
def sides(request, vocabularies):
    return vocabularies[request.param]


def test_decoding_gives_the_text_that_was_encoded(sides, corpus):
    for tokenizer, sentences in zip(
        sides, (corpus.train.source, corpus.train.target)
    ):
        assert tokenizer.words(sentences) == sentences
        assert tokenizer.detokenize(sentences[0]) == sentences[0]
        assert tokenizer.words([f"\t {sentences[0]}\u3000\n"]) == sentences[:1]


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(st.text(), min_size=1))
def test_any_text_has_the_same_ids_in_python_and_in_tensorflow(
    vocabularies, texts
):
    tokenizer = vocabularies["tagged"][0]
    ids = [row.tolist() for row in tokenizer.encode(texts)]
    assert tokenizer.graph_encode(tf.constant(texts)).to_list() == ids
    for row in ids:
        assert not set(row[1:-1]) & {0, *range(START_ID, 6)}  # text writes none


def test_each_vocabulary_has_its_edges_tags_and_sides(vocabularies, corpus):
    for name, (source, target) in vocabularies.items():
        tags = TAGS if name == "tagged" else ()
        for number, tokenizer in enumerate((source, target)):
            assert tokenizer.start_id == (4 + number if tags else START_ID)
            assert tuple(tokenizer.vocabulary[: 4 + len(tags)]) == (
                *RESERVED,
                *tags,
            )
            for ids in tokenizer.encode([*corpus.train.source, *UNUSUAL_TEXTS]):
                assert ids.dtype == np.int32 and ids.max() < len(tokenizer)
                assert (ids[0], ids[-1]) == (
                    tokenizer.start_id,
                    tokenizer.end_id,
                )
        assert (source.vocabulary == target.vocabulary) == (name != "separate")
        assert (source.digest() == target.digest()) == (name == "shared")
        assert len(source) == len(target) == SETTINGS[name].size


def test_chunks_are_cut_and_decoding_stops_at_an_end(
    sides, corpus, monkeypatch
):
    monkeypatch.setattr(tokenizers, "CHUNK", 7)
    tokenizer = sides[1]
    sentences = corpus.train.target
    chunks = list(tokenizer.encode_chunks(sentences, max_tokens=6))
    assert [len(rows) for rows in chunks] == [7] * 8 + [4]
    sequences = tokenizer.encode(sentences)
    ids_of_chunks = [ids.tolist() for rows in chunks for ids in rows]
    assert ids_of_chunks == [ids[:6].tolist() for ids in sequences]
    rows = [
        np.append(sequences[0], sequences[0]),
        np.append(sequences[0], [0, 0]),
        sequences[0][:-1],
    ]
    assert tokenizer.decode([*rows, []]) == sentences[:1] * 3 + [""]
    with pytest.raises(
        ValueError, match="several sentences. Received one: 'olá'"
    ):
        tokenizer.encode("olá")


class InGraph(tf.Module):
    def __init__(self, source, target):
        super().__init__()
        self._source, self._target = source, target
        self._graphs = [source.graph, target.graph]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def encode(self, sentences):
        return self._source.graph_encode(sentences)

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)])
    def write(self, ids):
        return self._target.graph_detokenize(ids)


def test_a_saved_graph_does_the_same_on_both_sides(sides, corpus, tmp_path):
    source, target = sides
    sentences = [*corpus.train.target, *UNUSUAL_TEXTS]
    tf.saved_model.save(InGraph(source, target), str(tmp_path))
    module = tf.saved_model.load(str(tmp_path))
    ids = module.encode(tf.constant(sentences))
    assert ids.to_list() == [row.tolist() for row in source.encode(sentences)]
    expected = target.encode(sentences)
    pieces = tf.ragged.constant(
        [row[1:-1].tolist() for row in expected], tf.int32
    )
    texts = [text.decode() for text in module.write(pieces).numpy()]
    assert texts == target.decode(expected)


def test_a_copy_in_a_file_is_the_same_and_a_damaged_one_is_named(
    vocabularies, tmp_path
):
    tokenizer = vocabularies["tagged"][1]
    path = tmp_path / "mine.spm"
    tokenizer.write(path)
    copy = BPE.read(path)
    assert (copy.digest(), copy.start_id) == (tokenizer.digest(), 5)
    for content in (b"", b"[PAD]\n[UNK]\n", tokenizer.model[:-5]):
        path.write_bytes(content)
        with pytest.raises(
            ValueError, match="mine.spm cannot be used: .* sentencep"
        ):
            BPE.read(path)


def test_sizes_that_cannot_be_are_told(corpus, tmp_path):
    for size in (3, 20):
        with pytest.raises(ValueError, match=f"'size' in .* Received: {size}"):
            SETTINGS["shared"].changed(size=size).learn(corpus, tmp_path)
    assert not list(tmp_path.iterdir())


def test_two_vocabularies_of_a_run_are_not_one(corpus, tmp_path):
    sides = SETTINGS["shared"].changed(shared=False).learn(corpus, tmp_path)
    for name, tokenizer in zip(("source", "target"), sides):
        tokenizer.write(tmp_path / f"{name}{tokenizer.ending}")
    settings = SETTINGS["shared"].changed(from_run=str(tmp_path))
    with pytest.raises(ValueError, match="one vocabulary .*, as shared = true"):
        settings.learn(corpus, tmp_path)


def test_tagged_vocabularies_of_a_run_are_taken(corpus, tmp_path):
    settings = SETTINGS["tagged"]
    untagged_folder, folder = tmp_path / "untagged", tmp_path / "tagged"
    for name, path in (("shared", untagged_folder), ("tagged", folder)):
        path.mkdir()
        sides = SETTINGS[name].learn(corpus, tmp_path / "cache")
        for side, tokenizer in zip(("source", "target"), sides):
            tokenizer.write(path / f"{side}{tokenizer.ending}")
    taken = settings.changed(from_run=str(folder)).learn(corpus, tmp_path)
    assert [side.digest() for side in taken] == [
        side.digest() for side in sides
    ]
    with pytest.raises(ValueError, match="to have the piece <pt>"):
        settings.changed(from_run=str(untagged_folder)).learn(corpus, tmp_path)


def test_tags_and_one_embedding_table_take_one_vocabulary(tmp_path):
    recipe = tmp_path / "mine.toml"
    recipe.write_text("[models.mine]\npreset = 'transformer-base'\n")
    with pytest.raises(ValueError, match="Received: name = 'wordpiece'"):
        load_recipe(recipe)
    with pytest.raises(
        ValueError, match="'shared' in .* to be true where 'tags' is"
    ):
        load_recipe(recipe, ["vocabulary.name=bpe", "vocabulary.tags=true"])
    changes = ["vocabulary.name=bpe", "vocabulary.shared=true"]
    (run,) = load_recipe(recipe, changes).runs()
    assert run.vocabulary == BPESettings(shared=True)
