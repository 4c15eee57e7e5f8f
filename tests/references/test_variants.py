"""Arrays whose chunks are encoded in different ways, written with four elements or encoded anew."""

import json
from dataclasses import replace

import fsspec
import numpy as np
import pytest
from zarr.storage import FsspecStore

from virtualzarr_refs.chunk_grid import RectilinearGrid, RegularGrid
from virtualzarr_refs.errors import NotRepresentableError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import InlineChunk, Manifest, VirtualChunk
from virtualzarr_refs.references import open_refs, write_json

pytestmark = pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning")

GRID = RegularGrid((5, 7), (2, 3))
VALUES = np.arange(35, dtype="i4").reshape(5, 7)
ZLIB = {"name": "numcodecs.zlib", "configuration": {"level": 3}}


@pytest.fixture
def mixed(build, helpers):
    """Makes an array of which single chunks have no compression."""

    def make(plain, *, grid=GRID, inline=(), missing=(), most=None):
        compressed = [helpers.LITTLE, ZLIB] if most is None else most
        pipelines = [compressed, [helpers.LITTLE]]
        metadata = [helpers.describe("int32", grid, codecs=codecs, names=("y", "x")) for codecs in pipelines]
        arrays = [build.array(VALUES, one) for one in metadata]
        chunks, variant = {}, np.zeros(grid.grid_shape, np.uint16)
        for index in np.ndindex(grid.grid_shape):
            variant[index] = int(index in plain)
            chunks[index] = arrays[variant[index]].manifest.chunk(index)
            if index in inline:
                chunks[index] = InlineChunk(helpers.encode_chunks(VALUES, metadata[variant[index]])[index])
        chunks = {index: chunk for index, chunk in chunks.items() if index not in missing}
        variants = {"variants": [{"codecs": codecs} for codecs in pipelines]}
        codec = {"name": "virtualzarr_refs.mixed", "configuration": variants}
        manifest = replace(Manifest.from_chunks(grid.grid_shape, chunks), variant=variant)
        return VirtualArray(replace(metadata[0], codecs=(codec,)), manifest)

    return make


def expected(missing=()):
    values = VALUES.copy()
    for y, x in missing:
        values[2 * y : 2 * y + 2, 3 * x : 3 * x + 3] = 0
    return values


def test_four_elements_are_read_back(mixed, helpers, tmp_path):
    group = VirtualGroup(arrays={"x": mixed({(0, 1), (2, 2)}, inline=[(1, 1), (0, 1)], missing=[(1, 0)])})
    write_json(group, tmp_path / "set.json")
    refs = helpers.refs_of(tmp_path / "set.json")
    assert refs["x/c/2/2"][3] == 1
    assert refs["x/c/0/0"][3] == 0
    assert "x/c/1/0" not in refs
    opened = open_refs(tmp_path / "set.json")
    helpers.same_group(opened, group)
    np.testing.assert_array_equal(helpers.read_all(opened.to_store())["x"], expected([(1, 0)]))


def test_four_elements_and_a_sidecar(mixed, helpers, tmp_path):
    group = VirtualGroup(arrays={"x": mixed({(0, 1), (2, 2)}, inline=[(1, 1), (0, 1)])})
    write_json(group, tmp_path / "set.json", inline_threshold=0)
    np.testing.assert_array_equal(helpers.read_all(open_refs(tmp_path / "set.json").to_store())["x"], VALUES)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("way", ["inline", "sidecar"])
def test_chunks_that_are_encoded_anew(mixed, helpers, tmp_path, way, zarr_format):
    plain = {(0, 1), (2, 2), (1, 0)}
    group = VirtualGroup(arrays={"x": mixed(plain, inline=[(1, 1)], missing=[(1, 0)])})
    path = tmp_path / "set.json"
    write_json(
        group, path, materialise=way, zarr_format=zarr_format, inline_threshold=0 if way == "inline" else 1 << 20
    )
    assert (tmp_path / "set.data").exists() == (way == "sidecar")
    opened = open_refs(path)
    np.testing.assert_array_equal(helpers.read_all(opened.to_store())["x"], expected([(1, 0)]))
    kept = [index for index in np.ndindex(3, 3) if index not in plain and index != (1, 1)]
    for index in kept:
        assert opened["x"].manifest.chunk(index) == group["x"].manifest.chunk(index)
    filesystem = fsspec.filesystem("reference", fo=str(path), asynchronous=True)
    found = helpers.read_all(FsspecStore(filesystem, read_only=True))
    np.testing.assert_array_equal(found["x"], expected([(1, 0)]))


def test_chunks_of_zeros_are_written_too(mixed, helpers, tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "VALUES", np.zeros((5, 7), "i4"))
    write_json(VirtualGroup(arrays={"x": mixed({(0, 1)})}), tmp_path / "set.json", materialise="inline")
    assert "x/c/0/1" in helpers.refs_of(tmp_path / "set.json")


def test_an_array_of_which_one_variant_is_used_needs_no_reading(mixed, helpers, tmp_path):
    array = mixed(set())
    moved = replace(array, manifest=array.manifest.rename_urls(lambda _: "s3://nowhere/x"))
    write_json(VirtualGroup(arrays={"x": moved}), tmp_path / "set.json", materialise="inline")
    opened = open_refs(tmp_path / "set.json")["x"]
    assert opened.metadata.codecs == (helpers.LITTLE, ZLIB)
    assert opened.manifest.urls == ("s3://nowhere/x",)


def test_a_rectilinear_grid(mixed, helpers, tmp_path):
    grid = RectilinearGrid((5, 7), ((1, 4), (3, 3, 2)))
    write_json(VirtualGroup(arrays={"x": mixed({(0, 1)}, grid=grid)}), tmp_path / "set.json", materialise="inline")
    np.testing.assert_array_equal(helpers.read_all(open_refs(tmp_path / "set.json").to_store())["x"], VALUES)


def test_a_codec_that_only_decodes(mixed, helpers, tmp_path):
    array = mixed({(0, 1)})
    codec = {"name": "virtualzarr_refs.hdf5", "configuration": {"datatype": "", "filters": []}}
    variants = [{"codecs": [codec]}, {"codecs": [helpers.LITTLE]}]
    mixed_codec = {"name": "virtualzarr_refs.mixed", "configuration": {"variants": variants}}
    group = VirtualGroup(
        groups={
            "g": VirtualGroup(arrays={"x": replace(array, metadata=replace(array.metadata, codecs=(mixed_codec,)))})
        }
    )
    with pytest.raises(NotRepresentableError, match=r"'g/x'.*virtualzarr_refs.hdf5") as caught:
        write_json(group, tmp_path / "set.json", materialise="inline")
    assert caught.value.node == "g/x"
    assert not list(tmp_path.glob("set*"))


def test_zarr_v2_cannot_say_variants(mixed, tmp_path):
    with pytest.raises(NotRepresentableError, match="materialise="):
        write_json(VirtualGroup(arrays={"x": mixed({(0, 1)})}), tmp_path / "set.json", zarr_format=2)


def test_inline_only(helpers, tmp_path):
    variants = [{"codecs": [{"name": "bytes"}]}, {"codecs": [{"name": "bytes"}, ZLIB]}]
    codec = {"name": "virtualzarr_refs.mixed", "configuration": {"variants": variants}}
    metadata = helpers.describe("uint8", RegularGrid((4,), (2,)), codecs=[codec])
    manifest = replace(Manifest.from_inline((2,), {0: b"\1\2", 1: b"zip"}), variant=np.array([0, 1], np.uint16))
    group = VirtualGroup(arrays={"x": VirtualArray(metadata, manifest)})
    write_json(group, tmp_path / "set.json")
    assert json.loads((tmp_path / "set.json").read_text())["refs"]["x/c/1"] == "base64:AQB6aXA="
    helpers.same_group(open_refs(tmp_path / "set.json"), group)
    assert not isinstance(open_refs(tmp_path / "set.json")["x"].manifest.chunk((0,)), VirtualChunk)
