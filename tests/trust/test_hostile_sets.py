"""Reference sets made to harm whoever opens them: each is refused by name, soon, and without taking memory."""

import gzip
import json
import time
import tracemalloc

import numcodecs
import pytest

import virtualzarr_refs as vzr
from virtualzarr_refs.references.trust import Trust

GROUP = '{"zarr_format":3,"node_type":"group","attributes":{}}'
ARRAY = {
    "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int32", "fill_value": 0, "attributes": {},
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}, "chunk_key_encoding": {"name": "default"},
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "dimension_names": ["x"],
}  # fmt: skip
HUGE = 10**12


def regular(*lengths):
    return {"name": "regular", "configuration": {"chunk_shape": list(lengths)}}


def rectilinear(*shapes):
    return {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": list(shapes)}}


def refs(chunk=("s3://b/a", 0, 8), **members):
    """The references of a set with one array and one chunk."""
    made = {"zarr.json": GROUP, "a/zarr.json": json.dumps(ARRAY | members)}
    return made if chunk is None else made | {"a/c/0": list(chunk)}


def generated(dimension, **members):
    generator = {"key": "a/c/{{i}}", "url": "s3://b/a", "offset": "0", "length": "8", "dimensions": {"i": dimension}}
    return {"refs": refs(None), "gen": [generator | members]}


NESTED = "(" * 100_000 + "1" + ")" * 100_000
LAUGHS = {"a": "ha" * 8} | {chr(98 + i): "{{" + chr(97 + i) + "}}" * 9 for i in range(9)}
WRONG_NUMBERS = [-1, 1.5, True, None, "0", 2**63, 2**64, 10**30, float("nan"), float("inf"), [], {}]

HOSTILE = {
    "templates within templates": {"templates": LAUGHS, "refs": refs(("{{j}}", 0, 8))},
    "a program as a template": {"templates": {"a": "{% for i in range(9) %}x{% endfor %}"}, "refs": refs()},
    "an expression in a url": {"templates": {"a": "x"}, "refs": refs(("{{a.__class__}}", 0, 8))},
    "a url of ten gigabytes": {"templates": {"a": "x" * 100_000}, "refs": refs(("{{a}}" * 100_000, 0, 8))},
    "long urls, many times": {
        "templates": {"a": "x" * 60_000},
        "refs": refs(None, shape=[10_000]) | {f"a/c/{i}": [f"{{{{a}}}}{i}", 0, 8] for i in range(5000)},
    },
    "long urls, generated": {"templates": {"a": "x" * 60_000}, **generated({"stop": 900_000}, url="{{a}}{{i}}")},
    "too many generated": generated({"stop": HUGE}),
    "a range longer than memory": generated({"stop": 10**30}),
    "a power": generated({"stop": 1}, offset="{{9**9**9}}"),
    "a long product": generated({"stop": 1}, offset="{{" + "*".join(["9" * 20] * 2000) + "}}"),
    "a repeated text": generated(["ab"], url="{{i * 1000000000}}"),
    "a call": generated({"stop": 1}, url="{{__import__('os').getcwd()}}"),
    "nested brackets": generated({"stop": 1}, offset="{{" + NESTED + "}}"),
    "a grid of 10^12 chunks": {"refs": refs(shape=[HUGE], chunk_grid=regular(1))},
    "a grid of 2^31 chunks": {"refs": refs(shape=[2**31], chunk_grid=regular(1))},
    "a grid that overflows": {"refs": refs(None, shape=[2**40, 2**40], chunk_grid=regular(1, 1), dimension_names=None)},
    "a run of 2^27 chunks": {"refs": refs(None, shape=[2**27], chunk_grid=rectilinear([[1, 2**27]]))},
    "a run of 10^30 chunks": {"refs": refs(None, shape=[1], chunk_grid=rectilinear([[1, 10**30]]))},
    "a shape of 10^400": {"refs": refs(shape=[10**400])},
    "100,000 axes": {"refs": refs(shape=[0] * 100_000, chunk_grid=regular(*[1] * 100_000), dimension_names=None)},
    "elements of a terabyte": {
        "refs": refs(data_type={"name": "null_terminated_bytes", "configuration": {"length_bytes": 2**40}})
    },
    "a fill value of 10^400": {"refs": refs(fill_value=10**400)},
    "5,000 groups within groups": {"refs": {"zarr.json": GROUP, "/".join("a" * 5000) + "/zarr.json": GROUP}},
    "brackets within brackets": {"refs": refs() | {"b/zarr.json": "[" * 1_000_000}},
    "a node above the root": {"refs": refs() | {"../b/zarr.json": GROUP}},
    "a node at a path of Windows": {"refs": refs() | {"..\\b/zarr.json": GROUP}},
    "a chunk above the root": {"refs": refs() | {"a/c/../../x": ["s3://b/a", 0, 8]}},
    "a negative chunk": {"refs": refs() | {"a/c/-1": ["s3://b/a", 0, 8]}},
    "no numbers of chunks": {"refs": refs() | {"a/c/1_0": ["s3://b/a", 0, 8], "a/c/٣": ["s3://b/a", 0, 8]}},
    "references that overflow": {"refs": refs(("s3://b/a", 2**62, 2**62))},
    "a reference of many numbers": {"refs": refs(("s3://b/a", *range(100_000)))},
    "base64 that is none": {"refs": refs(None) | {"a/c/0": "base64:\0*"}},
} | {
    f"{place} {value!r:.20}": {"refs": refs(made)}
    for value in WRONG_NUMBERS
    for place, made in {
        "offset": ("s3://b/a", value, 8),
        "length": ("s3://b/a", 0, value),
        "url": ("s3://b/a" if value == "0" else value, 0, None if value == "0" else 8),
    }.items()
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_set_is_refused_soon_and_without_taking_memory(name):
    document = {"version": 1, **HOSTILE[name]}
    tracemalloc.start()
    begin = time.process_time()
    try:
        with pytest.raises(vzr.VirtualZarrError):
            vzr.open_refs(document)
        assert tracemalloc.get_traced_memory()[1] < 700e6
    finally:
        tracemalloc.stop()
    assert time.process_time() - begin < 20  # a bound for slow machines; each takes far less than a second, or ever


@pytest.mark.parametrize("value", [v for v in WRONG_NUMBERS if v not in (10**30, 2**63, 2**64)])
def test_lengths_that_are_none_are_refused(value):
    for members in ({"shape": [value]}, {"chunk_grid": regular(value)}, {"chunk_grid": rectilinear([value])}):
        with pytest.raises(vzr.VirtualZarrError):
            vzr.open_refs({"version": 1, "refs": refs(**members)})


def test_an_array_that_is_large_and_empty_takes_no_memory():
    document = {"version": 1, "refs": refs(None, shape=[HUGE], chunk_grid=regular(1))}
    vzr.open_refs({"version": 1, "refs": refs(None)}).to_xarray().load()  # imports
    tracemalloc.start()
    try:
        array = vzr.open_refs(document).to_xarray()["a"]
        assert array[HUGE - 3 :].to_numpy().tolist() == [0, 0, 0]
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


def zstd(data):
    return bytes(numcodecs.Zstd(1).encode(data))


@pytest.mark.parametrize("compress", [gzip.compress, zstd])
def test_a_compressed_set_is_read_and_a_bomb_is_not(tmp_path, compress):
    document = json.dumps({"version": 1, "refs": refs()}).encode()
    (tmp_path / "set.json.gz").write_bytes(compress(document))
    assert vzr.open_refs(tmp_path / "set.json.gz")["a"].shape == (4,)
    (tmp_path / "bomb.json.gz").write_bytes(compress(document + b" " * (1 << 28)))
    tracemalloc.start()
    try:
        with pytest.raises(vzr.ReferenceSetError, match="taken for an attack"):
            vzr.open_refs(tmp_path / "bomb.json.gz")
        assert tracemalloc.get_traced_memory()[1] < 300e6
    finally:
        tracemalloc.stop()
    (tmp_path / "cut.json.gz").write_bytes(compress(document)[:-9])
    with pytest.raises(vzr.ReferenceSetError):
        vzr.open_refs(tmp_path / "cut.json.gz")


REMOTE = Trust.in_set_at("https://archive.org/a/set.json", None)
INWARD = [
    "http://[::ffff:127.0.0.1]/x", "http://[::ffff:7f00:1]/x", "http://[64:ff9b::7f00:1]/x", "http://[2002:7f00:1::]/x",
    "http://[2002:c0a8:1::1]/x", "http://[::127.0.0.1]/x", "http://[fe80::1%25eth0]/x", "http://[fd00::1]/x",
    "http://127.0.0.1%00/x", "http://%31%32%37.0.0.1/x", "http://LOCALHOST%2e/x", "http://localhost./x",
    "http://①②⑦.⓪.⓪.①/x", "http://１２７.0.0.1/x", "http://127。0。0。1/x", "http://ⓛocalhost/x",  # noqa: RUF001  that is the trick
    "http://localhost.localdomain/x", "http://ip6-localhost/x", "http://metadata/x", "http://router.lan/x",
    "http://0/x", "http://0x7f.1/x", "http://017700000001/x", "http://127.000.000.001/x", "http://2130706433./x",
    "http://100.64.0.1/x", "http://224.0.0.1/x", "http://255.255.255.255/x", "hTTp://[::1]:80/x", "http:/127.0.0.1/x",
    "//127.0.0.1/x", "http://user:pass@10.0.0.1/x", "FILE://localhost/etc/passwd", "file:////server/share/x",
    "blockcache::memory://x", "cached::local:/etc/passwd", "zip://x::zip://y::file:///a", "webhdfs://127.0.0.1/x",
]  # fmt: skip


@pytest.mark.parametrize("url", INWARD)
def test_no_spelling_of_an_inward_address_is_followed_from_afar(url):
    with pytest.raises(vzr.ReferenceSetError, match="allow="):
        REMOTE.require(url)


@pytest.mark.parametrize(
    "url", ["https://xn--bcher-kva.example.org/x", "https://a-b.c_d.org:8443/x", "http://1.1.1.1/x"]
)
def test_common_hosts_are(url):
    REMOTE.require(url)
