"""Arrays that zarr-python writes as Zarr v2, opened as Zarr v3; and the way back."""

import base64
import json
import warnings

import fsspec
import numcodecs
import numpy as np
import pytest
import zarr
from zarr.storage import FsspecStore, LocalStore

from virtualzarr_refs.chunk_grid import ChunkKeyEncoding, RectilinearGrid, RegularGrid
from virtualzarr_refs.errors import NotRepresentableError, ReferenceSetError, UnsupportedError
from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.metadata import ArrayMetadata
from virtualzarr_refs.references import open_refs, write_json
from virtualzarr_refs.references.zarr_v2_reader import read_array
from virtualzarr_refs.references.zarr_v2_writer import write_array

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
SHAPE, CHUNKS = (5, 7), (2, 3)


def refs_of_folder(folder):
    """A reference set of what zarr wrote: documents as text, chunks as whole files."""
    refs = {}
    for path in folder.rglob("*"):
        key = str(path.relative_to(folder))
        if path.is_file():
            refs[key] = path.read_text() if path.name.startswith(".") else [str(path)]
    return {"version": 1, "refs": refs}


def numbers(dtype, shape=SHAPE):
    dtype = np.dtype(dtype)
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    if dtype.names:
        filled = np.zeros(shape, dtype)
        for i, name in enumerate(dtype.names):
            filled[name] = values + i
        return filled
    if dtype.kind == "b":
        return values % 3 == 0
    if dtype.kind in "SU":
        return values.astype(dtype)
    if dtype.kind == "V":
        return np.frombuffer(values.astype("<u4").tobytes(), dtype).reshape(shape)
    return values.astype(dtype)


def write_v2(folder, values, **options):
    options = {"chunks": CHUNKS, "compressors": None, "filters": None, "fill_value": 0, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = zarr.create_array(
            LocalStore(folder), name="x", shape=values.shape, dtype=values.dtype, zarr_format=2, **options
        )
        array[...] = values
    return zarr.open_array(LocalStore(folder), path="x", mode="r", zarr_format=2)[...]


def read_back(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of data types without a specification
        group = open_refs(refs_of_folder(folder))
        return group["x"], zarr.open_group(group.to_store(), mode="r")["x"][...]


TYPES = [
    *("|b1", "|i1", "|u1", "S3", "V4"),
    *(f"{order}{kind}" for order in "<>" for kind in "i2 i4 i8 u2 u4 u8 f2 f4 f8 c8 c16 U3 M8[ns] m8[25s]".split()),
    [("a", "<i4"), ("b", "<f8")],
    [("a", ">i4"), ("b", ">f8"), ("c", "S3")],
    [("a", "|i1"), ("b", "S2")],
]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_type_in_both_byte_orders_and_both_layouts(tmp_path, dtype, order):
    dtype = np.dtype(dtype)
    expected = write_v2(tmp_path, numbers(dtype), fill_value=None, order=order)
    array, found = read_back(tmp_path)
    assert found.dtype == dtype.newbyteorder("=")
    np.testing.assert_array_equal(found, expected)
    assert array.metadata.codecs[-1]["name"] == "bytes"


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(), (7,), (3, 4, 5), (0,), (0, 3)])
def test_ranks(tmp_path, shape, order):
    expected = write_v2(tmp_path, numbers("<i4", shape), chunks=tuple(max(1, n // 2) for n in shape), order=order)
    np.testing.assert_array_equal(read_back(tmp_path)[1], expected)


FILTERS = {
    "delta": numcodecs.Delta("<i4"),
    "delta big": numcodecs.Delta(">i4"),
    "delta to another type": numcodecs.Delta("<i4", "<i2"),
    "delta to another byte order": numcodecs.Delta("<i4", ">i4"),
    "scale": numcodecs.FixedScaleOffset(offset=1, scale=10, dtype="<f8", astype="<i2"),
    "scale big": numcodecs.FixedScaleOffset(offset=1, scale=10, dtype=">f8", astype=">i2"),
    "scale mixed": numcodecs.FixedScaleOffset(offset=1, scale=10, dtype="<f8", astype=">i2"),
    "scale, same type": numcodecs.FixedScaleOffset(offset=1, scale=10, dtype="<f8"),
    "quantize": numcodecs.Quantize(digits=2, dtype="<f8"),
    "bitround": numcodecs.BitRound(keepbits=12),
    "astype": numcodecs.AsType(encode_dtype="<f4", decode_dtype="<f8"),
    "astype big": numcodecs.AsType(encode_dtype=">f4", decode_dtype=">f8"),
    "packbits": numcodecs.PackBits(),
    "shuffle": numcodecs.Shuffle(8),
    "shuffle of four bytes": numcodecs.Shuffle(),
    "fletcher32": numcodecs.Fletcher32(),
    "crc32": numcodecs.CRC32(),
    "crc32c": numcodecs.CRC32C(),
    "adler32": numcodecs.Adler32(),
    "jenkins": numcodecs.JenkinsLookup3(),
}
FILTER_TYPES = {"packbits": "|b1", "delta big": ">i4", "bitround": "<f4"}
COMPRESSORS = {
    "none": None,
    "zlib": numcodecs.Zlib(4),
    "gzip": numcodecs.GZip(3),
    "bz2": numcodecs.BZ2(),
    "lzma": numcodecs.LZMA(),
    "lz4": numcodecs.LZ4(),
    "zstd": numcodecs.Zstd(3),
    "blosc": numcodecs.Blosc("zstd", 4, numcodecs.Blosc.BITSHUFFLE),
    "blosc, automatic": numcodecs.Blosc("lz4", 4, numcodecs.Blosc.AUTOSHUFFLE),
}


def type_for(name):
    kind = "<i4" if name.startswith("delta") else ">f8" if name.endswith("big") else "<f8"
    return FILTER_TYPES.get(name, kind)


@pytest.mark.parametrize("compressor", ["none", "zlib"])
@pytest.mark.parametrize("name", FILTERS)
def test_every_filter(tmp_path, name, compressor):
    values = numbers(type_for(name))
    compressors = COMPRESSORS[compressor]
    expected = write_v2(tmp_path, values, filters=[FILTERS[name]], compressors=compressors, fill_value=None)
    np.testing.assert_array_equal(read_back(tmp_path)[1], expected)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", COMPRESSORS)
def test_every_compressor_after_a_shuffle(tmp_path, name, order):
    filters = [numcodecs.Shuffle(4)]
    expected = write_v2(tmp_path, numbers(">f4"), filters=filters, compressors=COMPRESSORS[name], order=order)
    np.testing.assert_array_equal(read_back(tmp_path)[1], expected)


def test_a_chain_of_filters(tmp_path):
    filters = [FILTERS["scale"], numcodecs.Delta("<i2"), numcodecs.Shuffle(2), numcodecs.Fletcher32()]
    expected = write_v2(tmp_path, numbers("<f8"), filters=filters, compressors=numcodecs.BZ2(), order="F")
    array, found = read_back(tmp_path)
    np.testing.assert_array_equal(found, expected)
    assert [codec["name"] for codec in array.metadata.codecs] == [
        "transpose", "numcodecs.fixedscaleoffset", "numcodecs.delta", "bytes", "numcodecs.shuffle",
        "numcodecs.fletcher32", "numcodecs.bz2",
    ]  # fmt: skip


# What has no form as a pipeline of Zarr v3 is decoded by one codec of ours.
ODD_FILTERS = {
    "bytes before numbers": ("<f4", [numcodecs.Shuffle(4), numcodecs.Delta("|u1")]),
    "another byte order than the array's": ("<i4", [numcodecs.Delta(">i4")]),
    "another type than the array's": ("<i4", [numcodecs.Delta("<i2")]),
    "quantize to another type": ("<f8", [numcodecs.Quantize(digits=2, dtype="<f8", astype="<f4")]),
    "fields of two byte orders": ([("a", "<i4"), ("b", [("c", ">f8"), ("d", "S2")])], []),
    "fields of two byte orders, transposed": ([("a", "<i4"), ("b", [("c", ">f8"), ("d", "S2")])], []),
}


@pytest.mark.parametrize("name", ODD_FILTERS)
def test_what_has_no_form_as_a_pipeline_is_one_codec(tmp_path, helpers, name):
    dtype, filters = ODD_FILTERS[name]
    order = "F" if name.endswith("transposed") else "C"
    values = numbers(dtype) if isinstance(dtype, str) else nested(dtype)
    expected = write_v2(
        tmp_path, values, filters=filters or None, compressors=numcodecs.Zlib(2), fill_value=None, order=order
    )
    array, found = read_back(tmp_path)
    np.testing.assert_array_equal(found, expected)
    assert [codec["name"] for codec in array.metadata.codecs] == ["virtualzarr_refs.zarr_v2"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_json(VirtualGroup(arrays={"x": array}), tmp_path / "set.json", zarr_format=2)
        opened = open_refs(tmp_path / "set.json")
        helpers.same_group(opened, VirtualGroup(arrays={"x": array}))
        filesystem = fsspec.filesystem("reference", fo=str(tmp_path / "set.json"), asynchronous=True)
        found = zarr.open_array(FsspecStore(filesystem, read_only=True), path="x", mode="r", zarr_format=2)[...]
    np.testing.assert_array_equal(found, expected)


def nested(dtype):
    values = np.zeros(SHAPE, dtype)
    values["a"] = np.arange(35).reshape(SHAPE)
    values["b"]["c"] = np.arange(35).reshape(SHAPE) / 3
    values["b"]["d"] = b"xy"
    return values


def test_codecs_that_only_kerchunk_has():
    records = np.array([(1, 2.5), (3, 4.5)], [("a", ">i4"), ("b", ">f8")])
    member = {"id": "record_member", "member": "b", "dtype": [["a", ">i4"], ["b", ">f8"]]}
    zarray = {**ZARRAY, "dtype": ">f8", "shape": [4], "filters": [member]}
    group = open_refs({"version": 1, "refs": {"x/.zarray": json.dumps(zarray), "x/0": records.tobytes()}})
    assert zarr.open_group(group.to_store(), mode="r")["x"][...].tolist() == [2.5, 4.5, 0, 0]


@pytest.mark.parametrize("compressor", ["none", "zstd"])
def test_strings(tmp_path, compressor):
    values = np.array([["ü", "", "a\0b"], ["x" * 100, "𝄞", "z"]], dtype=object).astype("T")
    options = {"chunks": (1, 2), "compressors": COMPRESSORS[compressor], "filters": [numcodecs.VLenUTF8()]}
    expected = write_v2(tmp_path, values, **options, fill_value="")
    array, found = read_back(tmp_path)
    assert array.metadata.data_type == "string"
    assert found.tolist() == expected.tolist() == values.tolist()


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [
        ("<f4", np.nan), ("<f8", -np.inf), (">i4", -3), ("|b1", True), ("<u8", 2**64 - 1), ("<i8", -(2**63)),
        ("S3", b"ab"), ("<U3", "é"), ("<c8", 1 - 2j), ("<f2", 0.1), ("V2", b"\1\2"), ("<f4", None), ("<U3", None),
        (">c16", np.nan), ("<M8[ns]", None), ("<M8[s]", np.datetime64("2026-01-02", "s")),
        (">m8[D]", np.timedelta64("NaT", "D")),
        ("<m8[25s]", None),
    ],
    ids=str,
)  # fmt: skip
def test_missing_chunks_have_the_fill_value(tmp_path, dtype, fill):
    empty = np.zeros(SHAPE, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.create_array(
            LocalStore(tmp_path),
            name="x",
            shape=SHAPE,
            dtype=empty.dtype,
            chunks=CHUNKS,
            zarr_format=2,
            fill_value=fill,
        )
        expected = zarr.open_array(LocalStore(tmp_path), path="x", mode="r")[...]
    np.testing.assert_array_equal(read_back(tmp_path)[1], expected)


# ── documents ────────────────────────────────────────────────────────────────────────────────────────────────────────

ZARRAY = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<f4", "fill_value": None, "order": "C"}


def read(zattrs=None, *, mask_fill_value=False, **members):
    metadata, _ = read_array({**ZARRAY, **members}, zattrs or {}, mask_fill_value=mask_fill_value)
    return metadata


def test_dimensions_and_attributes():
    metadata = read({"_ARRAY_DIMENSIONS": ["time"], "units": "K"})
    assert metadata.dimension_names == ("time",)
    assert metadata.attributes == {"units": "K"}


@pytest.mark.parametrize("dimensions", [["a", "b"], "time", 5, None, []])
def test_dimensions_that_do_not_fit_stay_an_attribute(dimensions):
    metadata = read({"_ARRAY_DIMENSIONS": dimensions})
    assert metadata.dimension_names is None
    assert metadata.attributes == {"_ARRAY_DIMENSIONS": dimensions}


@pytest.mark.parametrize(
    ("dtype", "attribute", "value"),
    [
        ("<f4", -999.0, -999.0), ("<f4", "NaN", np.nan), ("<f8", [1e20], 1e20), ("<f4", "-Infinity", -np.inf),
        ("<i2", -1, -1), ("<i2", [-1], -1), ("|u1", 255, 255), ("<c8", [1, "NaN"], complex(1, np.nan)),
        ("S2", "a", b"a"),
    ],
)  # fmt: skip
def test_the_fill_value_of_cf_is_encoded_as_xarray_expects_it(dtype, attribute, value):
    metadata = read({"_FillValue": attribute}, dtype=dtype)
    np.testing.assert_equal(metadata.typed_attributes()["_FillValue"], value)


def test_the_fill_value_of_zarr_stands_for_missing_values_only_on_request():
    assert "_FillValue" not in read(fill_value=-1).attributes
    masked = read(fill_value=-1, mask_fill_value=True)
    assert masked.typed_attributes()["_FillValue"] == -1
    assert read({"_FillValue": 5.0}, fill_value=-1, mask_fill_value=True).typed_attributes()["_FillValue"] == 5
    assert "_FillValue" not in read(mask_fill_value=True).attributes


@pytest.mark.parametrize(
    ("dtype", "fill", "expected"),
    [
        ("<f4", None, 0.0), ("<f4", "nan", "NaN"), ("<i4", 0.0, 0), ("|S2", " ", "IA=="), ("|S2", 0, ""),
        ("<U2", 0, ""), ("|b1", 0, False), ("|u1", 1.0, 1), ("<c8", 0, [0.0, 0.0]),
    ],
)  # fmt: skip
def test_careless_fill_values(dtype, fill, expected):
    assert read(dtype=dtype, fill_value=fill).fill_value == expected


STRUCT = np.dtype([("a", ">i4"), ("b", "S2")])


def test_a_structured_fill_value_is_raw_bytes():
    raw = np.array((7, b"x"), STRUCT).tobytes()
    metadata = read(dtype=[["a", ">i4"], ["b", "|S2"]], fill_value=base64.b64encode(raw).decode())
    assert metadata.fill_value == {"a": 7, "b": "eA=="}


@pytest.mark.parametrize(
    "members",
    [
        {"dtype": "|O"}, {"dtype": [["a", "<f4", [2]]]}, {"dtype": "|O", "filters": [{"id": "json2"}]},
        {"dtype": "|O", "filters": [{"id": "pickle", "protocol": 5}]}, {"compressor": {"id": "pickle"}},
        {"dtype": "|O", "filters": [{"id": "vlen-utf8"}, {"id": "pickle"}]}, {"dtype": "<f16"}, {"dtype": "|S0"},
        {"compressor": {"id": "no_such_codec"}}, {"dtype": "|O", "filters": [{"id": "vlen-bytes"}]},
        {"dtype": "|O", "filters": [{"id": "fill_hdf_strings", "dtype": "S16"}]},
    ],
    ids=str,
)  # fmt: skip
def test_what_zarr_v3_cannot_say_is_refused_with_the_name_of_the_array(members):
    refs = {"g/x/.zarray": json.dumps({**ZARRAY, **members})}
    with pytest.raises(UnsupportedError) as caught:
        open_refs({"version": 1, "refs": refs})
    assert caught.value.node == "g/x"


@pytest.mark.parametrize(
    "members",
    [
        {"dtype": None}, {"dtype": 5}, {"dtype": ""}, {"dtype": "f4,f4"}, {"dtype": "<q4"}, {"dtype": "int32"},
        {"dtype": []}, {"dtype": [["a"]]}, {"dtype": [5]}, {"dtype": "<f5"}, {"dtype": [["a", "<i4"], ["a", "<i4"]]},
        {"shape": None}, {"shape": [2.5]}, {"shape": [-1]}, {"shape": 4}, {"chunks": [2, 2]}, {"chunks": [-2]},
        {"chunks": None}, {"chunks": ["2"]}, {"chunks": [2.5]}, {"order": "X"}, {"order": None}, {"fill_value": "x"},
        {"fill_value": [1]}, {"fill_value": {}}, {"dtype": "<i4", "fill_value": "NaN"},
        {"dtype": "|u1", "fill_value": -1}, {"dtype": "<M8[s]", "fill_value": "x"},
        {"dtype": "<i4", "fill_value": 1.5}, {"dtype": "|S1", "fill_value": "QUJD"}, {"filters": 5}, {"filters": [5]},
        {"filters": [{}]}, {"filters": [{"id": 5}]}, {"filters": [{"id": ["x"]}]}, {"compressor": 5},
        {"compressor": "zlib"}, {"dimension_separator": "-"}, {"dimension_separator": 5}, {"virtualzarr_refs": 5},
        {"dtype": "<c8", "fill_value": [1]}, {"dtype": "|S" + "9" * 30}, {"dtype": "<U999999999"},
        {"filters": [{"id": "delta", "dtype": "rubbish"}]}, {"filters": [{"id": "delta", "dtype": 5}]},
        {"dtype": "|O", "filters": 5},
    ],
    ids=str,
)  # fmt: skip
def test_malformed_documents_are_refused_with_the_name_of_the_array(members):
    with pytest.raises((ReferenceSetError, UnsupportedError)) as caught:
        open_refs({"version": 1, "refs": {"g/x/.zarray": json.dumps({**ZARRAY, **members})}})
    assert caught.value.node == "g/x"


# ── and back ─────────────────────────────────────────────────────────────────────────────────────────────────────────

GRID = RegularGrid((4, 4), (2, 2))
TRANSPOSED = {"name": "transpose", "configuration": {"order": [1, 0]}}
ZLIB = {"name": "numcodecs.zlib", "configuration": {"level": 4}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}


def describe(data_type="float32", codecs=(LITTLE,), fill_value=0.0, **more):
    return ArrayMetadata(data_type, more.pop("grid", GRID), fill_value, tuple(codecs), **more)


@pytest.mark.parametrize(
    ("metadata", "members"),
    [
        (describe(), {"dtype": "<f4", "compressor": None, "filters": None, "order": "C", "fill_value": None}),
        (describe(codecs=[BIG, ZLIB]), {"dtype": ">f4", "compressor": {"id": "zlib", "level": 4}, "filters": None}),
        (describe(codecs=[TRANSPOSED, LITTLE]), {"order": "F"}),
        (
            describe("int16", [LITTLE, {"name": "numcodecs.shuffle"}, ZLIB], 0),
            {"filters": [{"id": "shuffle", "elementsize": 2}], "compressor": {"id": "zlib", "level": 4}},
        ),
        (
            describe(codecs=[LITTLE, {"name": "zstd", "configuration": {"level": 3, "checksum": False}}]),
            {"compressor": {"id": "zstd", "level": 3, "checksum": False}},
        ),
        (
            describe(codecs=[LITTLE, {"name": "crc32c"}]),
            {"compressor": {"id": "crc32c", "location": "end"}, "filters": None},
        ),
        (describe("string", [{"name": "vlen-utf8"}], ""), {"dtype": "|O", "filters": [{"id": "vlen-utf8"}]}),
        (
            describe("string", [{"name": "vlen-utf8"}, ZLIB], ""),
            {"filters": [{"id": "vlen-utf8"}], "compressor": {"id": "zlib", "level": 4}},
        ),
        (describe("bool", [{"name": "bytes"}], fill_value=False), {"dtype": "|b1"}),
        (describe(fill_value="NaN"), {"fill_value": "NaN"}),
    ],
)
def test_what_is_written(metadata, members):
    zarray, _ = write_array(metadata, has_missing=True)
    assert {name: zarray[name] for name in members} == members


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        (describe(grid=RectilinearGrid((4, 4), ((1, 3), 2))), "rectilinear"),
        (describe(codecs=[{"name": "virtualzarr_refs.hdf5", "configuration": {}}]), "virtualzarr_refs.hdf5"),
        (describe(codecs=[{"name": "sharding_indexed", "configuration": {}}]), "sharding_indexed"),
        (describe(codecs=[LITTLE, {"name": "numcodecs.unknown"}]), "numcodecs.unknown"),
        (
            ArrayMetadata("int8", RegularGrid((2, 2, 2), (1, 1, 1)), 0, (
                {"name": "transpose", "configuration": {"order": [0, 2, 1]}}, LITTLE)),
            r"\[0, 2, 1\]",
        ),
        (describe(dimension_names=("a", None)), "no name"),
        (describe(fill_value=5.0), "chunks are missing"),
        (
            describe(codecs=[{"name": "numcodecs.delta", "configuration": {"dtype": "<f4"}}, BIG]),
            "another data type",
        ),
        (
            describe("float64", fill_value=0.0, codecs=[
                {"name": "numcodecs.fixedscaleoffset",
                 "configuration": {"scale": 1, "offset": 0, "dtype": "<f8", "astype": ">i2"}}, LITTLE]),
            "different byte orders",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_written(metadata, reason):
    with pytest.raises(NotRepresentableError, match=reason):
        write_array(metadata, has_missing=True)


@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize(
    "metadata",
    [
        describe(fill_value="NaN", attributes={"a": [1, "x", None]}, dimension_names=("y", "x")),
        describe(codecs=[TRANSPOSED, BIG, ZLIB], attribute_types={"a": "<f4"}, attributes={"a": 1.5}),
        describe("int32", fill_value=-1, attributes={"_FillValue": -1}),
        describe("float32", fill_value=-1.5, attributes={"_FillValue": base64.b64encode(np.float64(-1.5)).decode()}),
        describe("uint64", fill_value=2**64 - 1, attributes={"_FillValue": 2**64 - 1}),
        describe("int32", fill_value=0, attributes={"_FillValue": -1}),
        describe("string", [{"name": "vlen-utf8"}], ""),
        describe({"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}, [{"name": "bytes"}], "AAAA"),
        describe("float32", fill_value="0x7fc00001"),
        describe("complex64", fill_value=["NaN", 1.0], attributes={"_FillValue": ["AAAAAAAA+H8=", "AAAAAAAA8D8="]}),
        describe(encoding={"materialised": "because"}),
        describe({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}, fill_value=-(2**63)),
        describe({"name": "numpy.timedelta64", "configuration": {"unit": "s", "scale_factor": 25}}, [BIG], -(2**63)),
        describe("int16", fill_value=0, codecs=[LITTLE, {"name": "numcodecs.shuffle", "configuration": {
            "elementsize": 2}}, {"name": "blosc", "configuration": {
                "cname": "zstd", "clevel": 3, "shuffle": "bitshuffle", "typesize": 2, "blocksize": 0}}]),
        describe({"name": "struct", "configuration": {"fields": [
            {"name": "a", "data_type": "int32"}, {"name": "b", "data_type": "float64"}]}}, [BIG], {"a": 0, "b": 0.0}),
    ],
)  # fmt: skip
def test_metadata_survive_the_way_there_and_back(metadata, has_missing):
    zarray, zattrs = json.loads(json.dumps(write_array(metadata, has_missing=has_missing)))
    found, encoding = read_array(zarray, zattrs, mask_fill_value=False)
    assert found == metadata
    assert encoding == ChunkKeyEncoding("v2", ".")


def test_a_fill_value_that_no_chunk_uses_is_kept_aside():
    metadata = describe("int32", fill_value=-7)
    zarray, zattrs = write_array(metadata, has_missing=False)
    assert zarray["fill_value"] is None
    assert read_array(zarray, zattrs, mask_fill_value=False)[0] == metadata
