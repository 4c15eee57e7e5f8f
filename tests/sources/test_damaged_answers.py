"""Servers that answer wrongly: our error that names the url, and never wrong bytes."""

import socket
from datetime import timedelta

import aiohttp
import pytest

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import SourceChangedError, SourceError
from virtualzarr_refs.sources import open_source

DATA = bytes(range(256)) * 40
WANTED = [ByteRange(700, 100), ByteRange(5, 10), ByteRange(5000, 600)]
BACKENDS = {"fsspec": {}, "obstore": {"retry_config": {"max_retries": 0}}}


def moved(answer):
    return answer._replace(headers=answer.headers | {"Content-Range": f"bytes 1-100/{len(DATA)}"})


def without_range(answer):
    return answer._replace(headers={k: v for k, v in answer.headers.items() if k != "Content-Range"})


def cut(answer):
    return answer._replace(
        body=answer.body[:-1], headers=answer.headers | {"Content-Length": str(len(answer.body) - 1)}
    )


def broken_off(answer):
    return answer._replace(body=answer.body[: len(answer.body) // 2])


def too_long(answer):
    length = str(len(answer.body) + 1)
    return answer._replace(body=answer.body + b"x", headers=answer.headers | {"Content-Length": length})


def failing(answer):
    return answer._replace(status=500)


@pytest.fixture(params=BACKENDS)
def source(request, server):
    server.files["/a"] = DATA
    return open_source(f"{server.url}/a", BACKENDS[request.param], backend=request.param, max_gap=0)


@pytest.mark.parametrize("spoil", [moved, without_range, cut, broken_off, too_long, failing])
@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_wrong_answer_is_no_answer(source, server, spoil, before):
    good = [before]

    def sometimes(answer):
        good[0] -= 1
        return answer if good[0] >= 0 or answer.status != 206 else spoil(answer)

    server.spoil = sometimes
    # What comes back must be right, or an error.
    for act in (lambda: source.first(50), lambda: source.read(WANTED)):
        try:
            result = act()
        except SourceError as error:
            assert error.url == source.url  # noqa: PT017
        else:
            assert bytes(result[1]) == (DATA[:50] if len(result) == 2 else DATA[5:15])
    if spoil is not too_long:  # of which the first bytes may be taken
        with pytest.raises(SourceError):
            source.read(WANTED)


def test_another_version_is_no_answer(server):
    server.files["/a"] = DATA
    source = open_source(f"{server.url}/a", backend="fsspec")
    source.first(50)
    server.files["/a"] = DATA[::-1]
    with pytest.raises(SourceChangedError, match="scan it again"):
        source.read(WANTED)


def test_a_server_that_recovers(server):
    server.files["/a"] = DATA
    left = [2]

    def at_first(answer):
        left[0] -= 1
        return failing(answer) if left[0] >= 0 else answer

    server.spoil = at_first
    source = open_source(
        f"{server.url}/a", {"retry_config": {"backoff": {"init_backoff": timedelta(milliseconds=1)}}}, backend="obstore"
    )
    assert [bytes(view) for view in source.read(WANTED)] == [DATA[r.offset : r.stop] for r in WANTED]


@pytest.mark.parametrize(
    ("backend", "options"),
    [
        ("fsspec", {"client_kwargs": {"timeout": aiohttp.ClientTimeout(total=0.1)}}),
        ("obstore", {"client_options": {"timeout": timedelta(seconds=0.1)}, "retry_config": {"max_retries": 0}}),
    ],
)
def test_a_server_that_never_answers(backend, options):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        source = open_source(f"http://127.0.0.1:{listening.getsockname()[1]}/a", options, backend=backend)
        for act in (source.identity, lambda: source.first(10), lambda: source.read(WANTED)):
            with pytest.raises(SourceError, match="reading failed") as caught:
                act()
            assert caught.value.url == source.url
