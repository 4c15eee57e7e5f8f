"""The application, asked as clients and attackers would."""

import gzip
import json
import os
from urllib.parse import quote

import pytest

import virtualzarr_refs as vzr
from tests.server.asgi import Client
from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import RegularGrid
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import Manifest, VirtualChunk
from virtualzarr_refs.metadata import ArrayMetadata
from virtualzarr_refs.reader import ReadOptions
from virtualzarr_refs.server import application
from virtualzarr_refs.server.answers import BLOCK


@pytest.fixture(params=["auto", "fsspec"])
def client(request, group):
    return Client(application(group, ReadOptions(backend=request.param)))


@pytest.fixture
def large(tmp_path):
    """A hierarchy with one chunk of several blocks, and its file."""
    path = tmp_path / "large.bin"
    path.write_bytes(os.urandom(3 * BLOCK + 5))
    manifest = Manifest.from_chunks((1,), {(0,): VirtualChunk(str(path), ByteRange(1, 3 * BLOCK + 1))})
    metadata = ArrayMetadata("uint8", RegularGrid((3 * BLOCK + 1,), (3 * BLOCK + 1,)), 0, ({"name": "bytes"},))
    return VirtualGroup(arrays={"a": VirtualArray(metadata, manifest)}), path


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_chunk_is_served(client, group):
    for key in group.keys():  # noqa: SIM118  no mapping
        answer = client.get("/" + quote(key))
        assert answer.status == 200
        assert answer.is_complete
        assert int(answer.headers["content-length"]) == len(answer.body)
        if not key.endswith("zarr.json"):
            assert answer.headers["content-type"] == "application/octet-stream"
            assert "content-encoding" not in answer.headers


def test_head_has_the_fields_of_get_and_no_body(client):
    for path in ("/raw/c/0/0", "/raw/zarr.json", "/zarr.json"):
        got, head = client.get(path), client.head(path)
        assert head.headers == got.headers
        assert (head.status, head.body) == (200, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/..",
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/raw/c/0/99",
        "/raw/c/0",
        "/raw",
        "/raw//zarr.json",
        "//zarr.json",
        "//",
        "/raw//",
        "/nowhere/",
        "/../",
        "/raw/c/0/0/",
        "/%00",
        "/%ff%fe",
        "/file:///etc/passwd",
        "/" + "c/" * 4000,
        "/raw/c/" + "9" * 5000 + "/0",
    ],
)
def test_what_is_not_in_the_hierarchy_is_not_found(client, path):
    answer = client.get(path)
    assert answer.status == 404
    assert set(answer.json()) == {"error", "key"}
    assert client.head(path).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_only_reading_is_answered(client, method):
    answer = client.request(method, "/raw/c/0/0")
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_what_is_too_long_is_refused(client):
    assert client.get("/" + "a" * 9000).status == 414
    assert client.get("/raw/zarr.json", x_long="a" * 40_000).status == 431


# ── ranges and conditions ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("field", "part"), [("bytes=3-9", slice(3, 10)), ("bytes=1000-", slice(1000, None)), ("bytes=-7", slice(-7, None))]
)
@pytest.mark.parametrize("path", ["/raw/c/1/1", "/zarr.json"])
def test_ranges(client, path, field, part):
    whole = client.get(path)
    answer = client.get(path, range=field, accept_encoding="gzip")
    assert answer.status == 206
    assert answer.body == whole.body[part]
    start, stop, _ = part.indices(len(whole.body))
    assert answer.headers["content-range"] == f"bytes {start}-{stop - 1}/{len(whole.body)}"
    assert answer.headers["etag"] == whole.headers["etag"]


def test_ranges_that_cannot_be_had(client):
    beyond = client.get("/raw/c/1/1", range="bytes=1024-")
    assert (beyond.status, beyond.headers["content-range"]) == (416, "bytes */1024")
    assert client.get("/raw/c/1/1", range="bytes=nonsense").status == 400


def test_a_range_is_of_no_concern_to_head(client):
    assert client.head("/raw/c/1/1", range="bytes=0-1").headers["content-length"] == "1024"


def test_if_range(client):
    etag = client.get("/raw/c/1/1").headers["etag"]
    assert client.get("/raw/c/1/1", range="bytes=0-1", if_range=etag).status == 206
    assert client.get("/raw/c/1/1", range="bytes=0-1", if_range='"other"').status == 200


@pytest.mark.parametrize("path", ["/raw/c/1/1", "/raw/zarr.json"])
def test_what_the_client_has_is_not_sent_again(client, path):
    etag = client.get(path).headers["etag"]
    for known in (etag, f'"x", {etag}', f"W/{etag}", "*"):
        answer = client.get(path, if_none_match=known)
        assert (answer.status, answer.body, answer.headers["etag"]) == (304, b"", etag)
    assert client.get(path, if_none_match='"x"').status == 200


def test_etags_differ_where_bytes_do(client, group):
    etags = [client.head("/" + quote(key)).headers["etag"] for key in group.keys()]  # noqa: SIM118
    assert len(set(etags)) == len(etags)


def test_an_etag_outlives_the_server_and_changes_with_the_file(archive, group):
    def etag():
        return Client(application(group)).head("/raw/c/0/0").headers["etag"]

    before = etag()
    assert etag() == before
    os.utime(archive, (1, 1))
    assert etag() != before


# ── metadata ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_metadata_is_compressed_for_those_who_take_it(client):
    plain, packed = client.get("/zarr.json"), client.get("/zarr.json", accept_encoding="br, GZIP;q=0.5")
    assert gzip.decompress(packed.body) == plain.body
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["etag"] != plain.headers["etag"]
    assert "Accept-Encoding" in packed.headers["vary"]
    assert "Accept-Encoding" in plain.headers["vary"]
    assert client.get("/zarr.json", accept_encoding="gzip", if_none_match=packed.headers["etag"]).status == 304


@pytest.mark.parametrize("accepted", ["br", "gzip;q=0", "gzip; q=0.000, *", "notgzip"])
def test_metadata_is_not_compressed_for_others(client, accepted):
    assert "content-encoding" not in client.get("/zarr.json", accept_encoding=accepted).headers


def test_chunks_are_never_compressed(client):
    assert "content-encoding" not in client.get("/raw/c/0/0", accept_encoding="gzip").headers


def test_a_group_has_the_documents_of_all_nodes_beneath(client):
    document = client.get("/zarr.json").json()
    beneath = document["consolidated_metadata"]["metadata"]
    assert set(beneath) == {"raw", "deflated", "shuffled", "big_endian", "deep", "deep/line\nbreak %2F ü"}
    assert beneath["raw"] == client.get("/raw/zarr.json").json()
    assert set(client.get("/deep/zarr.json").json()["consolidated_metadata"]["metadata"]) == {"line\nbreak %2F ü"}


def test_documents_are_json_for_every_reader(client):
    def refuse(token):
        raise AssertionError(token)

    document = json.loads(client.get("/raw/zarr.json").body, parse_constant=refuse)
    assert document["attributes"]["missing_value"] == "NaN"
    assert document["attributes"]["valid_range"] == ["-Infinity", "Infinity"]
    typed = vzr.metadata.parse_metadata(document).typed_attributes()
    assert typed["missing_value"].dtype == "f4"
    assert typed["valid_range"].tolist() == [float("-inf"), float("inf")]


# ── folders ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_listing(client):
    root = client.get("/").json()
    assert root["path"] == ""
    assert {"name": "raw", "type": "folder"} in root["entries"]
    document = next(entry for entry in root["entries"] if entry["name"] == "zarr.json")
    assert document["size"] == len(client.get("/zarr.json").body)
    chunks = client.get("/raw/c/1/").json()["entries"]
    assert chunks == [{"name": name, "type": "file", "size": 1024} for name in "01"]
    assert client.head("/raw/c/1/").body == b""


def test_a_listing_of_many(client, group):
    grid = RegularGrid((2000,), (1,))
    array = VirtualArray(
        ArrayMetadata("uint8", grid, 0, ({"name": "bytes"},)),
        Manifest.from_inline((2000,), dict.fromkeys(range(2000), b"x")),
    )
    listed = Client(application(VirtualGroup(arrays={"a": array}))).get("/a/c/").json()["entries"]
    assert [entry["name"] for entry in listed] == [str(number) for number in range(2000)]


# ── blocks ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_large_values_are_sent_in_blocks(large):
    group, path = large
    answer = Client(application(group)).get("/a/c/0")
    assert answer.body == path.read_bytes()[1 : 3 * BLOCK + 2]
    assert max(map(len, answer.blocks)) == BLOCK
    part = Client(application(group)).get("/a/c/0", range=f"bytes=5-{2 * BLOCK + 6}")
    assert part.body == path.read_bytes()[6 : 2 * BLOCK + 8]


def test_a_client_that_goes_away_ends_the_reading(large):
    answer = Client(application(large[0])).request("GET", "/a/c/0", blocks=2)
    assert len(answer.blocks) == 2
    assert not answer.is_complete


def test_a_source_that_changes_in_the_middle_breaks_the_answer_off(large, caplog):
    group, path = large
    client = Client(application(group), on_block=lambda: os.utime(path, (1, 1)))
    answer = client.get("/a/c/0")
    assert answer.status == 200
    assert len(answer.blocks) == 1
    assert not answer.is_complete
    assert "a/c/0" in caplog.text


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def failure(client, path="/raw/c/0/0"):
    answer = client.get(path)
    assert set(answer.json()) == {"error", "key"}
    assert answer.json()["key"] == "raw/c/0/0"
    assert "etag" not in answer.headers
    for secret in ("secret", "/tmp", "password", "signature"):  # noqa: S108
        assert secret not in answer.body.decode()
    return answer.status, answer.json()["error"]


def test_a_missing_source(client, archive, caplog):
    archive.unlink()
    status, words = failure(client)
    assert status == 502
    assert "is not there" in words
    assert str(archive) in caplog.text  # whoever runs the server is told


def test_a_source_that_is_cut_short(client, archive):
    os.truncate(archive, 2000)
    status, words = failure(client)
    assert status == 502
    assert "shorter" in words


def test_a_source_that_changed(group, archive):
    client = Client(application(group))
    assert client.get("/raw/c/0/0").status == 200
    os.utime(archive, (1, 1))
    status, words = failure(client)
    assert status == 409
    assert "scanned again" in words


def test_a_remote_source_that_cannot_be_reached_and_its_secrets(caplog):
    url = "http://ada:password@127.0.0.1:9/secret.h5?signature=abc"
    manifest = Manifest.from_chunks((1, 1), {(0, 0): VirtualChunk(url, ByteRange(0, 5))})
    metadata = ArrayMetadata("uint8", RegularGrid((5, 1), (5, 1)), 0, ({"name": "bytes"},))
    client = Client(application(VirtualGroup(arrays={"raw": VirtualArray(metadata, manifest)})))
    assert failure(client)[0] == 502
    assert "password" not in caplog.text
    assert "signature" not in caplog.text


def test_reasons_of_what_is_left_out_stay_behind(client, group):
    assert group.skipped[0].reason not in client.get("/zarr.json").body.decode()
    assert client.get("/zarr.json").json()["virtualzarr_refs"]["skipped"][0]["path"] == "null"
