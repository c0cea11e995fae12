"""WMT'14 from a local server that has its layout, a few hundred pairs an archive."""

import concurrent.futures
import dataclasses
import gzip
import hashlib
import io
import json
import tarfile

import pytest
import tiny
from sacrebleu.dataset import DATASETS
from sacrebleu.dataset.fake_sgml import FakeSGMLDataset

from reprt.data.corpora import wmt14
from reprt.data.corpora.find import TextUnavailable, find
from reprt.data.corpora.wmt14 import clean_pair
from reprt.data.encoding import encode
from reprt.data.tokenizers.bpe import BPESettings

PAIRS = 200  # of each archive
DIRTY_PAIRS = [
    ("only here", ""),
    ("word " * 251, "word"),
    ("a", "b " * 10),
    ("\u0301", "b"),
]
NEWSTEST = DATASETS["wmt14/full"]
NEWS = 'doc" sysid="src">\n<hl>\n<seg id="1"> {} &amp;\ttwo</seg>\n</hl><p>\n'


def pack(name, files):
    archive = io.BytesIO()
    mode = "w" if name.endswith("tar") else "w:gz"
    with tarfile.open(fileobj=archive, mode=mode) as tar:
        for member, content in files.items():
            info = tarfile.TarInfo(member)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        tar.addfile(tarfile.TarInfo("of/another.pair"), io.BytesIO())
        link = tarfile.TarInfo("of/another.link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return archive.getvalue()


@pytest.fixture(scope="module")
def pairs():
    """The sentences of each part, its dirt among them."""
    train = tiny.corpus(train=PAIRS * len(wmt14.TRAIN)).train
    english, french = train.target, train.source  # in fact Portuguese
    return {
        part.name: [
            *zip(english[start : start + PAIRS], french[start : start + PAIRS]),
            *DIRTY_PAIRS,
        ]
        for part, start in zip(wmt14.TRAIN, range(0, len(train), PAIRS))
    }


@pytest.fixture(scope="module")
def archives(pairs):
    """The content of every archive by its part's name."""
    contents = {}
    for part in wmt14.TRAIN:
        files = {}
        for language in part.languages:
            for member, side in zip(
                part.members(language), zip(*pairs[part.name])
            ):
                text = "".join(f"{sentence}\r\n" for sentence in side).encode()
                files[member] = (
                    gzip.compress(text) if member.endswith(".gz") else text
                )
        contents[part.name] = pack(part.url, files)
    dev_members = wmt14.DEV.members("fr") + wmt14.DEV.members("de")
    dev = {member: f"{member}\nlast\n".encode() for member in dev_members}
    names = {
        name
        for pair in wmt14.PAIRS
        for name in NEWSTEST.langpairs[pair.replace("_to_", "-")]
    }
    test = {member: NEWS.format(member).encode() for member in names}
    contents["newstest2013"] = pack(".tgz", dev)
    contents["newstest2014"] = pack(".tgz", test)
    return contents


@pytest.fixture(autouse=True)
def wmt(server, archives, monkeypatch, tmp_path):
    """The parts come from a server on this machine and go into a cache of their own."""
    monkeypatch.setenv("REPRT_CACHE", str(tmp_path))

    def serve(url, content):
        path = "/" + url.split("/", 3)[3]
        server.files[path] = content
        return f"{server.address}{path}"

    def move(part):
        content = archives[part.name]
        sha256 = hashlib.sha256(content).hexdigest()
        return dataclasses.replace(
            part, url=serve(part.url, content), sha256=sha256
        )

    monkeypatch.setattr(wmt14, "TRAIN", tuple(map(move, wmt14.TRAIN)))
    monkeypatch.setattr(wmt14, "DEV", move(wmt14.DEV))
    content = archives["newstest2014"]
    monkeypatch.setattr(NEWSTEST, "data", [serve(NEWSTEST.data[0], content)])
    monkeypatch.setattr(NEWSTEST, "md5", [hashlib.md5(content).hexdigest()])


def expected_pairs(pairs):
    return [pair for part in pairs.values() for pair in part[:PAIRS]]


def training_pairs(corpus):
    return list(zip(corpus.train.source, corpus.train.target))


def test_the_whole_text(server, pairs, tmp_path):
    with pytest.raises(
        TextUnavailable, match="fr_to_en, .* Received: 'de_to_fr'"
    ):
        find("wmt14", "de_to_fr")
    corpus = find("wmt14", "en_to_fr")

    assert corpus.name == "WMT14 en_to_fr" and not corpus.official
    assert training_pairs(corpus) == expected_pairs(pairs)
    assert list(corpus.dev.source) == ["dev/newstest2013.en", "last"]
    assert list(corpus.dev.target) == ["dev/newstest2013.fr", "last"]
    news = "test-full/newstest2014-fren-{}.sgm &amp; two"
    assert list(corpus.test.source) == [news.format("src.en")]
    assert list(corpus.test.target) == [news.format("ref.fr")]
    # Each archive was asked for once, and only the archives and the text are kept.
    assert len(server.requests) == len(server.files) == 7
    folder = wmt14.place("fr")
    record = json.loads((folder / "parts.json").read_text())
    assert [(part["name"], part["pairs"], part["kept"]) for part in record] == [
        (part.name, PAIRS + len(DIRTY_PAIRS), PAIRS) for part in wmt14.TRAIN
    ]
    text = encode(corpus, BPESettings(size=300, shared=True), 999, tmp_path)
    assert text.source_tokenizer.decode(text.train.source) == list(
        corpus.train.source
    )
    assert text.target_tokenizer.decode(text.train.target) == list(
        corpus.train.target
    )

    server.files.clear()
    swapped_corpus = find("wmt14", "fr_to_en")
    assert swapped_corpus.train.source[:] == corpus.train.target[:]
    assert list(swapped_corpus.test.target) == [news.format("ref.en")]
    train = folder / "text" / "train.arrow"
    content = train.read_bytes()
    train.unlink()  # for its bytes are mapped
    train.write_bytes(content[:-1])
    assert find("wmt14", "en_to_fr") == corpus  # made anew
    assert train.read_bytes() == content


def test_german_is_in_three_of_the_archives(server, pairs):
    corpus = find("wmt14", "de_to_en")
    names = [name for name in pairs if name not in ("un", "giga-fren")]
    expected = [pair[::-1] for name in names for pair in pairs[name][:PAIRS]]
    assert training_pairs(corpus) == expected and len(server.requests) == 5
    assert list(corpus.dev.source) == ["dev/newstest2013.de", "last"]
    assert "newstest2014-deen-ref.en.sgm" in corpus.test.target[0]


def test_a_share_of_the_training_pairs_may_validate():
    whole_corpus = find("wmt14", "en_to_fr")
    corpus = whole_corpus.validated_on(0.1)
    assert corpus.name == "WMT14 en_to_fr, 10.00% held out"
    train = training_pairs(corpus)
    dev = [*zip(corpus.dev.source, corpus.dev.target)]
    assert sorted(train + dev) == sorted(training_pairs(whole_corpus))
    assert 0.07 < len(dev) / len(train + dev) < 0.13
    assert {*corpus.dev.source}.isdisjoint(corpus.train.source)
    assert corpus.test is whole_corpus.test
    assert whole_corpus.validated_on(0) is whole_corpus
    with pytest.raises(ValueError, match="'held_out' .* Received: 1e-09, of "):
        whole_corpus.validated_on(1e-9)


def test_what_was_killed_is_not_downloaded_again(server, pairs, monkeypatch):
    class Kill(BaseException):
        pass

    def clean_half(source, target):
        if source.strip().decode() == pairs["giga-fren"][PAIRS // 2][0]:
            raise Kill
        return clean_pair(source, target)

    with monkeypatch.context() as patch, pytest.raises(Kill):
        patch.setattr(wmt14, "clean_pair", clean_half)
        find("wmt14", "en_to_fr")
    # Two processes make one text.
    with concurrent.futures.ThreadPoolExecutor() as pool:
        corpora = list(pool.map(lambda _: find("wmt14", "en_to_fr"), range(2)))
    assert [training_pairs(corpus) for corpus in corpora] == [
        expected_pairs(pairs)
    ] * 2
    assert len(server.requests) == 7  # each archive once


@pytest.mark.parametrize(
    "pair, expected",
    [
        ((b" a\t b\r\n", b"c\xc2\xa0\n"), (b"a b", b"c\xc2\xa0")),
        ((b"a " * 250, b"b " * 28), ((b"a " * 250)[:-1], (b"b " * 28)[:-1])),
        ((b"a " * 251, b"b " * 250), None),
        ((b"a " * 9, b"b"), ((b"a " * 9)[:-1], b"b")),
        ((b"b", b"a " * 10), None),
        ((b"a\xff", b"b"), None),
    ],
)
def test_cleaning(pair, expected):
    assert clean_pair(*pair) == expected


def test_sentences_of_sgml_are_sacrebleus(tmp_path):
    sgml = (
        '<refset>\n<doc id="a">\n<p>\n<seg id="1">One &amp; \xa0two </seg>\n'
        '<seg id="2"></seg>\n<seg id="3">"Three" <b>four</b></seg>\n</p></doc>\n'
    )
    (tmp_path / "in.sgm").write_text(sgml, "utf-8")
    dataset = FakeSGMLDataset("any", langpairs={})
    dataset._convert_format(str(tmp_path / "in.sgm"), str(tmp_path / "out"))
    text = (tmp_path / "out").read_text("utf-8")
    expected = text.removesuffix("\n").split("\n")
    assert wmt14._segments(sgml) == expected
