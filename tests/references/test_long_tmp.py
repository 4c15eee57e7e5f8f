"""Any group that is written is read back exactly."""

import json
import math
import string
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from virtualzarr_refs.attributes import encode_attributes
from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import ChunkKeyEncoding, RectilinearGrid, RegularGrid
from virtualzarr_refs.data_types import encode_data_type, encode_scalar
from virtualzarr_refs.errors import VirtualZarrError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup, is_node_name
from virtualzarr_refs.manifest import InlineChunk, Manifest, VirtualChunk
from virtualzarr_refs.metadata import ArrayMetadata, GroupMetadata, Skipped
from virtualzarr_refs.references import open_refs, write_json
from virtualzarr_refs.references.zarr_v2_types import byte_order

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = st.one_of(texts, st.sampled_from(["c", "0", "a%sb", "{x}", ".zarray", "a.b", "ü", " ", "c.0"])).filter(
    is_node_name
)
numbers = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(), st.sampled_from([2**53 + 1, 2**64 - 1, -(2**63), math.nan, -0.0])
)
scalar_types = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="<"),
    hnp.unsigned_integer_dtypes(endianness="<"),
    hnp.floating_dtypes(endianness="<", sizes=(16, 32, 64)),
    hnp.complex_number_dtypes(endianness="<", sizes=(64, 128)),
    st.sampled_from(["S3", "U2", "V4", "M8[ns]", "m8[25s]"]).map(np.dtype),
)
struct_types = st.lists(
    st.tuples(st.text(string.ascii_letters, min_size=1, max_size=4), scalar_types),
    min_size=1,
    max_size=3,
    unique_by=lambda f: f[0],
).map(np.dtype)
dtypes = st.one_of(scalar_types, struct_types, st.just(np.dtype(object)))
typed = hnp.arrays(
    st.one_of(hnp.integer_dtypes(), hnp.unsigned_integer_dtypes(), hnp.floating_dtypes(sizes=(32, 64))),
    hnp.array_shapes(max_dims=1, max_side=3),
)
values = st.one_of(texts, numbers, st.booleans(), st.none(), st.lists(st.one_of(texts, numbers), max_size=3), typed)
attributes = st.dictionaries(texts, values, max_size=4)
urls = st.one_of(
    st.sampled_from(["s3://bucket/a.nc", "/data/ü x.nc", "https://h/a%20b.nc", "gs://b/{{x}}.nc", "/a/b@c?d.nc"]),
    st.text(string.ascii_letters + "/.{}", min_size=1, max_size=9).map(lambda path: f"s3://bucket/{path}"),
)


@st.composite
def grids(draw, *, regular):
    shape = tuple(draw(st.lists(st.integers(0, 9), max_size=3)))
    if regular or draw(st.booleans()):
        return RegularGrid(shape, tuple(draw(st.integers(1, 12)) for _ in shape))
    return RectilinearGrid(shape, tuple(draw(edges(size)) for size in shape))


@st.composite
def edges(draw, size):
    if draw(st.booleans()):
        return draw(st.integers(1, 12))
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    return (*lengths, max(1, size - sum(lengths)))


@st.composite
def manifests(draw, grid_shape):
    positions = list(np.ndindex(grid_shape))
    chunks = {}
    for index in draw(st.lists(st.sampled_from(positions), unique=True, max_size=6)) if positions else ():
        if draw(st.booleans()):
            chunks[index] = InlineChunk(draw(st.binary(max_size=9)))
        else:
            offset = draw(st.integers(0, 2**62))
            chunks[index] = VirtualChunk(draw(urls), ByteRange(offset, draw(st.integers(0, 2**62 - 1))))
    return Manifest.from_chunks(grid_shape, chunks)


def value_of(dtype):
    if dtype == np.dtype(object):
        return texts
    if dtype.names is not None:
        fields = st.tuples(*(value_of(dtype.fields[name][0]) for name in dtype.names))
        return fields.map(lambda value: np.array(value, dtype)[()])
    if dtype.kind == "V":
        return st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize).map(lambda b: np.frombuffer(b, dtype)[0])
    if dtype.kind in "mM":
        return st.integers(-(2**63), 2**63 - 1).map(lambda value: np.array(value, "i8").view(dtype)[()])
    return hnp.from_dtype(dtype).map(lambda value: np.array(value, dtype)[()])


@st.composite
def arrays(draw, *, regular=False):
    dtype, grid = draw(dtypes), draw(grids(regular=regular))
    given_attributes = draw(attributes)
    if dtype.kind in "iufS" and dtype.names is None and draw(st.booleans()):
        given_attributes["_FillValue"] = draw(value_of(dtype))
    encoded, types = encode_attributes(given_attributes, dtype)
    encoding = ChunkKeyEncoding()
    if not regular:
        encoding = ChunkKeyEncoding(draw(st.sampled_from(["default", "v2"])), draw(st.sampled_from("/.")))
    codecs = ({"name": "vlen-utf8"},) if dtype == np.dtype(object) else (draw(st.sampled_from([LITTLE, BIG])),)
    dimension_names = draw(st.none() | st.tuples(*(texts for _ in grid.shape)))
    metadata = ArrayMetadata(
        encode_data_type(dtype),
        grid,
        encode_scalar(draw(value_of(dtype)), dtype),
        codecs,
        encoded,
        dimension_names,
        encoding,
        types,
        draw(st.sampled_from([{}, {"materialised": "ü"}])),
    )
    return VirtualArray(metadata, draw(manifests(grid.grid_shape)))


@st.composite
def groups(draw, depth=2, *, regular=False):
    encoded, types = encode_attributes(draw(attributes))
    inner = draw(st.dictionaries(names, groups(depth - 1, regular=regular), max_size=2)) if depth else {}
    own = draw(st.dictionaries(names, arrays(regular=regular), max_size=3))
    kept = {name: array for name, array in own.items() if name not in inner}
    skipped = (Skipped("a/ü", "because", loses_data=draw(st.booleans())),) if depth == 2 and draw(st.booleans()) else ()
    return VirtualGroup(GroupMetadata(encoded, types, skipped=skipped), kept, inner)


quick = settings(max_examples=1200, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@quick
@given(group=groups(), inline_threshold=st.just(1 << 20))
def test_zarr_v3(helpers, tmp_path, group, inline_threshold):
    path = tmp_path / "set.json"
    write_json(group, path, overwrite=True, inline_threshold=inline_threshold)
    helpers.same_group(open_refs(path), group)
    helpers.same_group(open_refs(json.loads(path.read_text())), group)


@quick
@given(group=groups(regular=True))
def test_zarr_v2(tmp_path, group):
    path = tmp_path / "set.json"
    try:
        write_json(group, path, overwrite=True, zarr_format=2)
    except VirtualZarrError as error:
        assume("chunks are missing" not in str(error) and "metadata document" not in str(error))
        raise
    same_up_to_spelling(open_refs(path), group)


def same_up_to_spelling(found, expected):
    """Zarr v2 has no byte order where none is needed."""
    nodes, others = dict(found.walk()), dict(expected.walk())
    assert nodes.keys() == others.keys()
    for path, node in nodes.items():
        np.testing.assert_equal(comparable(node.metadata), comparable(others[path].metadata), err_msg=path)
        if isinstance(node, VirtualArray):
            assert node.manifest.equals(others[path].manifest), path


def comparable(metadata):
    document = deepcopy(metadata.to_json())
    for codec in document.get("codecs", []):
        if codec["name"] == "bytes" and byte_order(metadata.dtype) is None:
            codec.pop("configuration", None)
    return document


@quick
@given(group=groups(depth=1), data=st.data())
def test_sidecars_hold_the_same_bytes(tmp_path, group, data):
    assume(not any("{{" in url for url in group.urls))
    path = tmp_path / "set.json"
    write_json(group, path, overwrite=True, inline_threshold=data.draw(st.integers(0, 20)))
    opened = open_refs(path)
    for name, array in group.walk_arrays():
        for index in array.manifest.indexes():
            before, after = array.manifest.chunk(index), opened[name].manifest.chunk(index)
            if isinstance(before, InlineChunk) and isinstance(after, VirtualChunk):
                with open(after.url, "rb") as file:  # noqa: PTH123  a url
                    file.seek(after.byte_range.offset)
                    assert file.read(after.byte_range.length) == before.data
            else:
                assert before == after


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=12,
)
keys = st.one_of(
    texts, st.sampled_from([".zgroup", ".zattrs", "x/.zarray", "x/0", "zarr.json", "y/zarr.json", "y/c/0"])
)
references = st.one_of(json_values, st.tuples(st.just("s3://b/x"), st.integers(), st.integers()), st.just("{}"))


@quick
@given(
    refs=st.dictionaries(keys, references, max_size=6),
    more=st.dictionaries(st.sampled_from(["templates", "gen", "version"]), json_values, max_size=3),
)
def test_any_json_gives_a_group_or_our_error(refs, more):
    for document in (refs, {"version": 1, "refs": refs}, {"version": 1, "refs": refs, **more}):
        try:
            assert isinstance(open_refs(document), VirtualGroup)
        except VirtualZarrError:
            continue


DOCUMENT = {
    "zarr_format": 2, "shape": [4, 3], "chunks": [2, 3], "dtype": "<f4", "fill_value": 0, "order": "C",
    "filters": [{"id": "shuffle", "elementsize": 4}], "compressor": {"id": "zlib", "level": 1},
}  # fmt: skip


@quick
@given(changes=st.dictionaries(st.sampled_from([*DOCUMENT, "dimension_separator", "virtualzarr_refs"]), json_values))
def test_any_zarray_gives_an_array_or_our_error(changes):
    refs = {"x/.zarray": json.dumps({**DOCUMENT, **changes}), "x/.zattrs": "{}"}
    try:
        assert isinstance(open_refs({"version": 1, "refs": refs})["x"], VirtualArray)
    except VirtualZarrError as error:
        place = error.node
    else:
        place = "x"
    assert place == "x"


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_two_hundred_thousand_references_are_exact(helpers, tmp_path, zarr_format):
    shape = (1000, 200)
    metadata = ArrayMetadata("float32", RegularGrid(shape, (1, 1)), 0.0, (LITTLE,))
    offset = np.arange(200_000, dtype=np.uint64).reshape(shape) + np.uint64(2**60)
    url_id = np.broadcast_to(np.arange(1000, dtype=np.uint32)[:, None], shape).copy()
    sources = tuple(f"s3://bucket/{i}.nc" for i in range(1000))
    manifest = Manifest(sources, url_id, offset, np.full(shape, 4, np.uint64))
    group = VirtualGroup(arrays={"x": VirtualArray(metadata, manifest)})
    write_json(group, tmp_path / "set.json", zarr_format=zarr_format)
    helpers.same_group(open_refs(tmp_path / "set.json"), group)
