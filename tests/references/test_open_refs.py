"""What `open_refs` understands, and what it refuses."""

import base64
import gzip
import json

import fsspec
import numpy as np
import pytest
import zarr
from numcodecs import Zstd

from virtualzarr_refs.chunk_grid import RegularGrid
from virtualzarr_refs.errors import (
    ReferenceSetError,
    SourceMissingError,
    VirtualZarrError,
)
from virtualzarr_refs.manifest import InlineChunk, VirtualChunk
from virtualzarr_refs.references import open_refs

ARRAY = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4],
    "data_type": "uint8",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 9,
    "codecs": [{"name": "bytes"}],
    "attributes": {"a": 1},
}
GROUP = {"zarr_format": 3, "node_type": "group", "attributes": {"title": "ü"}}
ZARRAY = {
    "zarr_format": 2,
    "shape": [4],
    "chunks": [2],
    "dtype": "|u1",
    "fill_value": 9,
    "order": "C",
    "filters": None,
    "compressor": None,
}


def set_of(**values):
    """A version 1 set; values that are dicts are documents and become their text."""
    refs = {key: json.dumps(value) if isinstance(value, dict) else value for key, value in values.items()}
    return {"version": 1, "refs": refs}


def v3(**chunks):
    return set_of(**{"zarr.json": GROUP, "x/zarr.json": ARRAY, **chunks})


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(range(10)))
    return str(path)


def values(group, path="x"):
    return zarr.open_group(group.to_store(), mode="r")[path][...].tolist()


# ── forms of a value ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_range_and_a_missing_chunk(source):
    group = open_refs(v3(**{"x/c/1": [source, 3, 2]}))
    assert values(group) == [9, 9, 3, 4]
    assert group["x"].manifest.chunk((0,)) is None
    assert group.attributes == {"title": "ü"}
    assert group["x"].metadata.attributes == {"a": 1}


def test_a_whole_source_has_the_length_that_it_has(tmp_path):
    (tmp_path / "two.bin").write_bytes(b"\5\6")
    group = open_refs(v3(**{"x/c/0": [str(tmp_path / "two.bin")]}))
    assert isinstance(group["x"].manifest.chunk((0,)), VirtualChunk)
    assert values(group) == [5, 6, 9, 9]


@pytest.mark.parametrize("whole", ["c/0", "x/c/0"])
def test_a_whole_source_that_is_missing(tmp_path, whole):
    with pytest.raises((SourceMissingError, ReferenceSetError)):
        open_refs(v3(**{whole: [str(tmp_path / "no.bin")]}))


@pytest.mark.parametrize("value", ["base64:BQY=", "\x05\x06", b"\5\6", "base64:" + base64.b64encode(b"\5\6").decode()])
def test_a_value_that_is_written_out(value):
    group = open_refs(v3(**{"x/c/0": value}))
    assert group["x"].manifest.chunk((0,)) == InlineChunk(b"\5\6")
    assert values(group) == [5, 6, 9, 9]


def test_a_text_is_utf8():
    assert values(open_refs(v3(**{"x/c/0": "é"}))) == [0xC3, 0xA9, 9, 9]


def test_python_objects_may_hold_tuples_and_parsed_documents(source):
    group = open_refs({"zarr.json": GROUP, "x/zarr.json": ARRAY, "x/c/0": (source, 0, 2)})
    assert values(group) == [0, 1, 9, 9]


def test_metadata_may_be_a_reference(tmp_path):
    text = json.dumps(ARRAY).encode()
    (tmp_path / "whole.json").write_bytes(text)
    (tmp_path / "part.json").write_bytes(b"  " + text + b"}}")
    parts = {"x/zarr.json": [str(tmp_path / "whole.json")], "y/zarr.json": [str(tmp_path / "part.json"), 2, len(text)]}
    group = open_refs({"version": 1, "refs": parts})
    assert group["x"].metadata == group["y"].metadata


# ── forms of a set ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_version_0_is_the_references_themselves(tmp_path, source):
    path = tmp_path / "set.json"
    path.write_text(json.dumps(v3(**{"x/c/0": [source, 0, 2]})["refs"]))
    assert values(open_refs(path)) == [0, 1, 9, 9]
    assert values(open_refs(f"file://{path}")) == [0, 1, 9, 9]


def test_relative_urls_start_at_the_set(tmp_path, source):
    folder = tmp_path / "sets"
    folder.mkdir()
    (folder / "set.json").write_text(json.dumps(v3(**{"x/c/0": ["../a.bin", 0, 2]})))
    group = open_refs(folder / "set.json")
    assert group.urls == (source,)
    assert values(group) == [0, 1, 9, 9]


def test_relative_urls_of_a_python_object_start_at_the_current_folder(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert open_refs(v3(**{"x/c/0": ["a.bin", 0, 2]})).urls == (source,)


@pytest.mark.parametrize("compress", [gzip.compress, lambda data: Zstd().encode(data)])
def test_compressed_sets(tmp_path, source, compress):
    path = tmp_path / "set.json.compressed"
    path.write_bytes(compress(json.dumps(v3(**{"x/c/0": [source, 0, 2]})).encode()))
    assert values(open_refs(path)) == [0, 1, 9, 9]


@pytest.mark.parametrize("head", [b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"])
def test_a_compressed_set_that_is_damaged(tmp_path, head):
    path = tmp_path / "set.json"
    path.write_bytes(head + b"rubbish, which is no compressed data")
    with pytest.raises(ReferenceSetError, match="cannot be decompressed") as caught:
        open_refs(path)
    assert caught.value.url == str(path)


def test_templates(tmp_path, source):
    document = v3(**{"x/c/0": ["{{u}}/a.bin", 0, 2], "x/c/1": ["{{f}}", 2, 2]})
    group = open_refs({**document, "templates": {"u": str(tmp_path), "f": source}})
    assert values(group) == [0, 1, 2, 3]
    assert group.urls == (source,)


def test_generators(tmp_path, source):
    generator = {
        "key": "x/c/{{i}}",
        "url": "{{u}}/a.bin",
        "offset": "{{i * 2 + 4}}",
        "length": "2",
        "dimensions": {"i": {"stop": 2}},
    }
    document = {**v3(), "templates": {"u": str(tmp_path)}, "gen": [generator]}
    assert values(open_refs(document)) == [4, 5, 6, 7]
    with pytest.raises(ReferenceSetError, match="second reference for 'x/c/1'"):
        open_refs({**document, "refs": {**document["refs"], "x/c/1": [source, 0, 2]}})


def test_consolidated_metadata_of_zarr_v2(source):
    metadata = {
        ".zgroup": {"zarr_format": 2},
        ".zattrs": {"title": "t"},
        "g/x/.zarray": ZARRAY,
        "g/x/.zattrs": {"a": 2},
    }
    refs = {".zmetadata": json.dumps({"zarr_consolidated_format": 1, "metadata": metadata}), "g/x/0": [source, 0, 2]}
    group = open_refs({"version": 1, "refs": refs})
    assert values(group, "g/x") == [0, 1, 9, 9]
    assert group.attributes == {"title": "t"}
    assert group["g/x"].metadata.attributes == {"a": 2}


def test_a_document_of_its_own_goes_before_consolidated_metadata():
    consolidated = {"metadata": {"x/.zarray": {**ZARRAY, "fill_value": 1}, "x/.zattrs": {"from": "both"}}}
    group = open_refs(set_of(**{".zmetadata": consolidated, "x/.zarray": ZARRAY}))
    assert group["x"].metadata.fill_value == 9
    assert group["x"].metadata.attributes == {"from": "both"}


def test_consolidated_metadata_of_zarr_v3(source):
    root = {**GROUP, "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": {"g/x": ARRAY}}}
    group = open_refs(set_of(**{"zarr.json": root, "g/x/c/0": [source, 0, 2]}))
    assert values(group, "g/x") == [0, 1, 9, 9]


def test_groups_need_no_document():
    group = open_refs(set_of(**{"a/b/x/zarr.json": ARRAY, "a/y/zarr.json": ARRAY, "c/.zattrs": {"k": 1}}))
    assert [path for path, _ in group.walk()] == ["", "a", "a/y", "a/b", "a/b/x", "c"]
    assert group["c"].attributes == {"k": 1}


@pytest.mark.parametrize("empty", [{}, {"version": 1}, {"version": 1, "refs": {}}])
def test_an_empty_set_is_an_empty_group(empty):
    group = open_refs(empty)
    assert not group.arrays
    assert not group.groups


@pytest.mark.parametrize("separator", ["/", "."])
def test_zarr_v2_keys_in_both_spellings(source, separator):
    zarray = {**ZARRAY, "shape": [4, 1], "chunks": [2, 1], "dimension_separator": separator}
    group = open_refs(set_of(**{"x/.zarray": zarray, f"x/1{separator}0": [source, 0, 2]}))
    assert values(group) == [[9], [9], [0], [1]]
    assert list(group["x"].chunk_keys()) == ["c/1/0"]


def test_a_scalar(source):
    scalar = {**ARRAY, "shape": [], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": []}}}
    assert values(open_refs(set_of(**{"x/zarr.json": scalar, "x/c": [source, 7, 1]}))) == 7
    v2 = {**ZARRAY, "shape": [], "chunks": []}
    for key in ("x/0", "x/"):  # VirtualiZarr writes the latter
        assert values(open_refs(set_of(**{"x/.zarray": v2, key: [source, 7, 1]}))) == 7
    with pytest.raises(ReferenceSetError, match="both name"):
        open_refs(set_of(**{"x/.zarray": v2, "x/0": [source, 7, 1], "x/": [source, 8, 1]}))


def test_references_outside_the_grid_are_named(source):
    group = open_refs(v3(**{"x/c/0": [source, 0, 2], "x/c/2": [source, 2, 2], "x/c/7": "base64:AAA="}))
    (record,) = group.skipped
    assert record.path == "x"
    assert not record.loses_data
    assert "2 reference(s), such as that of 'x/c/2'" in record.reason
    assert values(group) == [0, 1, 9, 9]


def test_variants(source):
    pipelines = [{"codecs": [{"name": "bytes"}]}, {"codecs": [{"name": "bytes"}, {"name": "gzip"}]}]
    mixed = {**ARRAY, "codecs": [{"name": "virtualzarr_refs.mixed", "configuration": {"variants": pipelines}}]}
    refs = {"x/c/0": [source, 3, 2, 0], "x/c/1": "base64:" + base64.b64encode(b"\1\0zip").decode()}
    manifest = open_refs(set_of(**{"x/zarr.json": mixed, **refs}))["x"].manifest
    assert manifest.variant.tolist() == [0, 1]
    assert manifest.chunk((1,)) == InlineChunk(b"zip")


def test_a_set_on_another_filesystem_may_have_its_data_beside_it():
    with fsspec.open("memory://refs/a.bin", "wb") as file:
        file.write(bytes(range(10)))
    with fsspec.open("memory://refs/set.json", "w") as file:
        json.dump(v3(**{"x/c/0": ["a.bin", 2, 2]}), file)
    assert values(open_refs("memory://refs/set.json")) == [2, 3, 9, 9]


def test_ten_thousand_references_are_columns():
    grid = {"name": "regular", "configuration": {"chunk_shape": [1, 1]}}
    document = {**ARRAY, "shape": [100, 100], "chunk_grid": grid}
    refs = {f"x/c/{i}/{j}": [f"s3://bucket/{i}", j, 1] for i in range(100) for j in range(100)}
    manifest = open_refs({"x/zarr.json": document, **refs})["x"].manifest
    assert manifest.urls == tuple(f"s3://bucket/{i}" for i in range(100))
    np.testing.assert_array_equal(manifest.url_id, np.arange(100)[:, None] + np.zeros(100, int))
    np.testing.assert_array_equal(manifest.offset, np.arange(100) + np.zeros((100, 1), int))


# ── what is refused ──────────────────────────────────────────────────────────────────────────────────────────────────

BAD_VALUES = [
    ["s3://b/x", -1, 2], ["s3://b/x", 0, -2], ["s3://b/x", 0], ["s3://b/x", 0, 2, 0], ["s3://b/x", 0, 2, 0, 0], [],
    ["s3://b/x", "0", 2], ["s3://b/x", 0.0, 2], ["s3://b/x", None, 2], ["s3://b/x", True, 2], [None, 0, 2], [5, 0, 2],
    [["s3://b/x"], 0, 2], ["", 0, 2], ["s3://b/x", 2**63, 2], ["s3://b/x", 2**62, 2**62], ["s3://b/x", 0, 10**30],
    None, 5, 1.5, True, {"a": 1}, "base64:*", "base64:A", "\ud800", [None], [""], [5],
]  # fmt: skip


@pytest.mark.parametrize("value", BAD_VALUES, ids=repr)
def test_a_value_that_is_no_reference_is_named(tmp_path, value):
    path = tmp_path / "set.json"
    good = {"x/c/0": ["s3://b/x", 0, 2]}
    refs = {"zarr.json": GROUP, "x/zarr.json": ARRAY, **good, "x/c/1": value}
    path.write_text(json.dumps({"version": 1, "refs": refs}))
    with pytest.raises(ReferenceSetError) as caught:
        open_refs(path)
    assert caught.value.url == str(path)
    if value not in ([None], [5], [""]):  # the url is looked at before the keys are
        assert "'x/c/1'" in str(caught.value)


@pytest.mark.parametrize(
    "key",
    ["x/c/00", "x/c/-1", "x/0", "x/c", "x/c/0/0", "x/c/0/", "x/foo", "x", "y/c/0", "c/0", "", "/", "x//c/0", "/x/c/0"],
)
def test_a_key_that_belongs_nowhere_is_named(key):
    with pytest.raises(ReferenceSetError) as caught:
        open_refs(v3(**{"x/c/0": ["s3://b/x", 0, 2], key: ["s3://b/x", 0, 2]}))
    assert repr(key) in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", "5", '"a"', "{'a': 1}", '{"version": 2, "refs": {}}', '{"version": "1", "refs": {}}',
        '{"version": true}', '{"version": null}', '{"version": 1, "refs": []}', '{"version": 1, "refs": "x"}',
        '{"version": 1, "templates": []}', '{"version": 1, "gen": {}}', '{"version": 1, "gen": 5}', '{"a": 1}',
        '{"refs": {}}', "[" * 100_000, '{"version": 1, "refs": {"x/zarr.json": ' + "[" * 100_000, "\x80\x81",
    ],
)  # fmt: skip
def test_malformed_files(tmp_path, text):
    path = tmp_path / "set.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ReferenceSetError) as caught:
        open_refs(path)
    assert caught.value.url == str(path)


BAD_DOCUMENTS = [
    "", "{", "[]", "5", "null", "base64:*", "{}", '{"zarr_format": 3}', '{"zarr_format":3,"node_type":"array"}', 5,
    {**ARRAY, "shape": [-1]}, {**ARRAY, "data_type": "int7"}, {**ARRAY, "fill_value": "x"}, {**ARRAY, "codecs": 5},
    {**ARRAY, "attributes": "abc"}, {**ARRAY, "shape": [10**30]}, {**ARRAY, "dimension_names": ["a", "b"]},
    {**ARRAY, "storage_transformers": [{"name": "x"}]}, {**ARRAY, "unknown": 1}, "[" * 100_000,
    {**ARRAY, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0]}}},
    {**ARRAY, "zarr_format": 2}, {**GROUP, "consolidated_metadata": 5}, None,
    {**GROUP, "consolidated_metadata": {"metadata": 5}},
    {**GROUP, "consolidated_metadata": {"metadata": {"y": 5}}}, ["s3://b/x", -1, 5], ["s3://b/x", 1], [], [None],
    {**GROUP, "consolidated_metadata": {"metadata": {"../y": ARRAY}}},
]  # fmt: skip


@pytest.mark.parametrize("document", BAD_DOCUMENTS, ids=lambda d: str(d)[:60])
def test_malformed_documents(document):
    with pytest.raises(VirtualZarrError):
        open_refs(set_of(**{"x/zarr.json": document}))


@pytest.mark.parametrize("name", [".zarray", ".zattrs", ".zgroup", ".zmetadata"])
@pytest.mark.parametrize("document", ["", "[]", "5", "{", None, 5, {"metadata": 5}, {"metadata": {"x/y": {}}}])
def test_malformed_documents_of_zarr_v2(name, document):
    valid = name in (".zattrs", ".zgroup") and isinstance(document, dict)
    if valid:
        open_refs(set_of(**{f"x/{name}": document}))
        return
    with pytest.raises(ReferenceSetError):
        open_refs(set_of(**{f"x/{name}": document}))


@pytest.mark.parametrize("path", ["../x", "a/../x", "a//x", "/x", "./x", "..", "a" + "/a" * 200])
def test_a_node_where_none_can_be(path):
    with pytest.raises(ReferenceSetError, match="no Zarr node"):
        open_refs(set_of(**{f"{path}/zarr.json": ARRAY}))


def test_an_array_holds_no_nodes():
    with pytest.raises(ReferenceSetError, match="'x' cannot hold the node 'x/y'"):
        open_refs(set_of(**{"x/zarr.json": ARRAY, "x/y/zarr.json": ARRAY}))


def test_the_root_is_no_array():
    with pytest.raises(ReferenceSetError, match="under a name"):
        open_refs(set_of(**{"zarr.json": ARRAY}))


def test_a_node_has_one_format():
    with pytest.raises(ReferenceSetError, match="v2 and v3") as caught:
        open_refs(set_of(**{"x/zarr.json": ARRAY, "x/.zarray": ZARRAY}))
    assert caught.value.node == "x"


def test_a_vast_grid_takes_no_memory():
    vast = {**ARRAY, "shape": [2**60]}
    assert open_refs(set_of(**{"x/zarr.json": vast}))["x"].manifest.is_missing
    with pytest.raises(ReferenceSetError, match="too large"):
        open_refs(set_of(**{"x/zarr.json": vast, "x/c/0": ["s3://b/x", 0, 2]}))


def test_a_remote_set_is_not_trusted_and_allow_is(source):
    with fsspec.open("memory://refs/trust.json", "w") as file:
        json.dump(v3(**{"x/c/0": [source, 2, 2]}), file)
    open_refs("memory://refs/trust.json")
    with pytest.raises(ReferenceSetError, match=r"allow.*'x/c/0'"):
        open_refs("memory://refs/trust.json", allow=["s3://bucket"])


def test_variants_and_plain_references_do_not_mix():
    mixed = {**ARRAY, "codecs": [{"name": "virtualzarr_refs.mixed", "configuration": {"variants": [{"codecs": []}]}}]}
    for value in (["s3://b/x", 0, 2], ["s3://b/x"], ["s3://b/x", 0, 2, -1], ["s3://b/x", 0, 2, 2**16], "a"):
        with pytest.raises(ReferenceSetError):
            open_refs(set_of(**{"x/zarr.json": mixed, "x/c/0": value}))


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(SourceMissingError):
        open_refs(tmp_path / "no.json")
    with pytest.raises(VirtualZarrError):
        open_refs(tmp_path)
    with pytest.raises(SourceMissingError, match="no reference set"):
        open_refs(tmp_path / "set.parq")


def test_a_secret_in_the_place_of_the_set_is_not_shown(tmp_path):
    del tmp_path
    with pytest.raises(VirtualZarrError) as caught:
        open_refs("nosuch://ada:tops3cret@host/set.json")
    assert "tops3cret" not in str(caught.value)


def test_the_grid_is_a_regular_one():
    assert open_refs(v3())["x"].metadata.chunk_grid == RegularGrid((4,), (2,))
