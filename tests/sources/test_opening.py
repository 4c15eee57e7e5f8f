import subprocess
import sys

import pytest

from virtualzarr_refs.errors import SourceError
from virtualzarr_refs.sources import open_source
from virtualzarr_refs.sources.fsspec_http import FsspecHTTPSource
from virtualzarr_refs.sources.fsspec_source import FsspecSource
from virtualzarr_refs.sources.local import LocalSource
from virtualzarr_refs.sources.obstore_source import ObstoreSource


@pytest.mark.parametrize(
    ("url", "backend", "kind"),
    [
        ("/data/a.nc", "auto", LocalSource),
        ("file:///data/a.nc", "auto", LocalSource),
        ("local:///data/a.nc", "auto", LocalSource),
        ("https://host/a.nc", "auto", ObstoreSource),
        ("simplecache::https://host/a.nc", "auto", FsspecSource),
        ("s3://bucket/a.nc", "auto", FsspecSource),
        ("simplecache::/data/a.nc", "auto", FsspecSource),
        ("/data/a.nc", "fsspec", FsspecSource),
        ("https://host/a.nc", "fsspec", FsspecHTTPSource),
        ("/data/a.nc", "obstore", ObstoreSource),
        ("https://host/a.nc", "obstore", ObstoreSource),
    ],
)
def test_picks_the_backend(url, backend, kind):
    assert type(open_source(url, backend=backend)) is kind


@pytest.mark.parametrize(
    ("options", "kind"),
    [({"client_options": {}}, ObstoreSource), ({"headers": {}}, FsspecHTTPSource), ({}, ObstoreSource)],
)
def test_options_decide_who_reads_http(options, kind):
    assert type(open_source("https://host/a.nc", options)) is kind


def test_http_without_obstore(monkeypatch):
    monkeypatch.setattr("virtualzarr_refs.sources.opening.find_spec", lambda _: None)
    assert type(open_source("https://host/a.nc")) is FsspecHTTPSource


def test_unknown_backend():
    with pytest.raises(ValueError, match="no backend 'gopher'"):
        open_source("/data/a.nc", backend="gopher")


@pytest.mark.parametrize("backend", ["local", "fsspec", "obstore"])
def test_a_folder_is_no_file(tmp_path, backend):
    with pytest.raises(SourceError):
        open_source(f"file://{tmp_path}", backend=backend).identity()


def test_local_files_need_neither_fsspec_nor_obstore(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"abc")
    script = (
        "import sys; from virtualzarr_refs.sources import SourcePool; "
        "from virtualzarr_refs.byte_range import ByteRange; "
        f"print(bytes(SourcePool({str(tmp_path)!r}).read('a.bin', [ByteRange(0, 3)])[0])); "
        "print({'fsspec', 'obstore', 'aiohttp', 'zarr'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.splitlines() == ["b'abc'", "set()"]
