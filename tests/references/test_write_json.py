"""What `write_json` puts on disk, and what it leaves alone."""

import json
import os
import stat
from pathlib import Path

import fsspec
import numpy as np
import pytest
import zarr
from fsspec.implementations.memory import MemoryFileSystem

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import ChunkKeyEncoding, RectilinearGrid, RegularGrid
from virtualzarr_refs.errors import NotRepresentableError, ReferenceSetError, SourceError, UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import InlineChunk, Manifest, VirtualChunk
from virtualzarr_refs.metadata import GroupMetadata, Skipped
from virtualzarr_refs.references import open_refs, write_json

GRID = RegularGrid((4,), (2,))


@pytest.fixture
def array(helpers):
    """One chunk in a source and one inline."""
    chunks = {(0,): VirtualChunk("s3://bucket/a.nc", ByteRange(2**53 + 1, 2)), (1,): InlineChunk(b"\0\xff")}
    return VirtualArray(helpers.describe("uint8", GRID, codecs=[{"name": "bytes"}]), Manifest.from_chunks((2,), chunks))


def inline(helpers, size, encoding=None):
    chunks = {(0,): b"a" * size, (1,): b"b" * size}
    more = {} if encoding is None else {"chunk_key_encoding": encoding}
    metadata = helpers.describe("uint8", RegularGrid((2 * size,), (size,)), **more)
    return VirtualArray(metadata, Manifest.from_inline((2,), dict(enumerate(chunks.values()))))


def litter(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# ── content ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_document(helpers, array, tmp_path):
    write_json(helpers.group({"title": "ü"}, x=array), tmp_path / "set.json")
    document = json.loads((tmp_path / "set.json").read_bytes())
    assert document.keys() == {"version", "refs"}
    assert document["version"] == 1
    assert list(document["refs"]) == ["zarr.json", "x/zarr.json", "x/c/0", "x/c/1"]
    assert json.loads(document["refs"]["zarr.json"])["attributes"] == {"title": "ü"}
    assert document["refs"]["x/c/0"] == ["s3://bucket/a.nc", 9007199254740993, 2]
    assert document["refs"]["x/c/1"] == "base64:AP8="
    assert "\\/" not in (tmp_path / "set.json").read_text()


@pytest.mark.parametrize("encoding", [ChunkKeyEncoding("v2", "."), ChunkKeyEncoding("default", ".")])
def test_chunks_are_named_as_the_metadata_say(helpers, tmp_path, encoding):
    write_json(helpers.group(x=inline(helpers, 2, encoding)), tmp_path / "set.json")
    assert f"x/{encoding.encode((1,))}" in helpers.refs_of(tmp_path / "set.json")
    helpers.same_group(open_refs(tmp_path / "set.json"), helpers.group(x=inline(helpers, 2, encoding)))


def test_documents_of_zarr_v2(helpers, array, tmp_path):
    group = helpers.group({"title": "t"}, x=array)
    write_json(group, tmp_path / "set.json", zarr_format=2)
    refs = helpers.refs_of(tmp_path / "set.json")
    assert list(refs) == [".zgroup", ".zattrs", "x/.zarray", "x/.zattrs", "x/0", "x/1"]
    helpers.same_group(open_refs(tmp_path / "set.json"), group)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_what_a_scan_left_out_is_kept(tmp_path, zarr_format):
    metadata = GroupMetadata(unlimited_dimensions=("time",), skipped=(Skipped("a/b", "because"),))
    write_json(VirtualGroup(metadata), tmp_path / "set.json", zarr_format=zarr_format)
    assert open_refs(tmp_path / "set.json").metadata == metadata


def test_numbers_that_are_no_json_survive(helpers, tmp_path):
    attributes = {"nan": np.float32(np.nan), "big": 2**64 - 1, "list": [1.5, float("-inf")], "text": '𝄞/\\"\x00\u2028'}
    group = helpers.group(attributes)
    write_json(group, tmp_path / "set.json")
    np.testing.assert_equal(open_refs(tmp_path / "set.json").attributes, attributes)


# ── what is refused ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("change", [{"zarr_format": 1}, {"zarr_format": "3"}, {"materialise": "somewhere"}])
def test_options_that_do_not_exist(tmp_path, change):
    with pytest.raises(ValueError, match="is "):
        write_json(VirtualGroup(), tmp_path / "set.json", **change)
    assert litter(tmp_path) == []


def test_a_set_is_not_replaced_unless_asked(helpers, array, tmp_path):
    path = tmp_path / "set.json"
    path.write_text("old")
    with pytest.raises(FileExistsError, match="overwrite=True") as caught:
        write_json(helpers.group(x=array), path)
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    write_json(helpers.group(x=array), path, overwrite=True)
    helpers.same_group(open_refs(path), helpers.group(x=array))
    assert litter(tmp_path) == ["set.json"]


def test_credentials_are_never_written(helpers, tmp_path):
    chunks = {(0,): VirtualChunk("https://ada:tops3cret@example.org/a.nc", ByteRange(0, 2))}
    array = VirtualArray(helpers.describe("uint8", GRID), Manifest.from_chunks((2,), chunks))
    with pytest.raises(NotRepresentableError, match="credentials") as caught:
        write_json(helpers.group(x=array), tmp_path / "set.json")
    assert "tops3cret" not in str(caught.value)
    assert litter(tmp_path) == []


def test_storage_options_are_never_written(helpers, array):
    write_json(helpers.group(x=array), "memory://secret/set.json", storage_options={"key": "tops3cret"})
    assert b"tops3cret" not in MemoryFileSystem.store["/secret/set.json"].getvalue()


def test_zarr_v2_refusals_list_every_array_and_the_way_out(helpers, array, tmp_path):
    ragged = VirtualArray(helpers.describe("uint8", RectilinearGrid((4,), ((1, 3),))), Manifest.missing((2,)))
    hdf5 = helpers.describe("uint8", GRID, codecs=[{"name": "virtualzarr_refs.hdf5", "configuration": {}}])
    group = VirtualGroup(
        arrays={"good": array, "ragged": ragged},
        groups={"g": VirtualGroup(arrays={"hdf5": VirtualArray(hdf5, Manifest.missing((2,)))})},
    )
    with pytest.raises(NotRepresentableError) as caught:
        write_json(group, tmp_path / "set.json", zarr_format=2)
    message = str(caught.value)
    assert "ragged: its chunks differ in length" in message
    assert "g/hdf5: its codec 'virtualzarr_refs.hdf5'" in message
    assert "zarr_format=3" in message
    assert "good" not in message
    assert litter(tmp_path) == []


def test_a_name_that_zarr_v2_takes_for_metadata(helpers, array, tmp_path):
    group = VirtualGroup(arrays={".zattrs": array})
    write_json(group, tmp_path / "set.json")
    helpers.same_group(open_refs(tmp_path / "set.json"), group)
    with pytest.raises(NotRepresentableError, match="metadata document"):
        write_json(group, tmp_path / "set2.json", zarr_format=2)


def test_a_chain_of_urls_is_not_written_to():
    with pytest.raises(UnsupportedError, match="chain"):
        write_json(VirtualGroup(), "simplecache::memory://x/set.json")


def test_filesystems_that_cannot_be_written_to(tmp_path):
    with pytest.raises(UnsupportedError, match="fsspec"):
        write_json(VirtualGroup(), "nosuch://host/set.json")
    with pytest.raises(OSError, match="No such file"):
        write_json(VirtualGroup(), tmp_path / "no" / "such" / "folder" / "set.json")


# ── the sidecar ──────────────────────────────────────────────────────────────────────────────────────────────────────


def values(group, path="x"):
    return zarr.open_group(group.to_store(), mode="r")[path][...].tobytes()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_large_inline_arrays_go_beside_the_set(helpers, tmp_path, zarr_format):
    group = helpers.group(x=inline(helpers, 60), y=inline(helpers, 50))
    path = tmp_path / "year.json"
    write_json(group, path, inline_threshold=100, zarr_format=zarr_format)
    (name,) = names(tmp_path / "year.data")
    assert (tmp_path / "year.data" / name).read_bytes() == b"a" * 60 + b"b" * 60
    document = json.loads(path.read_text())
    assert document["templates"] == {"vzrefs_sidecar": f"file://{tmp_path}/year.data"}
    key = "x/c/1" if zarr_format == 3 else "x/1"
    assert document["refs"][key] == [f"{{{{vzrefs_sidecar}}}}/{name}", 60, 60]
    opened = open_refs(path)
    assert opened.urls == (f"{tmp_path}/year.data/{name}",)
    assert values(opened) == b"a" * 60 + b"b" * 60
    assert values(opened, "y") == b"a" * 50 + b"b" * 50


def test_a_set_and_its_sidecar_move_together(helpers, tmp_path):
    (tmp_path / "here").mkdir()
    write_json(helpers.group(x=inline(helpers, 60)), tmp_path / "here" / "year.json", inline_threshold=0)
    (tmp_path / "here").rename(tmp_path / "there")
    assert values(open_refs(tmp_path / "there" / "year.json")) == b"a" * 60 + b"b" * 60


def test_a_set_is_replaced_with_its_sidecar(helpers, tmp_path):
    path = tmp_path / "year.json"
    write_json(helpers.group(x=inline(helpers, 60)), path, inline_threshold=0)
    (before,) = names(tmp_path / "year.data")
    write_json(helpers.group(x=inline(helpers, 61)), path, inline_threshold=0, overwrite=True)
    (after,) = names(tmp_path / "year.data")
    assert before != after
    assert values(open_refs(path)) == b"a" * 61 + b"b" * 61
    write_json(helpers.group(x=inline(helpers, 61)), path, overwrite=True)
    assert litter(tmp_path) == ["year.json"]


def test_a_set_that_is_opened_can_be_written_in_its_own_place(helpers, tmp_path):
    path = tmp_path / "year.json"
    write_json(helpers.group(x=inline(helpers, 60)), path, inline_threshold=0)
    write_json(open_refs(path), path, overwrite=True)
    assert json.loads(path.read_text())["templates"]
    assert values(open_refs(path)) == b"a" * 60 + b"b" * 60
    path.rename(tmp_path / "other.json")
    (tmp_path / "year.data").rename(tmp_path / "other.data")
    assert values(open_refs(tmp_path / "other.json")) == b"a" * 60 + b"b" * 60


def test_the_sidecar_belongs_to_the_set_whatever_is_allowed(helpers, tmp_path):
    path = tmp_path / "year.json"
    write_json(helpers.group(x=inline(helpers, 60)), path, inline_threshold=0)
    assert values(open_refs(path, allow="s3://bucket")) == b"a" * 60 + b"b" * 60
    path.write_text(path.read_text().replace("{{vzrefs_sidecar}}/", "{{vzrefs_sidecar}}/../"))
    with pytest.raises(ReferenceSetError, match="allow"):
        open_refs(path, allow=["s3://bucket"])


def test_files_of_others_in_the_folder_are_left_alone(helpers, tmp_path):
    path, folder = tmp_path / "year.json", tmp_path / "year.data"
    folder.mkdir()
    others = ["mine.nc", "notes", "x-" + "0" * 32 + ".chunks"]
    for name in others:
        (folder / name).write_text(name)
    write_json(helpers.group(x=inline(helpers, 60)), path, inline_threshold=0)
    write_json(helpers.group(x=inline(helpers, 2)), path, overwrite=True)
    assert names(folder) == others


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_odd_paths_make_plain_names(helpers, tmp_path, zarr_format):
    group = VirtualGroup(
        groups={"g ü": VirtualGroup(arrays={"{x}": inline(helpers, 9), "%%/"[:2]: inline(helpers, 8)})}
    )
    write_json(group, tmp_path / "a b{0}.json", inline_threshold=0, zarr_format=zarr_format)
    assert len(names(tmp_path / "a b{0}.data")) == 2
    assert all(name.isascii() and not set(name) & set("{}% /") for name in names(tmp_path / "a b{0}.data"))
    assert values(open_refs(tmp_path / "a b{0}.json"), "g ü/{x}") == b"a" * 9 + b"b" * 9


def test_double_braces_and_a_sidecar_do_not_go_together(helpers, tmp_path):
    chunks = {(0,): VirtualChunk("/data/{{a}}.nc", ByteRange(0, 2))}
    braces = VirtualArray(helpers.describe("uint8", GRID), Manifest.from_chunks((2,), chunks))
    group = helpers.group(x=braces, y=inline(helpers, 9))
    write_json(group, tmp_path / "set.json")
    helpers.same_group(open_refs(tmp_path / "set.json"), group)
    with pytest.raises(NotRepresentableError, match="inline_threshold"):
        write_json(group, tmp_path / "set.json", inline_threshold=0, overwrite=True)
    assert litter(tmp_path) == ["set.json"]


def test_partly_inline_arrays(helpers, array, tmp_path):
    write_json(helpers.group(x=array), tmp_path / "set.json", inline_threshold=0)
    manifest = open_refs(tmp_path / "set.json")["x"].manifest
    assert manifest.chunk((0,)) == array.manifest.chunk((0,))
    moved = manifest.chunk((1,))
    assert isinstance(moved, VirtualChunk)
    assert moved.byte_range == ByteRange(0, 2)


# ── whole or not at all ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace"])
@pytest.mark.parametrize("calls_before", [0, 1])
def test_a_failing_writer_leaves_the_old_set_and_no_litter(helpers, tmp_path, monkeypatch, step, calls_before):
    path = tmp_path / "year.json"
    write_json(helpers.group(x=inline(helpers, 60)), path, inline_threshold=0)
    before = {name: (tmp_path / name).read_bytes() for name in litter(tmp_path) if (tmp_path / name).is_file()}
    real, calls = {"os.fsync": os.fsync, "pathlib.Path.replace": Path.replace}[step], []

    def fail(*arguments):
        calls.append(step)
        if len(calls) > calls_before:
            raise OSError("the disk is full")
        return real(*arguments)

    group = helpers.group(x=inline(helpers, 70))
    monkeypatch.setattr(step, fail)
    with pytest.raises(OSError, match="the disk is full"):
        write_json(group, path, inline_threshold=0, overwrite=True)
    monkeypatch.undo()
    assert {name: (tmp_path / name).read_bytes() for name in litter(tmp_path) if (tmp_path / name).is_file()} == before
    assert values(open_refs(path)) == b"a" * 60 + b"b" * 60


def test_the_first_writer_that_fails_leaves_nothing(helpers, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_json(helpers.group(x=inline(helpers, 70)), tmp_path / "year.json", inline_threshold=0)
    assert litter(tmp_path) == []


def test_links_and_permissions_are_those_of_any_file(tmp_path):
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")
    write_json(VirtualGroup(), tmp_path / "link.json", overwrite=True)
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_text() != "old"
    (tmp_path / "plain").write_text("")
    write_json(VirtualGroup(), tmp_path / "set.json")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "set.json")}
    assert len(modes) == 1


# ── other filesystems ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def memory():
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    yield MemoryFileSystem.store
    MemoryFileSystem.store.clear()


def test_a_set_with_a_sidecar_in_memory(helpers, memory):
    url = "memory://sets/year.json"
    write_json(helpers.group(x=inline(helpers, 60)), url, inline_threshold=0)
    assert len(memory) == 2
    assert values(open_refs(url)) == b"a" * 60 + b"b" * 60
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_json(VirtualGroup(), url)
    write_json(VirtualGroup(), url, overwrite=True)
    assert list(memory) == ["/sets/year.json"]
    assert not open_refs(url).arrays


class Renaming(MemoryFileSystem):
    """A filesystem on which a half-written file can be seen, so that it is written under another name first."""

    protocol = "renaming"
    seen: list[str] = []  # noqa: RUF012  shared by the instances, as the files are

    def pipe_file(self, path, value, **options):
        self.seen.append(path)
        if b"fail" in value:
            raise PermissionError(13, "denied", path)
        super().pipe_file(path, value, **options)


@pytest.fixture
def renaming(memory):
    fsspec.register_implementation("renaming", Renaming, clobber=True)
    Renaming.seen.clear()
    return memory


def test_a_temporary_name_where_writing_is_not_whole_or_nothing(helpers, renaming):
    url = "renaming://sets/year.json"
    write_json(helpers.group(x=inline(helpers, 60)), url, inline_threshold=0)
    assert all(path.endswith(".tmp") for path in Renaming.seen)
    assert len(renaming) == 2
    write_json(helpers.group(x=inline(helpers, 2)), url, overwrite=True)
    assert list(renaming) == [url]


def test_a_failing_remote_writer(helpers, renaming):
    write_json(VirtualGroup(), "renaming://sets/year.json")
    before = dict(renaming)
    with pytest.raises(SourceError, match="denied"):
        write_json(
            helpers.group({"a": "fail"}, x=inline(helpers, 60)),
            "renaming://sets/year.json",
            inline_threshold=0,
            overwrite=True,
        )
    assert dict(renaming) == before


def test_a_filesystem_that_only_reads(renaming, monkeypatch):
    def refuse(*_, **__):
        raise NotImplementedError

    del renaming
    monkeypatch.setattr(Renaming, "pipe_file", refuse)
    with pytest.raises(UnsupportedError, match="cannot be written to"):
        write_json(VirtualGroup(), "renaming://sets/year.json")
