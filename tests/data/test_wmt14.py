"""WMT'14 from a local server that has its layout, a few hundred pairs an archive."""

import concurrent.futures
import dataclasses
import errno
import gzip
import hashlib
import http.server
import io
import json
import tarfile
import threading

import pytest
import tiny_run

from reprt.data.corpora import download, embedded, wmt14
from reprt.data.corpora.wmt14 import cleaned
from reprt.data.search import TextUnavailable, find
from reprt.data.tokenizers.bpe import BPESettings
from reprt.lab.recipe import load_recipe
from reprt.presets import preset
from reprt.training.settings import (
    AdamSettings,
    AdamWSettings,
    CosineSettings,
    InverseSqrtSettings,
    SentencesSettings,
    TokensSettings,
    TranslationAndSourceSettings,
    TranslationSettings,
)
from reprt_command import main

PAIRS = 200  # of each archive
DIRTY = [("only here", ""), ("word " * 251, "word"), ("a", "b " * 10), ("\u0301", "b")]
NEWS = 'doc" sysid="src">\n<hl>\n<seg id="1"> {} &amp;\ttwo</seg>\n</hl><p>\n'


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves files; closes the connection in the middle of those that are to be cut."""

    timeout = 10

    def do_GET(self):
        content, wanted = self.server.files[self.path], self.headers.get("Range")
        self.server.asked.append((self.path, wanted))
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        if start:
            last = len(content) - 1
            self.send_header("Content-Range", f"bytes {start}-{last}/{len(content)}")
        self.end_headers()
        cut = self.path in self.server.cut
        self.server.cut.discard(self.path)
        self.wfile.write(content[start : len(content) // 2 if cut else None])

    def log_message(self, *_):
        pass


def packed(name, files):
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
    train = embedded.load(train=PAIRS * len(wmt14.TRAIN)).train
    english, french = train.target, train.source  # in fact Portuguese
    return {
        part.name: [
            *zip(english[start : start + PAIRS], french[start : start + PAIRS]),
            *DIRTY,
        ]
        for part, start in zip(wmt14.TRAIN, range(0, len(train), PAIRS))
    }


@pytest.fixture(scope="module")
def archives(pairs):
    """The content of every archive by its part's name."""
    found = {}
    for part in wmt14.TRAIN:
        files = {}
        for member, side in zip(part.members, zip(*pairs[part.name])):
            text = "".join(f"{sentence}\r\n" for sentence in side).encode()
            files[member] = gzip.compress(text) if member.endswith(".gz") else text
        found[part.name] = packed(part.url, files)
    dev = {member: f"{member}\nlast\n".encode() for member in wmt14.DEV.members}
    test = {member: NEWS.format(member).encode() for member in wmt14.TEST.members}
    found["newstest2013"] = packed(".tgz", dev)
    found["newstest2014"] = packed(".tgz", test)
    return found


@pytest.fixture
def server(archives, monkeypatch, tmp_path):
    """The parts come from a server on this machine and go into a cache of their own."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("REPRT_CACHE", str(tmp_path))
    monkeypatch.setattr(download, "TIMEOUT", 5)
    address = "127.0.0.1", 0
    with http.server.ThreadingHTTPServer(address, Handler) as server:
        server.files, server.cut, server.asked = {}, set(), []

        def here(part):
            content = archives[part.name]
            path = "/" + part.url.split("/", 3)[3]
            server.files[path] = content
            kind = "md5" if part.known_hash.startswith("md5:") else "sha256"
            return dataclasses.replace(
                part,
                url=f"http://127.0.0.1:{server.server_port}{path}",
                size=part.size and len(content),
                known_hash=f"{kind}:{hashlib.new(kind, content).hexdigest()}",
            )

        monkeypatch.setattr(wmt14, "TRAIN", tuple(map(here, wmt14.TRAIN)))
        for name in ("DEV", "TEST"):
            monkeypatch.setattr(wmt14, name, here(getattr(wmt14, name)))
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def expected(pairs):
    return [pair for part in pairs.values() for pair in part[:PAIRS]]


def test_the_whole_text(server, pairs, tmp_path):
    corpus = find("wmt14", "en_to_fr")

    assert corpus.name == "WMT14 en_to_fr" and not corpus.official
    assert list(zip(corpus.train.source, corpus.train.target)) == expected(pairs)
    assert list(corpus.dev.source) == ["dev/newstest2013.en", "last"]
    assert list(corpus.dev.target) == ["dev/newstest2013.fr", "last"]
    assert corpus.test.source == ["test-full/newstest2014-fren-src.en.sgm &amp; two"]
    assert corpus.test.target == ["test-full/newstest2014-fren-ref.fr.sgm &amp; two"]
    # Each archive was asked for once, and only the archives and the text are kept.
    assert len(server.asked) == len(server.files) == 7
    folder = wmt14.place()
    assert {path.name for path in folder.iterdir()} == {
        *("train.en", "train.fr", "parts.json", "newstest2013", "newstest2014")
    }
    record = json.loads((folder / "parts.json").read_text())
    assert [(part["name"], part["pairs"], part["kept"]) for part in record] == [
        (part.name, PAIRS + len(DIRTY), PAIRS) for part in wmt14.TRAIN
    ]
    lines = [f"{english}\n".encode() for english, _ in pairs["un"][:PAIRS]]
    assert record[2]["sha256"][0] == hashlib.sha256(b"".join(lines)).hexdigest()

    server.files.clear()
    other = find("wmt14", "fr_to_en")
    assert other.train.source[:] == corpus.train.target[:]
    assert other.test.target == ["test-full/newstest2014-fren-ref.en.sgm &amp; two"]


def test_a_cut_connection_is_resumed(server, pairs, archives):
    paths = {part.name: "/" + part.url.split("/", 3)[3] for part in wmt14.TRAIN}
    paths["newstest2014"] = "/wmt14/test-full.tgz"  # whose size is not known
    server.cut = {paths["un"], paths["newstest2014"]}
    for name in ("newstest2014", "un"):
        half = len(archives[name]) // 2
        with pytest.raises(TextUnavailable, match=f"{paths[name]}: .* after {half} of"):
            find("wmt14", "en_to_fr")
    corpus = find("wmt14", "en_to_fr")

    assert list(zip(corpus.train.source, corpus.train.target)) == expected(pairs)
    for name in ("newstest2014", "un"):
        asked = [wanted for path, wanted in server.asked if path == paths[name]]
        assert asked == [None, f"bytes={len(archives[name]) // 2}-"]
    assert len(server.asked) == 7 + 2


@pytest.mark.parametrize("at", ["un", "giga-fren"])
def test_a_killed_part_is_done_again_and_no_other(server, pairs, monkeypatch, at):
    class Killed(BaseException):
        pass

    def kills(source, target):
        seen.append(source)
        if source.strip().decode() == pairs[at][PAIRS // 2][0]:
            raise Killed
        return cleaned(source, target)

    seen: list[bytes] = []
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(wmt14, "cleaned", kills)
        find("wmt14", "en_to_fr")
    done = len(seen) // (PAIRS + len(DIRTY))
    unpacked = wmt14.place() / at
    assert unpacked.is_dir()
    for language in wmt14.LANGUAGES:  # a disk may keep what was not yet recorded
        with (wmt14.place() / f"train.{language}").open("ab") as file:
            file.write(b"\nhalf a")

    again: list[bytes] = []
    monkeypatch.setattr(
        wmt14, "cleaned", lambda *pair: again.append(pair[0]) or cleaned(*pair)
    )
    corpus = find("wmt14", "en_to_fr")

    assert list(zip(corpus.train.source, corpus.train.target)) == expected(pairs)
    assert len(again) == (len(wmt14.TRAIN) - done) * (PAIRS + len(DIRTY))
    assert len(server.asked) == 7  # each archive once
    assert not unpacked.exists()


@pytest.mark.parametrize(
    "part, message",
    [
        ("newstest2013", "dev.tgz does not deliver .*Expected [0-9]+ bytes"),
        ("europarl-v7", "training-parallel-europarl-v7.tgz did not .*SHA256"),
        ("newstest2014", "test-full.tgz did not .*MD5"),
    ],
)
def test_another_file_is_refused_and_named(server, part, message):
    path = next(path for path in server.files if message.split(" ")[0] in path)
    content = bytearray(server.files[path])
    content[-1] ^= 1
    server.files[path] = bytes(content) + b"!" * (part == "newstest2013")

    with pytest.raises(TextUnavailable, match=message):
        find("wmt14", "en_to_fr")


def test_files_that_do_not_align_are_named(server, monkeypatch, pairs):
    first = wmt14.TRAIN[0]
    files = dict.fromkeys(first.members, b"one\n")
    files[first.members[1]] += b"two\n"
    content = packed("x.tgz", files)
    server.files["/" + first.url.split("/", 3)[3]] = content
    sha256 = hashlib.sha256(content).hexdigest()
    changed = dataclasses.replace(first, size=len(content), known_hash=sha256)
    monkeypatch.setattr(wmt14, "TRAIN", (changed,))

    with pytest.raises(TextUnavailable, match="Both files of europarl-v7 .*fr-en.fr"):
        find("wmt14", "en_to_fr")


def test_a_text_that_was_cut_is_not_gone_on_with(server):
    find("wmt14", "en_to_fr")
    (wmt14.place() / "train.fr").write_bytes(b"short")

    with pytest.raises(TextUnavailable, match="train.fr to have .* Remove "):
        find("wmt14", "en_to_fr")


@pytest.mark.parametrize(
    "damage",
    [
        lambda record: record[0].update(name="../victim"),
        lambda record: record[1].update(bytes=[3]),
        lambda record: record[1].update(bytes=[-3, 3]),
        lambda record: record.append(record[-1]),
    ],
)
def test_a_damaged_record_removes_nothing_and_is_named(server, damage):
    find("wmt14", "en_to_fr")
    victim = wmt14.place().parent / "victim"
    victim.mkdir()
    path = wmt14.place() / "parts.json"
    record = json.loads(path.read_text())
    damage(record)
    path.write_text(json.dumps(record))
    with pytest.raises(TextUnavailable, match="parts.json to have the parts .* Remove"):
        find("wmt14", "en_to_fr")
    assert victim.is_dir()


def test_a_whole_text_is_read_where_nothing_can_be_written(server, monkeypatch):
    before = find("wmt14", "en_to_fr")

    def refuse(*_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(wmt14, "held", refuse)
    again = find("wmt14", "en_to_fr")
    assert list(again.train.source) == list(before.train.source)


def test_what_a_killed_process_has_left_is_removed(server, pairs):
    find("wmt14", "en_to_fr")
    left = wmt14.place() / wmt14.TRAIN[-1].name
    left.mkdir()
    with (wmt14.place() / "train.en").open("ab") as file:
        file.write(b"\nmore")
    corpus = find("wmt14", "en_to_fr")
    assert list(zip(corpus.train.source, corpus.train.target)) == expected(pairs)
    assert not left.exists() and len(server.asked) == 7


def test_two_processes_make_one_text(server, pairs):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda _: find("wmt14", "en_to_fr"), range(2)))
    for corpus in found:
        assert list(zip(corpus.train.source, corpus.train.target)) == expected(pairs)
    assert len(server.asked) == 7


def test_other_rules_have_another_place(server, monkeypatch):
    before = wmt14.place()
    monkeypatch.setattr(wmt14, "LONGEST", 100)
    assert wmt14.place() != before


TINY = """
text.max_tokens=24 vocabulary.size=300 batching.size=400 schedule.warmup_steps=4
training.steps=3 training.keep_every=2 training.bleu=false models.base.num_blocks=1
models.base.embedding_dim=8 models.base.num_heads=2 models.base.key_dim=4
models.base.value_dim=4 models.base.feed_forward_dim=16
"""


def test_one_command_downloads_and_trains(server, tmp_path, eagerly):
    recipe = tiny_run.REPOSITORY / "experiments" / "wmt14_en_fr.toml"
    sets = [f"--set={each}" for each in TINY.split()]
    out = tmp_path / "out"

    assert main(["train", str(recipe), "--out", str(out), *sets]) == 0

    manifest, metrics = (
        json.loads((out / "base" / f"{name}.json").read_text())
        for name in ("manifest", "metrics")
    )
    kept = ["step-00000002.keras", "step-00000003.keras"]
    assert metrics["averaged_models"] == kept
    assert manifest["text"] == "WMT14 en_to_fr"
    assert "WMT14 en_to_fr" in (out / "report.md").read_text()


def test_another_pair_is_refused():
    with pytest.raises(TextUnavailable, match="en_to_fr, fr_to_en. Received: 'de_to"):
        find("wmt14", "de_to_en")


@pytest.mark.parametrize(
    "pair, kept",
    [
        ((b" a\t b\r\n", b"c\xc2\xa0\n"), (b"a b", b"c\xc2\xa0")),
        ((b"a " * 250, b"b " * 28), ((b"a " * 250)[:-1], (b"b " * 28)[:-1])),
        ((b"a " * 251, b"b " * 250), None),
        ((b"a " * 9, b"b"), ((b"a " * 9)[:-1], b"b")),
        ((b"b", b"a " * 10), None),
        ((b"\n", b"b"), None),
        (("\u200b\u0301".encode(), b"b"), None),
        ((b"a\xff", b"b"), None),
    ],
)
def test_cleaning(pair, kept):
    assert cleaned(*pair) == kept


def test_sentences_of_sgml_are_sacrebleus(tmp_path):
    from sacrebleu.dataset.fake_sgml import FakeSGMLDataset

    (tmp_path / "in.sgm").write_text(
        '<refset>\n<doc id="a">\n<p>\n<seg id="1">One &amp; \xa0two </seg>\n'
        '<seg id="2"></seg>\n<seg id="3">"Three" <b>four</b></seg>\n</p></doc>\n',
        "utf-8",
    )
    dataset = FakeSGMLDataset("any", langpairs={})
    dataset._convert_format(str(tmp_path / "in.sgm"), str(tmp_path / "out"))
    theirs = (tmp_path / "out").read_text("utf-8").removesuffix("\n").split("\n")
    assert wmt14._segments(tmp_path / "in.sgm") == theirs


def test_what_it_takes_from_others_is_theirs():
    """Addresses, sizes and hashes of TFDS and sacrebleu, where these are installed."""
    tfds = pytest.importorskip("tensorflow_datasets")
    folder = tfds.core.tfds_path() / "url_checksums"
    known = {}
    for name in ("wmt14_translate.txt", "wmt15_translate.txt"):
        for line in (folder / name).read_text().splitlines():
            url, size, sha256, _ = line.split("\t")
            known[url] = int(size), sha256
    for part in (*wmt14.TRAIN, wmt14.DEV):
        assert known[part.url] == (part.size, part.known_hash)

    from sacrebleu.dataset import DATASETS

    full = DATASETS["wmt14/full"]
    assert full.data == [wmt14.TEST.url]
    assert [f"md5:{each}" for each in full.md5] == [wmt14.TEST.known_hash]
    for pair in (("en", "fr"), ("fr", "en")):
        names = [wmt14.SOURCE.format(pair[0]), wmt14.REFERENCE.format(pair[1])]
        assert full.langpairs["-".join(pair)] == names


def the_run(name):
    recipe = tiny_run.REPOSITORY / "experiments" / f"wmt14_en_fr{name}.toml"
    (run,) = load_recipe(recipe).runs()
    assert (run.text.source, run.text.pair) == ("wmt14", "en_to_fr")
    assert run.training.hours > 24 * 365
    return run


def test_the_recipe_of_the_original():
    run = the_run("")

    assert run.model == preset("transformer-base") and run.schedule_dim == 512
    assert run.vocabulary == BPESettings(size=37000, shared=True)
    assert run.batching == TokensSettings(size=25000)
    assert run.optimizer == AdamSettings(beta_1=0.9, beta_2=0.98, epsilon=1e-9)
    assert run.schedule == InverseSqrtSettings(warmup_steps=4000)
    assert run.objective == TranslationSettings(label_smoothing=0.1)
    assert (run.training.steps, run.training.average) == (100000, 5)


@pytest.mark.parametrize(
    "name, model, vocabulary, steps, objective",
    [
        (
            "_modern",
            "transformer-modern",
            BPESettings(size=30000),
            228000,
            TranslationSettings(label_smoothing=0.1),
        ),
        (
            "_decoder_only",
            "decoder-only",
            BPESettings(size=32000, shared=True, tags=True),
            150000,
            TranslationAndSourceSettings(label_smoothing=0.1, alpha=0.1, turn=0.25),
        ),
    ],
)
def test_the_recipes_of_its_successors(name, model, vocabulary, steps, objective):
    run = the_run(name)

    assert run.model == preset(model)
    assert run.vocabulary == vocabulary
    assert run.objective == objective
    assert run.batching == SentencesSettings(size=384)
    assert run.optimizer == AdamWSettings(weight_decay=0.01, loss_scaling="dynamic")
    assert run.schedule == CosineSettings(warmup_steps=2000, peak=6e-4, floor=6e-5)
    assert (run.training.steps, run.training.precision) == (steps, "mixed_float16")
