"""The page for people: the tree of the hierarchy, chunk maps and slices, read by a Zarr library in the browser.

Its files lie under ``/...``, a path that no node can have. It holds no data, so it needs no token; what it then reads
from the same server does.
"""

from __future__ import annotations

import json
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = "/..."
"""Where the files of the page are; nothing in a hierarchy can be named so."""

_FILES = Path(__file__).parent / "static"
_PACKAGES = {
    "zarrita": ("zarrita", "0.7.5", "dist/src/index.js"),
    "@zarrita/storage": ("@zarrita/storage", "0.2.0", "dist/src/index.js"),
    "@zarrita/storage/fetch": ("@zarrita/storage", "0.2.0", "dist/src/fetch.js"),
    "numcodecs/blosc": ("numcodecs", "0.3.2", "dist/blosc.js"),
    "numcodecs/lz4": ("numcodecs", "0.3.2", "dist/lz4.js"),
    "numcodecs/zstd": ("numcodecs", "0.3.2", "dist/zstd.js"),
}
_NETWORK = "https://cdn.jsdelivr.net"


def page_routes(npm: Path | None = None) -> list[BaseRoute]:
    """The page and its files.

    Parameters
    ----------
    npm : path, optional
        A folder ``node_modules`` with zarrita, from which the browser gets it; else it comes from a public network.

    Raises
    ------
    RuntimeError
        If there is no such folder.
    """
    html = (_FILES / "index.html").read_text().replace("IMPORTS", json.dumps(_imports(npm)))
    fields = {"Content-Security-Policy": _policy(npm), "Vary": "Accept", "X-Content-Type-Options": "nosniff"}

    def page(_: Request) -> HTMLResponse:
        return HTMLResponse(html, headers=fields)

    routes: list[BaseRoute] = [_ForBrowsers("/", page), Mount(f"{FOLDER}/page", StaticFiles(directory=_FILES))]
    return routes if npm is None else [*routes, Mount(f"{FOLDER}/npm", StaticFiles(directory=npm))]


class _ForBrowsers(Route):
    """A route for those who ask for HTML; others get a listing under the same path."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] == "http" and "text/html" in Request(scope).headers.get("accept", ""):
            return super().matches(scope)
        return Match.NONE, {}


def _imports(npm: Path | None) -> dict[str, dict[str, str]]:
    """The import map: where the browser finds the modules of zarrita."""
    return {
        "imports": {
            name: f"{FOLDER}/npm/{package}/{file}" if npm else f"{_NETWORK}/npm/{package}@{version}/{file}"
            for name, (package, version, file) in _PACKAGES.items()
        }
    }


def _policy(npm: Path | None) -> str:
    """What the page may load: scripts of ours and of zarrita, and data of this server.

    The import map is an inline script; zarrita's codecs are WebAssembly, started by functions made of text.
    """
    scripts = "'self' 'unsafe-inline' 'unsafe-eval'" + ("" if npm else f" {_NETWORK}")
    return f"default-src 'none'; script-src {scripts}; style-src 'self'; connect-src 'self' data:; img-src 'self' data:"
