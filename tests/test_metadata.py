import copy
import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from zarr.core.metadata.v3 import ArrayV3Metadata

from virtualzarr_refs.attributes import encode_attributes
from virtualzarr_refs.chunk_grid import ChunkKeyEncoding, RectilinearGrid, RegularGrid
from virtualzarr_refs.errors import ReferenceSetError
from virtualzarr_refs.metadata import (
    ArrayMetadata,
    GroupMetadata,
    Skipped,
    decode_metadata,
    encode_metadata,
    parse_metadata,
)

CODECS = ({"name": "bytes", "configuration": {"endian": "little"}},)
ARRAY = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4],
    "data_type": "int8",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    "chunk_key_encoding": {"name": "default"},
    "fill_value": 0,
    "codecs": [{"name": "bytes"}],
}
GROUP = {"zarr_format": 3, "node_type": "group"}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**20) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def array(**changes):
    attributes, types = encode_attributes({"scale_factor": np.float32(0.1), "units": "m"})
    arguments = {
        "data_type": "int16",
        "chunk_grid": RegularGrid((4, 6), (2, 3)),
        "fill_value": 7,
        "codecs": CODECS,
        "attributes": attributes,
        "dimension_names": ("x", None),
        "chunk_key_encoding": ChunkKeyEncoding("v2", "/"),
        "attribute_types": types,
        "encoding": {"materialised": "compact"},
    }
    return ArrayMetadata(**(arguments | changes))


@pytest.mark.parametrize(
    "metadata",
    [
        array(),
        array(chunk_grid=RectilinearGrid((4, 6), ((1, 3), 2)), dimension_names=None),
        array(data_type="float32", fill_value="NaN", attributes={}, attribute_types={}, encoding={}),
        array(chunk_grid=RegularGrid((), ()), dimension_names=()),
        GroupMetadata(),
        GroupMetadata(
            {"title": "grün"}, {}, ("time",), (Skipped("/a", "too odd"), Skipped("/b", "empty", loses_data=False))
        ),
    ],
)
def test_round_trip(metadata):
    assert decode_metadata(encode_metadata(metadata)) == metadata


def test_types_of_attributes_come_back():
    attributes = decode_metadata(encode_metadata(array())).typed_attributes()
    assert attributes == {"scale_factor": np.float32(0.1), "units": "m"}
    assert attributes["scale_factor"].dtype == np.float32
    attributes, types = encode_attributes({"version": np.int16(3)})
    assert GroupMetadata(attributes, types).typed_attributes()["version"].dtype == np.int16


@pytest.mark.parametrize("grid", [RegularGrid((4, 6), (2, 3)), RectilinearGrid((4, 6), ((1, 3), 2))])
def test_zarr_reads_it(grid):
    read = ArrayV3Metadata.from_dict(json.loads(encode_metadata(array(chunk_grid=grid))))
    assert read.shape == (4, 6)
    assert read.dimension_names == ("x", None)
    assert read.fill_value == 7
    assert read.attributes == {"scale_factor": float(np.float32(0.1)), "units": "m"}
    assert read.encode_chunk_key((1, 1)) == "1/1"


def test_what_is_ours_is_optional():
    plain = array(attribute_types={}, encoding={})
    assert "virtualzarr_refs" not in plain.to_json()
    assert array().to_json()["virtualzarr_refs"]["must_understand"] is False


@pytest.mark.parametrize(
    "changes",
    [{"data_type": "int1"}, {"fill_value": "x"}, {"fill_value": 10**6}, {"dimension_names": ("x",)}],
    ids=str,
)
def test_arrays_check_themselves(changes):
    with pytest.raises(ReferenceSetError):
        array(**changes)


def test_short_forms():
    document = ARRAY | {"codecs": ["bytes", {"name": "gzip"}], "chunk_key_encoding": "default"}
    assert parse_metadata(document).codecs == ({"name": "bytes"}, {"name": "gzip"})
    assert parse_metadata(ARRAY | {"storage_transformers": []}) == parse_metadata(ARRAY)
    assert parse_metadata(GROUP) == GroupMetadata()


@pytest.mark.parametrize("document", [ARRAY, GROUP], ids=["array", "group"])
def test_members_that_must_be_understood(document):
    assert parse_metadata(document | {"extra": {"must_understand": False}}) == parse_metadata(document)
    for extra in ({"must_understand": True}, {}, 1, None, {"must_understand": 0}):
        with pytest.raises(ReferenceSetError, match="'extra'"):
            parse_metadata(document | {"extra": extra})


@pytest.mark.parametrize(
    "changes",
    [
        {"zarr_format": 2},
        {"node_type": "table"},
        {"node_type": []},
        {"shape": 4},
        {"shape": [True]},
        {"shape": [-1]},
        {"shape": [4.0]},
        {"shape": [4, 4]},
        {"codecs": []},
        {"codecs": [5]},
        {"codecs": [{}]},
        {"codecs": "bytes"},
        {"codecs": None},
        {"attributes": None},
        {"attributes": [[1, 2, 3]]},
        {"attributes": "x"},
        {"dimension_names": "x"},
        {"dimension_names": [5]},
        {"dimension_names": ["x", "y"]},
        {"fill_value": None},
        {"storage_transformers": [{"name": "x"}]},
        {"virtualzarr_refs": {"must_understand": False, "attribute_types": 5}},
    ],
    ids=str,
)
def test_arrays_that_cannot_be_read(changes):
    with pytest.raises(ReferenceSetError):
        parse_metadata(ARRAY | changes)


@pytest.mark.parametrize("member", sorted(ARRAY))
def test_arrays_that_lack_a_member(member):
    with pytest.raises(ReferenceSetError):
        parse_metadata({name: value for name, value in ARRAY.items() if name != member})


@pytest.mark.parametrize("skipped", [5, [{"x": 1}], ["x"], [{"path": "a"}]])
def test_groups_that_cannot_be_read(skipped):
    with pytest.raises(ReferenceSetError):
        parse_metadata(GROUP | {"virtualzarr_refs": {"must_understand": False, "skipped": skipped}})


@pytest.mark.parametrize(
    "document", [b"", b"{", b"[]", b"null", b"\xff\xfe", "[" * 10**5, b'"x"', b"{}"], ids=lambda d: repr(d[:8])
)
def test_documents_that_are_none(document):
    with pytest.raises(ReferenceSetError):
        decode_metadata(document)


@given(st.data())
def test_whatever_is_in_a_document_raises_nothing_else(data):
    document = copy.deepcopy(data.draw(st.sampled_from([ARRAY | array().to_json(), GROUP | {"attributes": {}}])))
    place, name = document, data.draw(st.sampled_from(sorted(document)))
    while isinstance(place[name], dict) and place[name] and data.draw(st.booleans()):
        place, name = place[name], data.draw(st.sampled_from(sorted(place[name])))
    place[name] = data.draw(json_values)
    with suppress(ReferenceSetError):
        parse_metadata(document).typed_attributes()


def test_text_that_utf8_cannot_say_survives():
    metadata = GroupMetadata({"name": "caf\u00e9 \udce9"})
    assert decode_metadata(encode_metadata(metadata)) == metadata
