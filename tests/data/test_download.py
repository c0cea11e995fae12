import hashlib
import random
from concurrent import futures

import pytest

from reprt.data.corpora.download import download

CONTENT = random.Random(1).randbytes(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
ERRORS = {
    "cut": "100000 bytes read, 200000 more expected",
    "wrong": f"SHA256 .*{SHA256} but got {hashlib.sha256(bytes(300_000)).hexdigest()}",
    "missing": "404 Client Error",
}


@pytest.fixture
def fetch(server, tmp_path):
    server.files |= {
        "/good": CONTENT,
        "/cut": CONTENT,
        "/wrong": bytes(300_000),
    }
    path = tmp_path / "cache" / "file"
    return lambda name, digest=SHA256: download(
        f"{server.address}/{name}", path, digest
    )


def names(path):
    return sorted(file.name for file in path.parent.iterdir())


@pytest.mark.parametrize(
    "digest", [SHA256, f"md5:{hashlib.md5(CONTENT).hexdigest()}"]
)
def test_a_file_is_downloaded_once_and_shown(fetch, server, capsys, digest):
    path = fetch("good", digest)
    assert path.read_bytes() == CONTENT and names(path) == ["file", "file.lock"]
    assert "file: 100% of 300kB, " in capsys.readouterr().err
    assert fetch("missing", digest) == path and server.requests == ["/good"]
    assert not capsys.readouterr().err


@pytest.mark.parametrize("name", ERRORS)
def test_what_is_not_the_file_is_told_and_not_kept(
    fetch, tmp_path, capsys, name
):
    with pytest.raises(
        OSError, match=f"/{name} cannot be .*: .*{ERRORS[name]}"
    ):
        fetch(name)
    assert name != "missing" or not capsys.readouterr().err
    assert names(tmp_path / "cache" / "file") == ["file.lock"]
    assert fetch("good").read_bytes() == CONTENT


def test_only_one_process_downloads(fetch, server):
    with futures.ThreadPoolExecutor() as pool:
        paths = list(pool.map(fetch, ["good"] * 4))
    assert len(server.requests) == 1
    assert all(path.read_bytes() == CONTENT for path in paths)
