import hashlib
import http.server
import random
import shutil
import socket
import threading
import types
from concurrent import futures

import pooch
import pytest

from reprt.data.corpora import download as module
from reprt.data.corpora.download import DownloadError, download

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
    return lambda way: download(f"{server.address}/{way}", path, len(CONTENT), SHA256)


@pytest.fixture
def part(tmp_path):
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache" / "file.part"


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


@pytest.mark.parametrize("moved", [False, True])
def test_a_kill_once_all_is_there_costs_nothing(
    fetch, server, part, monkeypatch, moved
):
    def killed(file, to):
        if moved:
            shutil.move(file, to)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(pooch.core, "shutil", types.SimpleNamespace(move=killed))
        fetch("good")
    path = fetch("missing")

    assert path.read_bytes() == CONTENT and not path.is_symlink()
    assert not part.exists() and server.ranges == [None]


def test_a_file_that_is_right_stays_beside_a_part(fetch, part):
    other = part.with_name("other")
    other.write_bytes(CONTENT)
    part.with_name("file").symlink_to(other)
    part.write_bytes(CONTENT[:1000])

    assert fetch("missing").read_bytes() == other.read_bytes() == CONTENT


def test_a_part_that_is_too_long_is_not_resumed(fetch, server, part):
    part.write_bytes(CONTENT + b"!")

    assert fetch("good").read_bytes() == CONTENT
    assert server.ranges == [None]


def test_a_part_of_another_file_is_found_out(fetch, part):
    part.write_bytes(bytes(1000))

    with pytest.raises(DownloadError, match="SHA256"):
        fetch("good")
    assert not part.exists()
    assert fetch("good").read_bytes() == CONTENT


def test_wrong_hash(fetch, part):
    received = hashlib.sha256(bytes(len(CONTENT))).hexdigest()

    with pytest.raises(DownloadError, match=f"{SHA256} but got {received}"):
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


def test_it_is_shown_how_far_a_download_is(fetch, capsys):
    with pytest.raises(DownloadError):
        fetch("drops_at_first")
    capsys.readouterr()
    fetch("drops_at_first")

    first, *_, last = capsys.readouterr().err.splitlines()
    assert first.startswith("file:  33% of 300kB, ")
    assert last.startswith("file: 100% of 300kB, ")
