"""Models of BPE that were damaged, or are of another text: named, and never used."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2 as messages

from reprt.data.corpora import embedded
from reprt.data.encoding import encode
from reprt.data.tokenizers.bpe import BPE, BPESettings
from reprt.decoding.translator import Translator
from reprt.lab.folder import RunFolder
from reprt.lab.recipe import load_recipe
from reprt_command import main

SETTINGS = {
    "separate": BPESettings(size=150),
    "shared": BPESettings(size=150, shared=True),
    "tagged": BPESettings(size=150, shared=True, tags=True),
}


@pytest.fixture(scope="module")
def corpus():
    return embedded.load(train=60, dev=2, test=2)


@pytest.fixture(scope="module")
def learnt(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabularies")
    return {name: each.learn(corpus, folder) for name, each in SETTINGS.items()}


def edited(model, **changes):
    proto = messages.ModelProto.FromString(model)
    for name, value in changes.items():
        setattr(proto.trainer_spec, name, value)
    return proto.SerializeToString()


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda model: b"", "model of sentencepiece. Received 0 bytes"),
        (lambda model: b"[PAD]\n[UNK]\n", "model of sentencepiece"),
        (lambda model: model[:-5], "model of sentencepiece"),
        (lambda model: edited(model, bos_piece="<az>"), "ids 0, 3 and -1"),
        (lambda model: edited(model, pad_piece="<pad>"), "ids -1, 3 and 4"),
        (lambda model: edited(model, eos_piece="</s>"), "ids 0, -1 and 4"),
        (lambda model: foreign(), "begins with '<unk> <s> </s>"),
    ],
)
def test_what_is_no_model_is_refused_and_its_file_named(
    learnt, tmp_path, damage, message
):
    path = tmp_path / "damaged.spm"
    path.write_bytes(damage(learnt["tagged"][0].model))
    with pytest.raises(ValueError, match=f"damaged.spm cannot be used: .*{message}"):
        BPE.read(path)


def foreign():
    """A model as sentencepiece makes it by default."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a casa"]),
        model_writer=model,
        model_type="bpe",
        vocab_size=9,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


@given(at=st.floats(0, 1), cut=st.integers(0, 9), new=st.binary(max_size=9))
def test_any_damage_is_read_or_refused(learnt, at, cut, new):
    model = learnt["tagged"][0].model
    place = int(at * len(model))
    try:
        BPE(model[:place] + new + model[place + cut :]).words(["A casa, ﬁ ½ 漢"])
    except ValueError as error:
        assert str(error)


@pytest.mark.parametrize(
    "settings, made, pair, message",
    [
        ("shared", "separate", "pt_to_en", "received two that differ"),
        ("tagged", "shared", "pt_to_en", "start with <pt> .* received \\[START\\]"),
        ("tagged", "tagged", "az_to_en", "<az> .* received <pt> and <en>"),
        ("shared", "tagged", "pt_to_en", "received <pt> and <en>"),
    ],
)
def test_other_vocabularies_than_the_settings_are_told(
    learnt, settings, made, pair, message
):
    SETTINGS[made].check(*learnt[made], "pt_to_en")
    with pytest.raises(ValueError, match=message):
        SETTINGS[settings].check(*learnt[made], pair)


def test_sizes_that_cannot_be_are_told(corpus, tmp_path):
    for size in (3, 20):
        with pytest.raises(ValueError, match=f"'size' in .* Received: {size}"):
            SETTINGS["shared"].changed(size=size).learn(corpus, tmp_path)
    assert not list(tmp_path.iterdir())


def test_models_of_another_side_or_run_are_refused(corpus, settings, tmp_path):
    text = encode(corpus, SETTINGS["tagged"], 24, tmp_path / "cache")
    folder = RunFolder(tmp_path / "run")
    folder.open(settings("repe", vocabulary=SETTINGS["tagged"]), text)
    source = folder.path / "source.spm"
    for content in (source.read_bytes()[:-9], None):
        source.unlink() if content is None else source.write_bytes(content)
        with pytest.raises(ValueError, match="source.spm cannot be used"):
            Translator.load(folder.path)


@pytest.mark.parametrize(
    "vocabulary, model, message",
    [
        ("tags = true", "repe", "'shared' in [vocabulary] to be true where 'tags' is"),
        ("tags = 1\nshared = true", "repe", "'vocabulary.tags' in"),
        ("", "transformer-base", "with name = 'bpe' and shared = true"),
        ("size = 0", "repe", "'vocabulary.size' in"),
    ],
)
def test_recipes_that_cannot_be_are_refused(
    tmp_path, capsys, vocabulary, model, message
):
    recipe = tmp_path / "mine.toml"
    recipe.write_text(
        f"[vocabulary]\nname = 'bpe'\n{vocabulary}\n"
        f"[models.mine]\npreset = '{model}'\n"
    )
    assert main(["train", str(recipe), "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_one_embedding_table_takes_one_vocabulary(tmp_path):
    recipe = tmp_path / "mine.toml"
    recipe.write_text("[models.mine]\npreset = 'transformer-base'\n")
    with pytest.raises(ValueError, match="Received: name = 'wordpiece'"):
        load_recipe(recipe)
    changes = ["vocabulary.name=bpe", "vocabulary.shared=true"]
    (run,) = load_recipe(recipe, changes).runs()
    assert run.vocabulary == BPESettings(shared=True)
