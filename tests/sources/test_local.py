import os
import socket
from pathlib import Path

import pytest

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import SourceChangedError, SourceError, SourceMissingError, UnsupportedError
from virtualzarr_refs.sources import open_source
from virtualzarr_refs.sources.local import LocalSource

DATA = bytes(range(256)) * 40
DESCRIPTORS = Path("/proc/self/fd")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(DATA)
    return path


def test_slices_share_the_memory_of_the_file(path):
    source = open_source(path)
    assert isinstance(source, LocalSource)
    first, second = source.read([ByteRange(0, 100), ByteRange(50, 100)])
    assert first.obj is second.obj
    assert first.readonly


def test_nothing_is_opened_before_the_first_use(tmp_path):
    source = open_source(tmp_path / "later.bin")
    (tmp_path / "later.bin").write_bytes(b"abc")
    assert bytes(source.read([ByteRange(0, 3)])[0]) == b"abc"


def test_a_relative_path_is_relative_to_where_the_source_was_made(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = open_source("file.bin")
    monkeypatch.chdir("/")
    assert source.identity().size == len(DATA)


def test_rewritten_with_the_same_size(path):
    source = open_source(path)
    source.read([ByteRange(0, 1)])
    path.write_bytes(bytes(len(DATA)))
    os.utime(path, ns=(0, 10**18))
    with pytest.raises(SourceChangedError):
        source.read([ByteRange(0, 1)])


def test_replaced_by_another_file_of_the_same_size_and_time(path, tmp_path):
    source = open_source(path)
    view = source.read([ByteRange(0, 4)])[0]
    status = path.stat()
    (tmp_path / "new.bin").write_bytes(bytes(len(DATA)))
    os.utime(tmp_path / "new.bin", ns=(status.st_atime_ns, status.st_mtime_ns))
    (tmp_path / "new.bin").rename(path)
    with pytest.raises(SourceChangedError):
        source.read([ByteRange(0, 4)])
    assert bytes(view) == DATA[:4]


def test_changed_between_closing_and_opening_again(path):
    source = open_source(path)
    size = source.identity().size
    source.close()
    path.write_bytes(DATA[:-1])
    with pytest.raises(SourceChangedError, match=f"had {size} bytes.*now has {size - 1} bytes"):
        source.read([ByteRange(0, 1)])


def test_grown(path):
    source = open_source(path)
    source.read([ByteRange(0, 1)])
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(SourceChangedError):
        source.read([ByteRange(0, 1)])


def test_no_permission(path, monkeypatch):
    def deny(*_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.open", deny)  # a superuser, which tests may run as, is never denied
    with pytest.raises(SourceError, match="access was denied") as caught:
        open_source(path).read([ByteRange(0, 1)])
    assert type(caught.value) is SourceError
    assert isinstance(caught.value.__cause__, PermissionError)


def test_loop_of_links(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(SourceError, match="reading failed"):
        open_source(tmp_path / "a").identity()


@pytest.mark.parametrize("name", ["file.bin/inside", "zero\0byte"])
def test_names_that_cannot_exist(path, tmp_path, name):
    with pytest.raises(SourceMissingError):
        open_source(f"{tmp_path}/{name}").identity()


@pytest.mark.parametrize("kind", ["folder", "pipe", "socket", "device"])
def test_only_regular_files_are_mapped(tmp_path, kind, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as bound:
        if kind == "folder":
            Path("it").mkdir()
        elif kind == "pipe":
            os.mkfifo("it")
        elif kind == "socket":
            bound.bind("it")
        with pytest.raises(SourceError, match="no regular file"):
            open_source("/dev/zero" if kind == "device" else "it").read([ByteRange(0, 1)])


def test_only_local_urls():
    with pytest.raises(UnsupportedError, match="local files") as caught:
        open_source("https://ada:secret@example.org/a.nc", backend="local")
    assert "secret" not in str(caught.value)


@pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="only Linux lists descriptors as files")
def test_holds_one_file_descriptor_and_lets_go_of_it(path):
    before = len(list(DESCRIPTORS.iterdir()))
    source = open_source(path)
    view = source.read([ByteRange(0, 1)])[0]
    assert len(list(DESCRIPTORS.iterdir())) == before + 1
    source.close()
    view.release()
    assert len(list(DESCRIPTORS.iterdir())) == before


def test_odd_names(tmp_path):
    for name in ("a b.nc", "grüße.nc", "100%.nc", "a%20b.nc", "a#b?c.nc", "a::b.nc"):
        (tmp_path / name).write_bytes(name.encode())
        for url in (tmp_path / name, (tmp_path / name).as_uri()):
            assert bytes(open_source(url).read([ByteRange(0, 4)])[0]) == name.encode()[:4]


def test_shows_itself(path):
    assert repr(open_source(path)) == f"LocalSource('{path}')"
