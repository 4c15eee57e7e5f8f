"""Sources behind a server: how many requests, which errors, and no secrets in them."""

import hashlib
import logging
import pickle
import traceback

import pytest

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import SourceError, SourceMissingError, SourceTruncatedError
from virtualzarr_refs.sources import SourceIdentity, open_source

DATA = bytes(range(256)) * 40
BACKENDS = {"fsspec": {}, "obstore": {"retry_config": {"max_retries": 0}}}


@pytest.fixture(params=BACKENDS)
def open_url(request):
    return lambda url, **options: open_source(
        url, BACKENDS[request.param] | options, backend=request.param, max_gap=100, max_size=1000
    )


def spans(server):
    return sorted(wanted for method, _, wanted in server.requests if method == "GET")


def test_neighbours_are_fetched_together(served, server):
    source = served.holding(DATA, max_gap=100, max_size=1000)
    source.read([ByteRange(700, 10), ByteRange(0, 100), ByteRange(200, 300), ByteRange(2000, 3000)])
    assert spans(server) == ["bytes=0-499", "bytes=2000-4999", "bytes=700-709"]


def test_reading_needs_no_look_at_the_file(served, server):
    served.holding(DATA).read([ByteRange(0, 100)])
    assert [method for method, _, _ in server.requests] == ["GET"]


def test_identity_is_asked_for_once(served, server):
    source = served.holding(DATA)
    digest = hashlib.md5(DATA, usedforsecurity=False).hexdigest()
    first = source.identity()
    assert first == source.identity()
    assert first == SourceIdentity(len(DATA), digest, 1792567680.0)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [401, 403])
def test_no_permission(served, server, status):
    source = served.holding(status)
    for act in (source.identity, lambda: source.read([ByteRange(0, 1)])):
        with pytest.raises(SourceError, match="access was denied") as caught:
            act()
        assert type(caught.value) is SourceError


@pytest.mark.parametrize("status", [400, 500])
def test_failure_of_the_server(open_url, server, status):
    server.files["/a"] = status
    source = open_url(f"{server.url}/a")
    for act in (source.identity, lambda: source.read([ByteRange(0, 1)])):
        with pytest.raises(SourceError, match="reading failed") as caught:
            act()
        assert type(caught.value) is SourceError


def test_nobody_listens(open_url):
    source = open_url("http://127.0.0.1:9/a")
    for act in (source.identity, lambda: source.read([ByteRange(0, 1)])):
        with pytest.raises(SourceError, match="reading failed") as caught:
            act()
        assert type(caught.value) is SourceError


def test_a_small_file_of_a_server_without_byte_ranges_is_read_whole_and_once(open_url, server):
    server.files["/a"] = DATA
    server.ignores_ranges = True
    source = open_url(f"{server.url}/a")
    assert bytes(source.read([ByteRange(10, 20)])[0]) == DATA[10:30]
    asked = len(server.requests)
    assert bytes(source.read([ByteRange(30, 20)])[0]) == DATA[30:50]
    assert len(server.requests) == asked
    with pytest.raises(SourceTruncatedError):
        source.read([ByteRange(len(DATA), 1)])


def test_a_large_file_of_a_server_without_byte_ranges_is_refused(open_url, server, monkeypatch):
    monkeypatch.setattr("virtualzarr_refs.sources.remote.MAX_WHOLE", len(DATA) - 1)
    server.files["/a"] = DATA
    server.ignores_ranges = True
    source = open_url(f"{server.url}/a")
    for act in (lambda: source.read([ByteRange(10, 20)]), lambda: source.first(100)):
        with pytest.raises(SourceError, match=r"does not serve byte ranges.*simplecache::"):
            act()
    simple = open_source(f"simplecache::{server.url}/a")
    assert bytes(simple.read([ByteRange(10, 20)])[0]) == DATA[10:30]


@pytest.mark.parametrize("size", [0, 5, len(DATA)])
def test_identity_and_head_in_one_request(open_url, server, size):
    server.files["/a"] = DATA[:size]
    source = open_url(f"{server.url}/a")
    identity, head = source.first(100)
    assert (identity, bytes(head)) == (source.identity(), DATA[: min(size, 100)])
    assert identity == open_url(f"{server.url}/a").identity()
    assert size == 0 or [method for method, _, _ in server.requests] == ["GET", "HEAD"]


@pytest.mark.parametrize("path", ["/a%20b%2Bc+d%25.nc", "/d//e.nc", "/gr%C3%BC%C3%9Fe.nc", "/q.nc?x=1&y=b"])
def test_the_path_is_sent_as_it_is_written(open_url, server, path):
    server.files[path] = DATA
    source = open_url(server.url + path)
    assert source.identity().size == len(DATA)
    assert bytes(source.read([ByteRange(3, 4)])[0]) == DATA[3:7]


def failures_of(source):
    for act in (source.identity, lambda: source.read([ByteRange(0, 10**6)])):
        with pytest.raises(SourceError) as caught:
            act()
        yield caught.value


def everything_told_of(error):
    told = [*traceback.format_exception(error), str(pickle.loads(pickle.dumps(error))), repr(error), str(error.url)]
    return "\n".join(told)


@pytest.mark.parametrize("answer", [403, 404, 416, 500, b"", None])
def test_no_secret_is_told(open_url, server, answer, caplog):
    caplog.set_level(logging.WARNING)
    address = server.url if answer is not None else "http://127.0.0.1:9"
    server.files["/a?X-Amz-Signature=SECRET"] = answer
    url = f"{address.replace('://', '://ada:SECRET@')}/a?X-Amz-Signature=SECRET"
    source = open_url(url)
    assert source.url == url
    assert "SECRET" not in repr(source)
    server.files["/a?X-Amz-Signature=SECRET"] = 416 if answer == b"" else answer
    for error in failures_of(source):
        assert "SECRET" not in everything_told_of(error)
        assert error.url == f"{address.replace('://', '://ada:***@')}/a?…"
    assert "SECRET" not in caplog.text


@pytest.mark.parametrize("answer", [403, 404, 500])
def test_no_secret_of_a_redirection_is_told(open_url, server, answer):
    server.redirects["/a"] = f"{server.url}/b?X-Amz-Signature=SECRET"
    server.files["/b?X-Amz-Signature=SECRET"] = answer
    for error in failures_of(open_url(f"{server.url}/a")):
        assert isinstance(error, SourceMissingError) is (answer == 404)
        assert "SECRET" not in everything_told_of(error)


def test_options_are_not_shown(open_url):
    source = open_url("https://example.org/a.nc", client_options={"default_headers": {"Authorization": "SECRET"}})
    assert "SECRET" not in repr(source)


def test_password_of_the_url_is_used(open_url, server):
    server.files["/a"] = DATA
    url = f"{server.url.replace('://', '://ada:pw@')}/a"
    assert bytes(open_url(url).read([ByteRange(3, 4)])[0]) == DATA[3:7]
