import asyncio
import errno
import json
import pickle

import fsspec
import numpy as np
import pytest
import xarray as xr
import zarr
from dask.base import tokenize
from fsspec.core import url_to_fs

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import RegularGrid
from virtualzarr_refs.errors import ReferenceSetError, SourceError, SourceTruncatedError, UnsupportedError
from virtualzarr_refs.filesystem import VirtualFileSystem
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import Manifest, VirtualChunk
from virtualzarr_refs.metadata import ArrayMetadata, GroupMetadata
from virtualzarr_refs.references import write_json

VALUES = np.arange(40, dtype="u1")


def array_over(url, offset=0):
    chunks = {(i,): VirtualChunk(url, ByteRange(offset + 10 * i, 10)) for i in range(4) if i != 2}
    metadata = ArrayMetadata("uint8", RegularGrid((40,), (10,)), 9, ({"name": "bytes"},), dimension_names=("x",))
    return VirtualArray(metadata, Manifest.from_chunks((4,), chunks))


def group_over(url, offset=0):
    inner = VirtualGroup(arrays={"b [1]": array_over(url, offset)})
    return VirtualGroup(GroupMetadata({"title": "t"}), {"a": array_over(url, offset)}, {"in": inner})


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "source.bin"
    path.write_bytes(VALUES.tobytes())
    return path


@pytest.fixture
def group(path):
    return group_over(str(path))


@pytest.fixture
def fs(group):
    return fsspec.filesystem("vzrefs", group=group)


A = ["a/c/0", "a/c/1", "a/c/3", "a/zarr.json"]
B = [f"in/b [1]/{name}" for name in ("c/0", "c/1", "c/3", "zarr.json")]
FILES = sorted([*A, *B, "in/zarr.json", "zarr.json"])


# ── making one ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_is_registered(fs, group):
    assert isinstance(fs, VirtualFileSystem)
    assert fs.group is group
    assert fsspec.get_filesystem_class("vzrefs") is VirtualFileSystem


def test_urls(group):
    fs, path = url_to_fs("vzrefs://a/c/0", group=group)
    assert (fs.group, path) == (group, "a/c/0")
    with fsspec.open("vzrefs://a/c/1", group=group) as file:
        assert file.read() == VALUES[10:20].tobytes()


@pytest.mark.parametrize("arguments", [{}, {"refs": "a.json", "fo": "a.json"}, {"refs": "a", "group": VirtualGroup()}])
def test_one_of_group_and_refs(arguments):
    with pytest.raises(ValueError, match="give one of"):
        VirtualFileSystem(**arguments)


@pytest.fixture
def refs(group, tmp_path):
    write_json(group, tmp_path / "refs.json")
    return tmp_path / "refs.json"


def test_reference_sets(refs):
    document = json.loads(refs.read_text())
    for fs in (
        VirtualFileSystem(refs=refs),
        fsspec.filesystem("vzrefs", refs=str(refs)),
        fsspec.filesystem("vzrefs", fo=str(refs), remote_options={"anon": True}, target_options={}),
        fsspec.filesystem("vzrefs", fo=document),
        url_to_fs(f"vzrefs::{refs}")[0],
        pickle.loads(pickle.dumps(VirtualFileSystem(refs=refs))),
    ):
        assert fs.cat("a/c/0") == VALUES[:10].tobytes()
        assert fs.find("") == FILES
    np.testing.assert_array_equal(zarr.open_group(f"vzrefs::{refs}", mode="r")["a"][:10], VALUES[:10])


def test_reference_sets_on_other_filesystems():
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/vzrefs-set/f", VALUES.tobytes())
    write_json(group_over("memory://vzrefs-set/f"), "memory://vzrefs-set/refs.json")
    try:
        with fsspec.open("vzrefs://a/c/0::memory://vzrefs-set/refs.json") as file:
            assert file.read() == VALUES[:10].tobytes()
        fs = VirtualFileSystem(fo="/vzrefs-set/refs.json", target_protocol="memory")
        assert fs.cat("a/c/1") == VALUES[10:20].tobytes()
    finally:
        memory.rm("/vzrefs-set", recursive=True)


def test_where_references_may_point(refs):
    with pytest.raises(ReferenceSetError):
        VirtualFileSystem(refs=refs, allow=["s3://elsewhere/"])


def test_every_group_has_its_own(path):
    """fsspec finds instances again by the text of the arguments, which is the same for both groups."""
    first, second = (VirtualFileSystem(group_over(str(path), offset)) for offset in (0, 5))
    assert first.cat("a/c/0") != second.cat("a/c/0")
    assert first != second
    assert tokenize(first) != tokenize(second)
    assert first == VirtualFileSystem(group_over(str(path)))
    assert hash(first) == hash(VirtualFileSystem(group_over(str(path))))
    assert first != VirtualFileSystem(group_over(str(path)), remote_options={"anon": True})


def test_pickles(fs):
    twin = pickle.loads(pickle.dumps(fs))
    assert twin.cat("a/c/0") == fs.cat("a/c/0")
    assert twin.find("") == fs.find("")
    assert twin.get_mapper()["a/c/0"] == fs.cat("a/c/0")


def test_options_of_sources(path, group):
    assert VirtualFileSystem(group_over(path.name), base=str(path.parent)).cat("a/c/0") == VALUES[:10].tobytes()
    assert VirtualFileSystem(group, backend="fsspec", max_gap=0, max_size=10).cat("a/c/0") == VALUES[:10].tobytes()
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/vzrefs-fs/f", VALUES.tobytes())
    try:
        assert VirtualFileSystem(group_over("memory://vzrefs-fs/f"), remote_options={}).cat("a/c/3") == bytes(
            VALUES[30:]
        )
    finally:
        memory.rm("/vzrefs-fs", recursive=True)


def test_options_of_sources_have_two_names(group):
    for name in ("remote_options", "storage_options"):
        fs = VirtualFileSystem(group, **{name: {"anon": True}})
        assert fs._reader.options.storage_options == {"anon": True}


def test_no_secret_is_shown(group):
    fs = VirtualFileSystem(group, remote_options={"password": "secret"})
    assert "secret" not in repr(fs)
    assert "secret" not in repr(fs.get_mapper())


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("start", "end"), [(None, None), (2, 5), (-3, None), (None, -3), (-5, -2), (3, 99), (9, 2), (-99, 3)]
)
def test_ranges_are_slices(fs, start, end):
    assert fs.cat_file("a/c/1", start, end) == VALUES[10:20].tobytes()[start:end]


@pytest.mark.parametrize("spelling", ["vzrefs://a/c/0", "/a/c/0", "a/c/0/", "vzrefs:///a/c/0"])
def test_spellings_of_a_path(fs, spelling):
    assert fs.cat(spelling) == VALUES[:10].tobytes()
    assert fs.info(spelling)["name"] == "a/c/0"


def test_many_files(fs):
    assert fs.cat(["a/c/0", "a/c/1"]) == {"a/c/0": bytes(VALUES[:10]), "a/c/1": bytes(VALUES[10:20])}
    assert sorted(fs.cat("a/c/*")) == A[:3]
    assert sorted(fs.cat("in", recursive=True, on_error="omit")) == sorted([*B, "in/zarr.json"])


def test_names_with_the_characters_of_patterns(fs):
    assert fs.cat("in/b [1]/c/0") == VALUES[:10].tobytes()
    assert fs.cat(["in/b [1]/c/0", "in/b [1]/c/1"])["in/b [1]/c/1"] == VALUES[10:20].tobytes()
    assert fs.get_mapper("in/b [1]")["c/0"] == VALUES[:10].tobytes()
    assert fs.get_mapper().getitems(B)[B[0]] == VALUES[:10].tobytes()


def test_many_ranges(fs):
    paths = ["a/c/0", "a/c/2", "a/c/3", "a"]
    first, absent, last, folder = fs.cat_ranges(paths, [1, 0, -3, 0], [4, 5, None, 1])
    assert (first, last) == (VALUES[1:4].tobytes(), VALUES[37:].tobytes())
    assert isinstance(absent, FileNotFoundError)
    assert isinstance(folder, IsADirectoryError)
    with pytest.raises(FileNotFoundError) as caught:
        fs.cat_ranges(paths, 0, 5, on_error="raise")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, "a/c/2")


def test_many_ranges_of_a_source_that_was_cut_short(group, path):
    path.write_bytes(VALUES[:35].tobytes())
    for options in ({}, {"backend": "fsspec"}):
        fs = VirtualFileSystem(group, **options)
        whole, cut = fs.cat_ranges(["a/c/1", "a/c/3"], [0, 0], [None, None])
        assert whole == VALUES[10:20].tobytes()
        assert isinstance(cut, SourceTruncatedError)


@pytest.mark.parametrize("on_error", ["raise", "return"])
def test_a_missing_source_is_no_missing_file(fs, path, on_error):
    path.unlink()
    if on_error == "raise":
        with pytest.raises(SourceError) as caught:
            fs.cat(["a/c/0"])
        error = caught.value
    else:
        error = fs.cat(["a/c/0"], on_error="return")["a/c/0"]
    assert isinstance(error, SourceError)
    assert not isinstance(error, FileNotFoundError)
    with pytest.raises(SourceError):
        fs.get_mapper()["a/c/0"]


def test_files_that_are_opened(fs):
    with fs.open("a/c/1") as file:
        assert (file.size, file.readable(), file.seekable(), file.writable()) == (10, True, True, False)
        assert file.read(3) == VALUES[10:13].tobytes()
        file.seek(-2, 2)
        assert (file.tell(), file.read()) == (8, VALUES[18:20].tobytes())
        file.seek(0)
        assert file.read() == VALUES[10:20].tobytes()
    with fs.open("zarr.json", "r") as file:
        assert json.load(file)["attributes"] == {"title": "t"}
    for absent, error in (("a/c/2", FileNotFoundError), ("a", IsADirectoryError)):
        with pytest.raises(error):
            fs.open(absent)


def test_downloads(fs, tmp_path):
    fs.get("a/c/0", str(tmp_path / "chunk"))
    assert (tmp_path / "chunk").read_bytes() == VALUES[:10].tobytes()
    fs.get("in", str(tmp_path / "copy"), recursive=True)
    assert (tmp_path / "copy/b [1]/c/3").read_bytes() == VALUES[30:].tobytes()
    assert json.loads((tmp_path / "copy/zarr.json").read_text())["node_type"] == "group"


def test_asynchronous_use(group):
    async def read():
        fs = VirtualFileSystem(group, asynchronous=True, backend="fsspec")
        with fs.open("a/c/3") as file:
            opened = file.read()
        return opened, await fs._cat_ranges(["a/c/0", "a/c/1"], [0, 0], [2, 2]), await fs._ls("a", detail=False)

    opened, ranges, listed = asyncio.run(read())
    assert opened == VALUES[30:].tobytes()
    assert ranges == [VALUES[:2].tobytes(), VALUES[10:12].tobytes()]
    assert listed == ["a/zarr.json", "a/c"]


# ── listing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_folders(fs):
    assert fs.ls("", detail=False) == ["zarr.json", "a", "in"]
    assert fs.ls("a/c") == [{"name": name, "size": 10, "type": "file"} for name in A[:3]]
    assert fs.ls("in")[1] == {"name": "in/b [1]", "size": 0, "type": "directory"}
    assert fs.ls("a/c/0", detail=False) == ["a/c/0"]
    for absent in ("a/c/2", "nowhere"):
        with pytest.raises(FileNotFoundError):
            fs.ls(absent)


def test_what_is_at_a_path(fs):
    assert fs.info("a/c/0") == {"name": "a/c/0", "size": 10, "type": "file"}
    assert fs.info("") == {"name": "", "size": 0, "type": "directory"}
    assert fs.info("a/c")["type"] == "directory"
    assert fs.size("a/zarr.json") == len(fs.cat("a/zarr.json"))
    assert [fs.exists(p) for p in ("a/c/0", "a/c", "", "a/c/2")] == [True, True, True, False]
    assert [fs.isfile(p) for p in ("a/c/0", "a/c", "", "a/c/2")] == [True, False, False, False]
    assert [fs.isdir(p) for p in ("a/c/0", "a/c", "", "a/c/2")] == [False, True, True, False]
    with pytest.raises(FileNotFoundError):
        fs.info("a/c/2")


def test_finding(fs):
    assert fs.find("") == FILES
    assert fs.find("a") == A
    assert fs.find("a/c/0") == ["a/c/0"]
    assert fs.find("nowhere") == []
    assert fs.find("a", maxdepth=1) == ["a/zarr.json"]
    assert fs.find("a", withdirs=True) == ["a", "a/c", *A]
    assert fs.find("a", detail=True)["a/c/1"] == {"name": "a/c/1", "size": 10, "type": "file"}
    assert [folder for folder, _, _ in fs.walk("")] == ["", "a", "a/c", "in", "in/b [1]", "in/b [1]/c"]
    assert fs.du("a/c") == 30


def test_patterns(fs):
    assert fs.glob("a/c/*") == A[:3]
    assert fs.glob("**/zarr.json") == ["a/zarr.json", "in/b [1]/zarr.json", "in/zarr.json", "zarr.json"]
    assert fs.glob("a/c/[13]") == A[1:3]
    assert fs.glob("x*") == []


# ── writing, which is refused ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "write",
    [
        lambda fs, _: fs.pipe_file("a/c/0", b"x"),
        lambda fs, _: fs.pipe({"a/c/9": b"x"}),
        lambda fs, path: fs.put_file(str(path), "a/c/0"),
        lambda fs, _: fs.cp_file("a/c/0", "a/c/2"),
        lambda fs, _: fs.rm("a/c/0"),
        lambda fs, _: fs.rm_file("a/c/0"),
        lambda fs, _: fs.open("a/c/0", "wb"),
        lambda fs, _: fs.get_mapper().update({"a/c/0": b"x"}),
    ],
)
def test_writing_is_refused(fs, path, write):
    with pytest.raises(UnsupportedError, match="cannot be written"):
        write(fs, path)
    assert fs.cat("a/c/0") == VALUES[:10].tobytes()


# ── as users of zarr and xarray have it ──────────────────────────────────────────────────────────────────────────────


def test_zarr_opens_the_url(group):
    opened = zarr.open_group("vzrefs://", mode="r", storage_options={"group": group})
    np.testing.assert_array_equal(opened["a"][30:], VALUES[30:])
    assert opened["a"][25] == 9


def test_zarr_opens_a_folder_of_it(fs):
    np.testing.assert_array_equal(zarr.open_array(fs.get_mapper("in/b [1]"), mode="r")[:20], VALUES[:20])


def test_xarray_opens_the_mapper(fs):
    dataset = xr.open_dataset(fs.get_mapper(), engine="zarr", consolidated=False, chunks={})
    assert dataset.attrs == {"title": "t"}
    assert dataset.a.chunks == ((10, 10, 10, 10),)
    np.testing.assert_array_equal(dataset.a[:20].compute(scheduler="threads"), VALUES[:20])
