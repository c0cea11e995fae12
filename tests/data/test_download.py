import hashlib
import http.server
import random
import socket
import threading
from concurrent import futures

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
        self.server.asked.append(self.path)
        if self.path == "/missing":
            return self.send_error(404)
        body = {"/wrong": bytes(300_000), "/page": b"<!DOCTYPE html>"}
        content = body.get(self.path, CONTENT)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: 100_000 if self.path == "/cut" else None])

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.asked = []


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
    return lambda way: download(f"{server.address}/{way}", path, SHA256)


def names(path):
    return sorted(each.name for each in path.parent.iterdir())


def test_a_file_is_downloaded_once_and_shown(fetch, server, tmp_path, capsys):
    path = fetch("good")
    assert path.read_bytes() == CONTENT and names(path) == ["file", "file.lock"]
    assert "file: 100% of 300kB, " in capsys.readouterr().err
    assert fetch("missing") == path and server.asked == ["/good"]
    assert not capsys.readouterr().err
    known = f"md5:{hashlib.md5(CONTENT).hexdigest()}"
    other = download(f"{server.address}/good", tmp_path / "other", known)
    assert other.read_bytes() == CONTENT


BAD = {
    "cut": "100000 bytes read, 200000 more expected",
    "wrong": f"SHA256 .*{SHA256} but got {hashlib.sha256(bytes(300_000)).hexdigest()}",
    "page": f"SHA256 .*{SHA256} but got ",
    "missing": "404 Client Error",
}


@pytest.mark.parametrize("way", BAD)
def test_what_is_not_the_file_is_told_and_not_kept(fetch, server, tmp_path, way):
    with pytest.raises(DownloadError, match=f"/{way} cannot be .*: .*{BAD[way]}"):
        fetch(way)
    assert names(tmp_path / "cache" / "file") == ["file.lock"]
    assert fetch("good").read_bytes() == CONTENT


@pytest.mark.parametrize("listens, message", [(False, "refused"), (True, "timed out")])
def test_nobody_answers(tmp_path, monkeypatch, listens, message):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(module, "TIMEOUT", 0.1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if listens:
            silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/file"
        with pytest.raises(DownloadError, match=f"{url} cannot .*{message}"):
            download(url, tmp_path / "file", SHA256)


def test_only_one_process_downloads(fetch, server):
    with futures.ThreadPoolExecutor() as pool:
        paths = list(pool.map(fetch, ["good"] * 4))
    assert len(server.asked) == 1
    assert all(path.read_bytes() == CONTENT for path in paths)
