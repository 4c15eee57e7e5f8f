"""The application behind a real server and a real socket."""

import asyncio
import os
import socket

import aiohttp
import httpx
import pytest

from tests.server.running import running
from tests.server.test_application import large  # noqa: F401  a fixture
from virtualzarr_refs.server import application, listen
from virtualzarr_refs.server.answers import BLOCK


@pytest.fixture
def address(group):
    with running(application(group)) as address:
        yield address


def test_keep_alive_and_ranges(address, group):
    with httpx.Client(base_url=address) as client:
        whole = client.get("/deflated/c/0/0")
        part = client.get("/deflated/c/0/0", headers={"Range": "bytes=-10"})
        assert whole.content == bytes(group.to_store().get_sync("deflated/c/0/0").to_bytes())
        assert part.content == whole.content[-10:]
        assert client.head("/deflated/c/0/0").headers["content-length"] == str(len(whole.content))
        assert client.get("/zarr.json").headers["content-encoding"] == "gzip"
        assert "server" not in whole.headers


def ask(address, request):
    """What a server answers to raw bytes, up to the end of the connection."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while block := connection.recv(1 << 16):
            answer += block
    return answer


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /raw/c/0/0 HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
        b"GET /raw/c/0/0 HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000,
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /raw/../../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET file:///etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /raw/c/0/0 HTTP/1.1\r\nHost: x\r\nRange: bytes=5-1\r\nConnection: close\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 10 + b"\r\n\r\n",
        b"NONSENSE\r\n\r\n",
    ],
)
def test_attacks_are_refused(address, request_):
    answer = ask(address, request_)
    assert answer.startswith(b"HTTP/1.1 4")
    assert b"Traceback" not in answer
    assert b"root:" not in answer


def test_two_hundred_clients(address, group):
    keys = [key for key in group.keys() if "/c/" in key]  # noqa: SIM118
    store = group.to_store()
    expected = {key: store.get_sync(key).to_bytes() for key in keys}

    async def client(session, number):
        got = [keys[(number * 7 + i) % len(keys)] for i in range(4)]
        for key in got:
            async with session.get(f"{address}/{key}".replace("\n", "%0A").replace("%2F", "%252F")) as answer:
                assert answer.status == 200
                assert await answer.read() == expected[key]

    async def all_clients():
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            await asyncio.gather(*(client(session, number) for number in range(200)))

    asyncio.run(all_clients())


def test_an_answer_that_breaks_off_is_seen_as_such(large):  # noqa: F811
    group, path = large
    with running(application(group)) as address, httpx.stream("GET", f"{address}/a/c/0") as answer:
        blocks = answer.iter_raw(1000)
        next(blocks)
        os.utime(path, (1, 1))
        with pytest.raises(httpx.RemoteProtocolError):
            sum(map(len, blocks))
        assert answer.headers["content-length"] == str(3 * BLOCK + 1)


def test_an_address_that_is_taken():
    with listen("127.0.0.1", 0) as listening, pytest.raises(OSError, match="in use"):
        listen("127.0.0.1", listening.getsockname()[1])


def test_small_answers_do_not_wait_for_acknowledgements():
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP  # without it asyncio leaves Nagle's algorithm on
