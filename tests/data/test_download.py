import functools
import gzip
import hashlib
import http.server
import io
import itertools
import random
import socket
import tarfile
import threading
import types
from concurrent import futures

import pytest

from reprt.data.corpora import download as module
from reprt.data.corpora.download import (
    ArchiveError,
    DownloadError,
    check,
    download,
    unpack,
)

CONTENT = random.Random(1).randbytes(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves `CONTENT` in ways, good and bad, that the path of the request names."""

    server: "Server"
    timeout = 10

    def do_GET(self):
        wanted = self.headers.get("Range")
        self.server.ranges.append(wanted)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        getattr(self, self.path.strip("/"))(start)

    def good(self, start):
        if start >= len(CONTENT):
            self.send_error(416)
        elif start:
            last = len(CONTENT) - 1
            content_range = f"bytes {start}-{last}/{len(CONTENT)}"
            self._send(CONTENT[start:], status=206, content_range=content_range)
        else:
            self._send(CONTENT)

    def drops_at_first(self, start):
        if start:
            return self.good(start)
        self._send(CONTENT[:100_000], length=len(CONTENT))

    def without_range(self, start):
        self._send(CONTENT)

    def never_satisfiable(self, start):
        if start:
            return self.send_error(416)
        self._send(CONTENT)

    def wrong_hash(self, start):
        self._send(bytes(len(CONTENT)))

    def page(self, start):
        self._send(b"<!DOCTYPE html><p>Moved!", content_type="text/html")

    def page_of_unknown_length(self, start):
        self._send(b"<!DOCTYPE html><p>Moved!", length=None)

    def endless(self, start):
        self._send(b"", length=None)
        try:
            for _ in range(1000):
                self.wfile.write(CONTENT)
        except ConnectionError:
            self.server.hung_up.set()

    def missing(self, start):
        self.send_error(404)

    def _send(self, body, status=200, length=0, content_type=None, content_range=None):
        self.send_response(status)
        if length is not None:
            self.send_header("Content-Length", str(length or len(body)))
        if content_type:
            self.send_header("Content-Type", content_type)
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.ranges = []
        self.hung_up = threading.Event()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(module, "TIMEOUT", 5)
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def fetch(server, tmp_path):
    path = tmp_path / "cache" / "file"
    return lambda way, sha256=SHA256, progress=None: download(
        f"{server.address}/{way}", path, len(CONTENT), sha256, progress
    )


@pytest.fixture
def part(tmp_path):
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache" / "file.part"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def _set_clock(monkeypatch, ticks):
    clock = types.SimpleNamespace(monotonic=lambda: next(ticks))
    monkeypatch.setattr(module, "time", clock)


def test_download_from_scratch(fetch, server, part):
    path = fetch("good")

    assert path.read_bytes() == CONTENT
    assert not part.exists()
    assert server.ranges == [None]


def test_a_right_file_is_not_downloaded_again(fetch, server):
    fetch("good")
    fetch("missing")

    assert len(server.ranges) == 1


def test_a_wrong_file_is_replaced(fetch, part):
    part.with_name("file").write_bytes(b"something else")

    assert fetch("good").read_bytes() == CONTENT


def test_resumes_after_a_dropped_connection(fetch, server, part):
    with pytest.raises(DownloadError, match="dropped after 100000 of 300000.*resume"):
        fetch("drops_at_first")
    assert part.read_bytes() == CONTENT[:100_000]

    assert fetch("drops_at_first").read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=100000-"]


@pytest.mark.parametrize("way", ["without_range", "never_satisfiable"])
def test_restarts_if_the_server_cannot_resume(fetch, part, way):
    part.write_bytes(b"not even the same beginning")

    assert fetch(way).read_bytes() == CONTENT


def test_a_complete_part_needs_no_server(fetch, server, part):
    part.write_bytes(CONTENT)

    assert fetch("missing").read_bytes() == CONTENT
    assert not server.ranges


def test_a_part_that_is_too_long_is_not_resumed(fetch, server, part):
    part.write_bytes(CONTENT + b"!")

    assert fetch("good").read_bytes() == CONTENT
    assert server.ranges == [None]


def test_a_part_of_another_file_is_found_out(fetch, part):
    part.write_bytes(bytes(1000))

    with pytest.raises(DownloadError, match="sha256"):
        fetch("good")
    assert not part.exists()
    assert fetch("good").read_bytes() == CONTENT


def test_wrong_hash(fetch, part):
    received = hashlib.sha256(bytes(len(CONTENT))).hexdigest()

    with pytest.raises(DownloadError, match=f"{SHA256}. Received: {received}"):
        fetch("wrong_hash")
    assert not list(part.parent.glob("file*[!k]"))


@pytest.mark.parametrize(
    "way, message",
    [
        ("page", "Expected 300000 bytes. Received: 24 bytes of text/html"),
        ("page_of_unknown_length", "300000 bytes. Received: 24, .*<!DOCTYPE html>"),
    ],
)
def test_a_page_instead_of_the_file(fetch, part, way, message):
    with pytest.raises(DownloadError, match=message):
        fetch(way)
    assert not part.exists()


def test_a_page_with_a_length_does_not_cost_what_is_there(fetch, part):
    part.write_bytes(CONTENT[:1000])

    with pytest.raises(DownloadError):
        fetch("page")
    assert part.read_bytes() == CONTENT[:1000]


def test_stops_reading_what_is_too_long(fetch, server, part):
    with pytest.raises(DownloadError, match="300000 bytes. Received: more than 300000"):
        fetch("endless")
    assert server.hung_up.wait(5)
    assert not part.exists()


def test_missing_file(fetch, part):
    with pytest.raises(DownloadError, match=r"404 \(Not Found\)"):
        fetch("missing")
    assert not part.exists()


def test_connection_refused(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/file"
        with pytest.raises(DownloadError, match="cannot be reached: .*refused"):
            download(url, tmp_path / "file", 1, SHA256)


def test_silent_server(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(module, "TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/file"
        with pytest.raises(DownloadError, match="cannot be reached: timed out"):
            download(url, tmp_path / "file", 1, SHA256)


def test_only_one_process_downloads(fetch, server):
    with futures.ThreadPoolExecutor() as pool:
        paths = list(pool.map(fetch, ["good"] * 4))

    assert len(server.ranges) == 1
    assert all(path.read_bytes() == CONTENT for path in paths)


def test_progress_on_a_terminal_rewrites_one_line(fetch, monkeypatch):
    _set_clock(monkeypatch, itertools.count())
    terminal = Terminal()

    fetch("good", progress=terminal)

    first, *_, last = terminal.getvalue().removeprefix("\r").split("\r")
    assert first.rstrip() == "file:   0% of 0.3 MB"
    assert last.rstrip(" \n") == "file: 100% of 0.3 MB, 0.1 MB/s, ETA 0:00"
    assert ", ETA 0:03" in terminal.getvalue()
    assert terminal.getvalue().count("\n") == 1


def test_progress_in_a_log_is_sparse(fetch, capsys):
    fetch("good")

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("file:   0%") and lines[1].startswith("file: 100%")


def test_speed_does_not_count_what_was_there_before(monkeypatch):
    _set_clock(monkeypatch, iter((0, 100)))
    stream = io.StringIO()

    with module.Progress("file", 200_000_000, stream) as progress:
        progress(50_000_000)
        progress(100_000_000)

    assert stream.getvalue().endswith("50% of 200.0 MB, 0.5 MB/s, ETA 3:20\n")


def test_check_names_both_sizes(tmp_path):
    (tmp_path / "file").write_bytes(b"1234")

    with pytest.raises(DownloadError, match="5 bytes. Received: 4, .*b'1234'"):
        check(tmp_path / "file", 5, SHA256)


def _archive(path, *members, mode="w:gz"):
    with tarfile.open(path, mode) as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(bytes(member.size)))
    return path


def _member(name, **attributes):
    member = tarfile.TarInfo(name)
    for key, value in attributes.items():
        setattr(member, key, value)
    return member


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_unpack(tmp_path, mode):
    archive = _archive(tmp_path / "a", _member("b/c", size=5), mode=mode)

    folder = unpack(archive, tmp_path / "new" / "folder")

    assert folder == tmp_path / "new" / "folder"
    assert (folder / "b" / "c").read_bytes() == bytes(5)
    assert list((tmp_path / "new").iterdir()) == [folder]


def test_unpack_leaves_a_whole_folder_alone(tmp_path):
    (tmp_path / "folder").mkdir()

    unpack("no such archive", tmp_path / "folder")

    assert not list((tmp_path / "folder").iterdir())


LINK = functools.partial(_member, type=tarfile.SYMTYPE)


@pytest.mark.parametrize(
    "members",
    [
        [_member("../evil")],
        [_member("a/../../evil")],
        [_member("/tmp/evil")],
        [LINK("link", linkname="../..")],
        [LINK("link", linkname="/etc/passwd")],
        [LINK("link", linkname=".."), _member("link/evil")],
        [_member("link", type=tarfile.LNKTYPE, linkname="../evil")],
        [_member("device", type=tarfile.CHRTYPE)],
        [_member("pipe", type=tarfile.FIFOTYPE)],
    ],
)
def test_hostile_members_are_refused(tmp_path, members):
    archive = _archive(tmp_path / "hostile", _member("good", size=1), *members)

    with pytest.raises(ArchiveError, match="hostile is refused, and nothing of it"):
        unpack(archive, tmp_path / "new" / "folder")
    assert not list((tmp_path / "new").iterdir())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hostile", "new"]


def _damaged():
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        member = _member("file", size=len(CONTENT))
        archive.addfile(member, io.BytesIO(CONTENT))
    whole = gzip.compress(tar.getvalue())
    yield "truncated", whole[: len(whole) // 2]
    yield "truncated in its first bytes", whole[:30]
    yield "without its last bytes", whole[:-4]
    yield "wrong checksum", whole[:-8] + bytes(4) + whole[-4:]
    yield "garbled", whole[:1000] + bytes(1000) + whole[2000:]
    yield "uncompressed and truncated", tar.getvalue()[:100_000]
    yield "text", b"<!DOCTYPE html>" * 100
    yield "compressed text", gzip.compress(b"<!DOCTYPE html>" * 100)
    yield "nothing", b""


@pytest.mark.parametrize("_, data", _damaged(), ids=[name for name, _ in _damaged()])
def test_damaged_archives_leave_nothing_behind(tmp_path, _, data):
    (tmp_path / "archive").write_bytes(data)

    with pytest.raises(ArchiveError, match="should be a whole tar .*Get it anew"):
        unpack(tmp_path / "archive", tmp_path / "new" / "folder")
    assert not list((tmp_path / "new").iterdir())


def test_unpacking_twice_at_once(tmp_path, monkeypatch):
    archive = _archive(tmp_path / "a", _member("b/c", size=5))
    extract, both_are_done = module._extract, threading.Barrier(2, timeout=5)

    def extract_and_wait(*args):
        extract(*args)
        both_are_done.wait()

    monkeypatch.setattr(module, "_extract", extract_and_wait)
    with futures.ThreadPoolExecutor() as pool:
        one, other = pool.map(unpack, [archive] * 2, [tmp_path / "new" / "folder"] * 2)

    assert one == other and (one / "b" / "c").read_bytes() == bytes(5)
    assert list((tmp_path / "new").iterdir()) == [one]
