"""Serves a folder over HTTP, with ranges, as any web server does: python static_server.py FOLDER"""

import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Handler(SimpleHTTPRequestHandler):
    """Files, or single ranges of them."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        self._answer(is_head=False)

    def do_HEAD(self):
        self._answer(is_head=True)

    def _answer(self, *, is_head):
        path = Path(self.translate_path(self.path))
        data = path.read_bytes() if path.is_file() else b""
        if not path.is_file():
            self.send_response(404)
        elif asked := self.headers.get("Range"):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start = int(first) if first else max(0, len(data) - int(last))
            stop = min(int(last) + 1, len(data)) if first and last else len(data)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(data)}")
            data = data[start:stop]
        else:
            self.send_response(200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if not is_head:
            self.wfile.write(data)

    def log_message(self, *_):
        """Say nothing."""


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=sys.argv[1])) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)  # noqa: T201  the test reads it
        server.serve_forever()
