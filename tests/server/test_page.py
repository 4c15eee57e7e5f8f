"""The page at the root, and what it reads beside the hierarchy."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import h5py
import matplotlib.image
import numpy as np
import pytest

import virtualzarr_refs as vzr
from tests.server.asgi import Client
from tests.server.running import running
from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import RegularGrid
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import InlineChunk, Manifest, VirtualChunk
from virtualzarr_refs.metadata import ArrayMetadata
from virtualzarr_refs.server import application

ROOT = Path(__file__).parents[2]
NPM = ROOT / ".tools/javascript/node_modules"
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
HTML = "text/html,application/xhtml+xml,*/*;q=0.8"


@pytest.fixture
def client(group):
    return Client(application(group))


def test_browsers_get_the_page_and_others_a_listing(client):
    page = client.get("/", accept=HTML)
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert client.get("/", accept="*/*").json()["entries"]
    assert client.get("/raw/c/0/0", accept=HTML).headers["content-type"] == "application/octet-stream"


def test_the_files_of_the_page_are_there(client):
    page = client.get("/", accept=HTML).body.decode()
    named = re.findall(r'"(/\.\.\./page/[^"]+)"', page)
    assert len(named) == 2
    for path in named:
        assert client.get(path).status == 200
    script = client.get("/.../page/main.js").body.decode()
    for name in re.findall(r'from "\./([a-z]+\.js)"', script):
        assert "javascript" in client.get(f"/.../page/{name}").headers["content-type"]


@pytest.mark.parametrize(
    "path",
    [
        "/.../page/nothing.js",
        "/.../page/../page.py",
        "/.../page/%2e%2e/page.py",
        "/.../page/..%2fpage.py",
        "/.../page//etc/passwd",
        "/.../npm/zarrita/package.json",
        "/.../nothing",
        "/.../",
        "/...",
    ],
)
def test_nothing_else_is_there(client, path):
    assert client.get(path).status == 404
    assert client.get(path, accept=HTML).status == 404


def imports(client):
    return json.loads(re.search(r"importmap\">(.*?)</script>", client.get("/", accept=HTML).body.decode())[1])[
        "imports"
    ]


def test_zarrita_comes_from_a_network_at_a_fixed_version(client):
    assert imports(client)["zarrita"] == "https://cdn.jsdelivr.net/npm/zarrita@0.7.5/dist/src/index.js"


def test_zarrita_comes_from_a_folder(group):
    if not NPM.exists():
        pytest.skip("zarrita is not installed; sh tools/javascript.sh installs it")
    client = Client(application(group, npm=NPM))
    for address in imports(client).values():
        assert client.get(address).status == 200
    assert "jsdelivr" not in client.get("/", accept=HTML).headers["content-security-policy"]
    versions = {**json.loads((ROOT / "tests/javascript/package-lock.json").read_text())["packages"]}
    for address in imports(Client(application(group))).values():
        package, version = re.search(r"/npm/(@?[^@]+)@([0-9.]+)/", address).groups()
        assert versions[f"node_modules/{package}"]["version"] == version


def test_the_page_needs_no_token_but_all_data_does(group):
    client = Client(application(group, token="sesame"))  # noqa: S106
    assert client.get("/", accept=HTML).status == 200
    assert client.get("/.../page/main.js").status == 200
    for path in ("/", "/zarr.json", "/.../chunks/raw", "/.../core/zarr.json", "/.../core/raw/c/0/0"):
        assert client.get(path).status == 401
        assert client.get(path, authorization="Bearer sesame").status == 200


def test_every_array_is_there_with_core_codecs_too(group):
    stored, core = Client(application(group)), Client(application(group, codecs="core"))
    for path in ("zarr.json", "shuffled/zarr.json", "shuffled/c/1/1", "shuffled/c/", ""):
        assert stored.get(f"/.../core/{path}").json_or_body() == core.get(f"/{path}").json_or_body()


def test_chunk_map(tmp_path):
    url = f"https://ada:password@example.org/{tmp_path}/january.nc?signature=abc"
    chunks = {
        (0, 1): VirtualChunk(url, ByteRange(5, 7)),
        (1, 0): InlineChunk(b"abc"),
        (1, 1): VirtualChunk(str(tmp_path / "february.nc"), ByteRange(1, 2)),
    }
    metadata = ArrayMetadata("uint8", RegularGrid((4, 4), (2, 2)), 0, ({"name": "bytes"},))
    array = VirtualArray(metadata, Manifest.from_chunks((2, 2), chunks))
    client = Client(application(VirtualGroup(groups={"deep": VirtualGroup(arrays={"a": array})})))
    assert client.get("/.../chunks/deep/a").json() == {
        "grid_shape": [2, 2],
        "total": 4,
        "sources": ["january.nc", "february.nc"],
        "chunks": [None, [0, 5, 7], [None, 0, 3], [1, 1, 2]],
    }
    assert client.get("/.../chunks/deep").status == 404


def test_a_large_chunk_map_is_cut():
    metadata = ArrayMetadata("uint8", RegularGrid((10**9,), (1,)), 0, ({"name": "bytes"},))
    group = VirtualGroup(arrays={"a": VirtualArray(metadata, Manifest.missing((10**9,)))})
    found = Client(application(group)).get("/.../chunks/a").json()
    assert found["total"] == 10**9
    assert set(found["chunks"]) == {None}
    assert len(found["chunks"]) < 10**5


def test_in_a_browser(tmp_path):
    if BROWSER is None or not NPM.exists():
        pytest.skip("this needs Chromium, and zarrita, which sh tools/javascript.sh installs")
    file = tmp_path / "file.h5"
    with h5py.File(file, "w") as made:
        rows = np.arange(40, dtype="f4")[:, None] * np.ones(60, "f4")
        made.create_dataset("t", data=rows, chunks=(10, 20), compression="lzf")  # which zarrita does not know
    picture = tmp_path / "picture.png"
    options = "--headless=new --no-sandbox --disable-gpu --hide-scrollbars --window-size=1100,900".split()
    with running(application(vzr.scan(file), npm=NPM)) as address:
        command = [
            *(BROWSER, *options, "--virtual-time-budget=10000", f"--user-data-dir={tmp_path / 'profile'}"),
            *(f"--screenshot={picture}", f"{address}/#/t"),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)  # noqa: S603
    pixels = (matplotlib.image.imread(picture)[..., :3] * 255).round().astype(int)
    # The first and the last row of the values in the first and last colour of the ramp, each as wide as the picture.
    for colour in ((13, 27, 76), (250, 232, 120)):
        assert (np.abs(pixels - colour).max(axis=-1) <= 2).sum() > 700 * 10
    # Twelve chunks of one file, in shades of blue.
    assert (np.abs(pixels - (31, 97, 159)).max(axis=-1) < 25).sum() > 12 * 20 * 20
