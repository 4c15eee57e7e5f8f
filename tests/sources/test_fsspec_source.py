import logging
import zipfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import fsspec
import pytest
from fsspec.spec import AbstractFileSystem

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import SourceError, SourceMissingError, SourceNotFoundError, UnsupportedError
from virtualzarr_refs.sources import open_source

DATA = bytes(range(256)) * 40


class ScriptedFileSystem(AbstractFileSystem):
    """Answers with what the test says, and raises it if it is an exception."""

    protocol = "scripted"
    cachable = False
    answer: object = None

    def _answer(self):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def info(self, *_, **__):
        return self._answer()

    def cat_file(self, *_, **__):
        return self._answer()


@pytest.fixture
def script(monkeypatch):
    fsspec.register_implementation("scripted", ScriptedFileSystem, clobber=True)
    return lambda answer: monkeypatch.setattr(ScriptedFileSystem, "answer", answer)


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "archive.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/file.bin", DATA)
    return path


def test_member_of_a_zip_archive(archive):
    source = open_source(f"zip://folder/file.bin::file://{archive}")
    assert source.identity().size == len(DATA)
    assert bytes(source.read([ByteRange(1000, 50)])[0]) == DATA[1000:1050]


def test_missing_member_and_missing_archive(archive):
    for url in (f"zip://nowhere.bin::file://{archive}", f"zip://a::file://{archive}.nowhere"):
        source = open_source(url)
        for act in (source.identity, lambda source=source: source.read([ByteRange(0, 1)])):
            with pytest.raises(SourceMissingError):
                act()


def test_broken_archive(tmp_path):
    (tmp_path / "broken.zip").write_bytes(DATA)
    with pytest.raises(SourceError, match="BadZipFile"):
        open_source(f"zip://a::file://{tmp_path}/broken.zip").identity()


def test_many_threads_and_a_cache_on_disk(server, tmp_path):
    data = DATA * 100
    server.files["/a"] = data
    source = open_source(f"simplecache::{server.url}/a", {"simplecache": {"cache_storage": str(tmp_path)}})
    with ThreadPoolExecutor(8) as threads:
        views = threads.map(lambda i: source.read([ByteRange(len(data) - i, i)])[0], range(1, 100))
        assert all(bytes(view) == data[-i:] for i, view in enumerate(views, 1))


def test_options_of_a_chain_are_left_as_they_are(server, tmp_path):
    server.files["/a"] = DATA
    options = {"simplecache": {"cache_storage": str(tmp_path)}, "http": {"headers": {"x": "y"}}}
    source = open_source(f"simplecache::{server.url}/a", options)
    source.read([ByteRange(0, 1)])
    assert options == {"simplecache": {"cache_storage": str(tmp_path)}, "http": {"headers": {"x": "y"}}}


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (FileNotFoundError("a"), SourceNotFoundError, "no such file"),
        (PermissionError("a"), SourceError, "access was denied"),
        (TimeoutError(), SourceError, r"reading failed \(TimeoutError\)"),
        (OSError("disk on fire"), SourceError, "OSError: disk on fire"),
        (EOFError("a"), SourceError, "EOFError: a"),
        (zipfile.BadZipFile("https://host/a?sig=SECRET is bad"), SourceError, r"host/a\?… is bad"),
    ],
)
def test_foreign_errors_become_ours(script, error, kind, message):
    script(error)
    source = open_source("scripted://a")
    for act in (source.identity, lambda: source.read([ByteRange(0, 1)])):
        with pytest.raises(SourceError, match=message) as caught:
            act()
        assert type(caught.value) is kind
        assert caught.value.url == "scripted://a"


def test_mistakes_in_a_filesystem_stay_visible(script):
    script(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        open_source("scripted://a").identity()


def test_errors_of_botocore(script):
    from botocore.exceptions import ClientError, NoCredentialsError

    source = open_source("scripted://a")
    for status, kind in ((404, SourceNotFoundError), (403, SourceError), (503, SourceError)):
        script(ClientError({"ResponseMetadata": {"HTTPStatusCode": status}}, "GetObject"))
        with pytest.raises(SourceError) as caught:
            source.read([ByteRange(0, 1)])
        assert type(caught.value) is kind
    script(NoCredentialsError())
    with pytest.raises(SourceError, match="NoCredentialsError"):
        source.identity()


def test_errors_handed_back_as_results(script, monkeypatch):
    monkeypatch.setattr(ScriptedFileSystem, "cat_ranges", lambda *_, **__: [OSError("late")])
    script({"size": 10})
    with pytest.raises(SourceError, match="late"):
        open_source("scripted://a").read([ByteRange(0, 1)])


def test_an_answer_that_is_too_short_though_the_file_is_long_enough(script, monkeypatch):
    monkeypatch.setattr(ScriptedFileSystem, "cat_ranges", lambda *_, **__: [b"abc"])
    script({"size": 10})
    with pytest.raises(SourceError, match="sent 3 bytes where 4 were asked for") as caught:
        open_source("scripted://a").read([ByteRange(2, 4)])
    assert caught.value.offset == 2


NOON = datetime(2026, 10, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("info", "etag", "last_modified"),
    [
        ({}, None, None),
        ({"mtime": 1.5}, None, 1.5),
        ({"mtime": 15}, None, 15.0),
        ({"ETag": '"abc"', "LastModified": NOON}, "abc", NOON.timestamp()),
        ({"etag": 'W/"abc"', "last_modified": NOON.replace(tzinfo=None)}, "abc", NOON.timestamp()),
        ({"ETag": "abc", "Last-Modified": "Wed, 21 Oct 2026 12:00:00 GMT"}, "abc", NOON.timestamp()),
        ({"updated": "2026-10-21T12:00:00.000Z"}, None, NOON.timestamp()),
        ({"mtime": None, "modified": NOON}, None, NOON.timestamp()),
        ({"ETag": None, "mtime": "yesterday"}, None, None),
    ],
)
def test_identity_in_many_spellings(script, info, etag, last_modified):
    script({"size": 7, "type": "file", **info})
    identity = open_source("scripted://a").identity()
    assert (identity.size, identity.etag, identity.last_modified) == (7, etag, last_modified)


def test_a_file_of_unknown_size(script):
    script({"size": None, "type": "file"})
    with pytest.raises(SourceError, match="how large"):
        open_source("scripted://a").identity()


def test_unknown_scheme_and_package_that_is_missing(monkeypatch):
    with pytest.raises(UnsupportedError, match="Protocol not known: nonsense"):
        open_source("nonsense://a").identity()
    fsspec.register_implementation("absent", "no_such_package.Files", clobber=True, errtxt="Install no_such_package")
    with pytest.raises(UnsupportedError, match=r"Install no_such_package.*virtualzarr-refs\[remote\]") as caught:
        open_source("absent://ada:SECRET@host/a").identity()
    assert "SECRET" not in str(caught.value)


def test_fsspec_says_nothing(caplog, script):
    caplog.set_level(logging.INFO)
    script({"size": 7, "type": "file"})
    open_source("scripted://a").identity()
    assert not caplog.records
