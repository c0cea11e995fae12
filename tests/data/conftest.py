import http.server
import threading

import pytest

from reprt.data.corpora import download


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves `server.files` by their paths; `/cut` breaks off."""

    timeout = 10

    def do_GET(self):
        self.server.requests.append(self.path)
        content = self.server.files.get(self.path)
        if content is None:
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: 100_000 if self.path == "/cut" else None])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    """The server, with `files`, its `address`, and the paths of its `requests`."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "TIMEOUT", 5)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.files = {}
        server.requests = []
        server.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()
