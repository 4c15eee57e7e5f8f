"""The codec decodes what omfiles writes as omfiles does, and refuses whatever is damaged."""

from __future__ import annotations

import pickle

import numpy as np
import omfiles
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import virtualzarr_refs as vzr
from tests.open_meteo_files import (
    CASES,
    INTEGERS,
    KINDS,
    differences,
    old_file,
    pack_block,
    truth,
    values,
    varint,
    write,
)
from virtualzarr_refs.codecs import open_meteo_compiled, open_meteo_numpy, open_meteo_values
from virtualzarr_refs.codecs.open_meteo import OpenMeteoCodec
from virtualzarr_refs.codecs.open_meteo_values import COMPRESSIONS, INT16, LOGARITHMIC, OWN, XOR, Packing, decode_chunk

SHAPES = (
    ((1,), (1,)),
    ((130,), (130,)),
    ((1000,), (7,)),
    ((300,), (129,)),
    ((33, 70), (10, 11)),
    ((257, 3), (257, 3)),
    ((64, 300), (40, 300)),
    ((7, 9, 50), (2, 4, 13)),
    ((3, 4, 5, 6), (2, 3, 2, 4)),
)
SCALES = ((1.0, 0.0), (20.0, 5.0), (0.3, -1.7))


@pytest.fixture(params=[open_meteo_numpy, open_meteo_compiled], ids=["numpy", "numba"])
def steps(request, monkeypatch):
    """Decode in NumPy, then compiled; both must give the same."""
    monkeypatch.setattr(open_meteo_values, "steps", lambda: request.param)
    return request.param


pytestmark = pytest.mark.usefixtures("steps")


def same(ours: np.ndarray, theirs: np.ndarray, compression: str) -> bool:
    if compression.endswith("logarithmic"):
        return bool(np.allclose(ours, theirs, rtol=2e-7, atol=2e-7, equal_nan=True))
    return ours.dtype == theirs.dtype and ours.tobytes() == theirs.tobytes()


def chunks_of(group: vzr.VirtualGroup) -> list[tuple[bytes, tuple[int, ...]]]:
    """Every chunk of the array ``data``, with its shape."""
    array, store = group["data"], group.to_store()
    lengths = [array.metadata.chunk_grid.chunk_lengths(axis) for axis in range(len(array.shape))]
    return [
        (
            store.get_sync("data/" + array.metadata.chunk_key_encoding.encode(index)).to_bytes(),
            tuple(sizes[i] for i, sizes in zip(index, lengths, strict=True)),
        )
        for index in array.manifest.indexes()
    ]


# ── Against omfiles ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dtype", "compression"), CASES)
def test_equals_omfiles(dtype, compression, kind, tmp_path):
    for number, (shape, chunks) in enumerate(SHAPES):
        array = values(kind, shape, dtype, number)
        if compression.endswith("logarithmic"):
            array = np.abs(array)
        scale, offset = SCALES[number % 3]
        path = tmp_path / f"{number}.om"
        write(path, array, chunks, compression=compression, scale_factor=scale, add_offset=offset)
        read = zarr.open_group(vzr.scan(path).to_store(), mode="r")["data"][...]
        assert same(read, truth(omfiles.OmFileReader.from_path(str(path))), compression), (shape, chunks)


@settings(max_examples=60)
@given(st.data())
def test_equals_omfiles_for_any_values(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("om") / "a.om"
    dtype = data.draw(st.sampled_from(INTEGERS))
    limits = np.iinfo(dtype)
    numbers = st.one_of(st.integers(limits.min, limits.max), st.integers(0, min(300, limits.max)))
    shape = data.draw(st.tuples(st.integers(1, 40), st.integers(1, 40)))
    pattern = data.draw(st.lists(numbers, min_size=1, max_size=300))
    array = np.resize(np.array(pattern, dtype), shape)
    chunks = [data.draw(st.integers(1, n)) for n in shape]
    write(path, array, chunks)
    assert (zarr.open_group(vzr.scan(path).to_store(), mode="r")["data"][...] == array).all()


def test_what_is_not_finite_and_what_does_not_fit(tmp_path):
    array = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, -0.0, 1e-45, 0.05], "f4")
    for compression in ("pfor_delta_2d", "pfor_delta_2d_int16", "fpx_xor_2d"):
        path = write(tmp_path / f"{compression}.om", array, [8], compression=compression, scale_factor=10.0)
        read = zarr.open_group(vzr.scan(path).to_store(), mode="r")["data"][...]
        assert read.tobytes() == truth(omfiles.OmFileReader.from_path(str(path))).tobytes()


# ── Against our own packing ──────────────────────────────────────────────────────────────────────────────────────────


def packed(numbers: list[int], word: int, kind: str, width: int, *, is_signed: bool) -> bytes:
    steps = differences(numbers, word, is_signed=is_signed)
    blocks = (pack_block(steps[i : i + 128], word, kind, width) for i in range(0, len(steps), 128))
    return varint(numbers[0], word) + b"".join(blocks)


@pytest.mark.parametrize("count", [2, 7, 128, 129, 130, 400])
@pytest.mark.parametrize("kind", ["plain", "bitmap", "listed", "raw"])
@pytest.mark.parametrize("word", [8, 16, 32, 64])
def test_every_kind_of_block_and_width(word, kind, count):
    rng = np.random.default_rng(count)
    for width in range(word + 1 if kind == "plain" else word):
        steps = rng.integers(0, (1 << width) - 1, count - 1, dtype=np.uint64, endpoint=True).tolist()
        if kind != "plain":
            for place in {0, (count - 2) // 2, count - 2}:
                steps[place] |= rng.integers(1, (1 << word - width) - 1, dtype=np.uint64, endpoint=True).item() << width
        numbers = [3]
        for step in steps:
            numbers.append((numbers[-1] + step) & (1 << word) - 1)
        data = packed(numbers, word, kind, width, is_signed=False)
        dtype = np.dtype(f"u{word // 8}")
        decoded = decode_chunk(data, (1, count), dtype, Packing(OWN))
        assert decoded.tolist() == [numbers], width


@pytest.mark.parametrize("word", [8, 16, 32, 64])
def test_constant_blocks_of_every_width(word):
    for width in range(word + 1):
        step = (1 << width) - 1
        numbers = [(5 + i * step) & (1 << word) - 1 for i in range(200)]
        data = packed(numbers, word, "constant", width, is_signed=False)
        assert decode_chunk(data, (1, 200), np.dtype(f"u{word // 8}"), Packing(OWN)).tolist() == [numbers]


@pytest.mark.parametrize("word", [8, 16, 32, 64])
def test_first_numbers_of_every_length(word):
    for bits in range(word + 1):
        for number in {(1 << bits) - 1, 1 << max(bits - 1, 0)}:
            assert decode_chunk(varint(number, word), (1,), np.dtype(f"u{word // 8}"), Packing(OWN)).tolist() == [
                number
            ]


@pytest.mark.parametrize("compression", [0, 2, 3])
def test_our_packing_is_what_omfiles_reads(tmp_path, compression):
    """Guards the tests above: the packing that they decode is the format's, not one of our own."""
    word = {0: 16, 2: 32, 3: 16}[compression]
    rng = np.random.default_rng(3)
    for kind, width in (("plain", 9), ("bitmap", 2), ("listed", 2), ("raw", 2)):
        numbers = [int(n) for n in rng.integers(0, 100, 300)]
        data = packed(numbers, word, kind, width, is_signed=True)
        path = tmp_path / f"{kind}.om"
        path.write_bytes(old_file(2, compression, 10.0, (1, 300), (1, 300), [data]))
        theirs = truth(omfiles.OmFileReader.from_path(str(path)))
        ours = decode_chunk(data, (1, 300), np.dtype("f4"), Packing(COMPRESSIONS[compression], 10.0))
        assert same(ours, theirs, COMPRESSIONS[compression])
        assert compression == 3 or np.allclose(ours[0] * 10, numbers)


# ── Damage ───────────────────────────────────────────────────────────────────────────────────────────────────────────

DAMAGEABLE = [
    ("f4", INT16, "pfor_delta_2d_int16"),
    ("f4", XOR, "fpx_xor_2d"),
    ("f4", OWN, "pfor_delta_2d"),
    ("f4", LOGARITHMIC, "pfor_delta_2d_int16_logarithmic"),
    *((dtype, OWN, "pfor_delta_2d") for dtype in (*INTEGERS, "f8")),
]


@pytest.fixture(scope="module")
def real_chunks(tmp_path_factory):
    """Chunks as omfiles writes them, of every type and compression."""
    folder, found = tmp_path_factory.mktemp("om"), []
    for number, (dtype, ours, theirs) in enumerate(DAMAGEABLE):
        for kind in KINDS:
            array = np.abs(values(kind, (9, 70), dtype)) if ours == LOGARITHMIC else values(kind, (9, 70), dtype)
            path = write(folder / f"{number}.om", array, [9, 60], compression=theirs, scale_factor=20.0)
            found += [(data, shape, np.dtype(dtype), Packing(ours, 20.0)) for data, shape in chunks_of(vzr.scan(path))]
    return found


def decode_or_refuse(data: bytes, shape: tuple[int, ...], dtype: np.dtype, packing: Packing) -> bool:
    """Whether the bytes were decoded, to the right shape; any other error than ours fails the test."""
    try:
        decoded = decode_chunk(data, shape, dtype, packing)
    except vzr.DecodeError:
        return False
    assert decoded.shape == shape
    assert decoded.dtype == dtype
    return True


def test_cut_or_lengthened_chunks_are_refused(real_chunks):
    for data, shape, dtype, packing in real_chunks:
        assert decode_or_refuse(data, shape, dtype, packing)
        for length in {*range(min(40, len(data))), *range(0, len(data), 37), len(data) - 1}:
            assert not decode_or_refuse(data[:length], shape, dtype, packing)
        for more in (b"\0", b"\xff" * 9):
            assert not decode_or_refuse(data + more, shape, dtype, packing)
        assert not decode_or_refuse(data, (*shape[:-1], shape[-1] + 128), dtype, packing)


def test_flipped_bytes_are_decoded_or_refused(real_chunks):
    rng = np.random.default_rng(0)
    refused = 0
    for data, shape, dtype, packing in real_chunks:
        for _ in range(60):
            damaged = bytearray(data)
            for place in rng.integers(0, len(data), rng.integers(1, 4)):
                damaged[place] = rng.integers(256)
            refused += not decode_or_refuse(bytes(damaged), shape, dtype, packing)
    assert refused > 100


def test_an_exception_behind_the_end_of_its_block_is_refused():
    data = bytes.fromhex("07 40 01 ff f9ac 58")
    assert decode_chunk(data, (9, 10), np.dtype("u2"), Packing(OWN)).shape == (9, 10)
    for index in (0x59, 0x72, 0x80, 0xFF):
        with pytest.raises(vzr.DecodeError):
            decode_chunk(data[:-1] + bytes([index]), (9, 10), np.dtype("u2"), Packing(OWN))


@settings(max_examples=500)
@given(
    st.binary(max_size=400),
    st.sampled_from([(1, 1), (1, 128), (2, 65), (1, 300), (300, 1), (5, 130)]),
    st.sampled_from(DAMAGEABLE),
)
def test_garbage_is_decoded_or_refused(data, shape, case):
    decode_or_refuse(data, shape, np.dtype(case[0]), Packing(case[1], 20.0))


def test_a_chunk_that_claims_more_than_memory_holds_is_refused_at_once():
    with pytest.raises(vzr.DecodeError, match="end before"):
        decode_chunk(bytes(1000), (1 << 40, 1 << 20), np.dtype("i2"), Packing(OWN))


# ── The codec ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_round_trip_of_the_configuration():
    member = {
        "name": "virtualzarr_refs.open_meteo",
        "configuration": {"compression": "pfor_delta2d_int16", "scale_factor": 20.0, "add_offset": 0.5},
    }
    codec = OpenMeteoCodec.from_dict(member)
    assert codec.to_dict() == member
    assert pickle.loads(pickle.dumps(codec)) == codec


@pytest.mark.parametrize(
    "configuration",
    [
        None,
        [],
        {},
        {"compression": "none"},
        {"compression": INT16, "scale_factor": 0},
        {"compression": INT16, "scale_factor": "much"},
        {"compression": INT16, "scale_factor": float("nan")},
        {"compression": INT16, "add_offset": float("inf")},
    ],
)
def test_a_malformed_configuration_is_refused(configuration):
    with pytest.raises(vzr.ReferenceSetError):
        OpenMeteoCodec.from_dict({"name": "virtualzarr_refs.open_meteo", "configuration": configuration})


@pytest.mark.parametrize(("compression", "dtype"), [(XOR, "f8"), (INT16, "f8"), (INT16, "i2"), (LOGARITHMIC, "i4")])
def test_types_that_a_compression_does_not_know_are_refused(compression, dtype):
    with pytest.raises(vzr.UnsupportedError, match=f"compression {compression}"):
        decode_chunk(b"\0", (1,), np.dtype(dtype), Packing(compression))


def test_numbers_that_a_packing_does_not_use_are_no_difference():
    assert Packing(XOR, 20.0, 1.0).normal(np.dtype("f4")) == Packing(XOR)
    assert Packing(OWN, 20.0, 1.0).normal(np.dtype("i4")) == Packing(OWN)
    assert Packing(OWN, 20.0, 1.0).normal(np.dtype("f4")) == Packing(OWN, 20.0, 1.0)
    assert Packing(LOGARITHMIC, 20.0, 1.0).normal(np.dtype("f4")) == Packing(LOGARITHMIC, 20.0)


@pytest.mark.parametrize(("chunks", "columns"), [(1, 5), (3, 5), (3, 800)])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 100])
def test_accumulation_down_the_rows(count, chunks, columns):
    rows = np.random.default_rng(count).integers(0, 1 << 16, (chunks, count, columns)).astype("u2")
    expected = np.add.accumulate(rows, axis=1, dtype="u2")
    open_meteo_numpy.accumulate_rows(np.add, rows)
    assert (rows == expected).all()
