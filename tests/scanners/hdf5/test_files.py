"""Whole files: where they begin, what is missing of them, what else has them open, and what lies in other files."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

import virtualzarr_refs as vzr
from tests.scanners.hdf5.comparison import assert_equal, assert_reads_as_h5py, opened, reasons, scan, truth
from virtualzarr_refs.scanning import HEAD_LENGTHS

REPOSITORY = Path(__file__).parents[3]


def write(path: Path, **options: Any) -> Path:
    """One dataset of every layout, with attributes and a group."""
    with h5py.File(path, "w", **options) as file:
        file.attrs["title"] = "a file"
        file["group/contiguous"] = np.arange(12.0).reshape(3, 4)
        file["scalar"] = 3
        file["text"] = ["a", "bc"]
        file.create_dataset("chunked", data=np.arange(35).reshape(5, 7), chunks=(2, 3))
        file.create_dataset("gzip", data=np.arange(35).reshape(5, 7), chunks=(2, 3), compression="gzip", shuffle=True)
        file.create_dataset("checked", data=np.arange(35), chunks=(8,), fletcher32=True, maxshape=(None,))
        file.create_dataset("growing", data=np.arange(35).reshape(5, 7), chunks=(2, 3), maxshape=(5, None))
        properties = h5p.create(h5p.DATASET_CREATE)
        properties.set_layout(h5d.COMPACT)
        dataset = h5d.create(file.id, b"compact", h5t.STD_I16BE, h5s.create_simple((4,)), properties)
        h5py.Dataset(dataset)[...] = [1, 2, 3, 4]
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.h5"


# ── Where the file begins ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("libver", ["earliest", "v110", "latest"])
@pytest.mark.parametrize("length", [0, 512, 1024, 4096, 64 * 1024, 128 * 1024, HEAD_LENGTHS[-1] // 2])
def test_user_block(path, libver, length):
    write(path, libver=libver, userblock_size=length)
    assert_reads_as_h5py(path)


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_something_put_before_the_file(path, libver):
    """Its addresses still count from where the file began before."""
    write(path, libver=libver)
    path.write_bytes(bytes(2048) + path.read_bytes())
    assert_reads_as_h5py(path)


def test_something_put_behind_the_file(path):
    write(path)
    path.write_bytes(path.read_bytes() + bytes(1000))
    assert_reads_as_h5py(path)


# ── What is no HDF5 file ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scanner", [None, "hdf5"])
@pytest.mark.parametrize("content", [b"", b"text\n" * 100, b"\x89HDF\r\n\x1a\n", b"\x89HDF\r\n\x1a\n" + bytes(1000)])
def test_other_content(path, content, scanner):
    path.write_bytes(content)
    with pytest.raises(vzr.FormatError, match=r"x\.h5"):
        vzr.scan(path, scanner=scanner)


def test_folder(tmp_path):
    with pytest.raises(vzr.SourceError, match="regular file"):
        vzr.scan(tmp_path)


def test_no_file(path):
    with pytest.raises(vzr.SourceMissingError, match=r"x\.h5"):
        vzr.scan(path)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="everything may be read here")
def test_no_permission(path):
    write(path).chmod(0)
    with pytest.raises(vzr.SourceError, match=r"x\.h5"):
        vzr.scan(path)


# ── Damage ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_cut_short(path, libver):
    whole = write(path, libver=libver).read_bytes()
    for length in range(0, len(whole), len(whole) // 150):
        path.write_bytes(whole[:length])
        with pytest.raises(vzr.FormatError):
            vzr.scan(path)


def cut_without_a_word(path: Path, length: int) -> None:
    """Cut the file short, and have the end of file in its version 0 superblock agree."""
    data = bytearray(path.read_bytes()[:length])
    data[40:48] = length.to_bytes(8, "little")
    path.write_bytes(data)


def test_cut_short_without_a_word(path):
    """Wherever the end is: an error, something left out, or the values; but no other values."""
    whole = write(path, libver="earliest").read_bytes()
    expected = {name: array for name, array in read_all(path).items() if isinstance(array, np.ndarray)}
    for length in range(96, len(whole), len(whole) // 150):
        path.write_bytes(whole)
        cut_without_a_word(path, length)
        try:
            group = scan(path)
        except vzr.FormatError:
            continue
        root = opened(group)
        for name, _ in group.walk_arrays():
            assert_equal(root[name][...], expected[name])


def read_all(path: Path) -> dict[str, Any]:
    return {name: truth(path, name) for name, _ in scan(path).walk_arrays()}


@pytest.mark.parametrize("chunks", [None, (5,)], ids=["contiguous", "chunked"])
def test_values_beyond_the_end(path, chunks):
    with h5py.File(path, "w", libver="earliest") as file:
        dataset = file.create_dataset("x", data=np.arange(10), chunks=chunks)
        offset = dataset.id.get_offset() if chunks is None else dataset.id.get_chunk_info(1).byte_offset
        file["sound"] = 1
    data = path.read_bytes()
    # Before the address come version 3 and class 1 of the layout message, or the last of the chunk's offsets.
    before = b"\3\1" if chunks is None else bytes(8)
    old, new = (before + number.to_bytes(8, "little") for number in (offset, len(data) - 8))
    assert data.count(old) == 1
    path.write_bytes(data.replace(old, new))
    group = scan(path)
    assert list(group.arrays) == ["sound"]
    assert set(reasons(group)) == {"x"}
    with pytest.raises(vzr.FormatError, match="node x"):
        vzr.scan(path, strict=True)


FLIPS = """
import random, resource, sys, warnings
from pathlib import Path
import numpy as np
import virtualzarr_refs as vzr
from tests.scanners.hdf5.comparison import assert_equal, opened, scan, truth

resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
path, first, last = Path(sys.argv[1]), int(sys.argv[3]), int(sys.argv[4])
whole, damaged = path.read_bytes(), path.with_suffix(".damaged.h5")
for case in range(first, last):
    print(case, flush=True)
    rng = random.Random(case)
    data = bytearray(whole)
    for _ in range(rng.choice([1, 1, 3])):
        position = rng.randrange(len(data))
        data[position] = rng.choice([data[position] ^ 1 << rng.randrange(8), 0, 255])
    damaged.write_bytes(data)
    try:
        group = scan(damaged)
    except vzr.VirtualZarrError:
        continue
    root = opened(group)
    for name, array in group.walk_arrays():
        if np.prod(array.shape, dtype=float) > 1e5:
            continue
        try:
            expected = truth(damaged, name)
        except (KeyError, OSError, RuntimeError, ValueError, UnicodeError):
            continue
        # The B-trees of older files have no checksums, and libhdf5 may list chunks that it then does not find.
        if not (sys.argv[2] == "earliest" and array.metadata.encoding["layout"] == "chunked"):
            assert_equal(root[name][...], expected)
"""


@pytest.mark.parametrize("first", [0, 100])
@pytest.mark.parametrize("libver", ["earliest", "v110", "latest"])
def test_flipped_bytes(path, libver, first):
    """In a process of its own, so that a crash is seen: an error, something left out, or what h5py reads."""
    write(path, libver=libver)
    command = [sys.executable, "-c", FLIPS, str(path), libver, str(first), str(first + 100)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, timeout=300, check=False)  # noqa: S603
    assert done.returncode == 0, f"case {done.stdout.split()[-1:]}: {done.stderr[-2000:]}"


# ── Open elsewhere ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "options",
    [{"locking": True}, {"locking": False}, {"locking": "best-effort"}, {"driver": "core"}, {"swmr": True}],
    ids=str,
)
def test_open_in_this_process(path, options):
    write(path, libver="latest")
    with h5py.File(path, **options) as file:
        group = vzr.scan(path, strict=True)
        assert file["chunked"][0, 0] == 0
    assert opened(group)["chunked"][...].tolist() == np.arange(35).reshape(5, 7).tolist()


WRITER = """
import sys, h5py
with h5py.File(sys.argv[1], "r+") as file:
    file["x"] = 1
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_being_written_by_another_process(path, libver):
    write(path, libver=libver)
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:  # noqa: S603
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        with pytest.raises(vzr.FormatError, match="lock"):
            vzr.scan(path)
        writer.communicate("")
    assert_reads_as_h5py(path)


def test_threads(tmp_path):
    """libhdf5 knows one thread at a time; scanning and reading may still be asked for by many."""
    paths = [
        write(tmp_path / f"{number}.h5", libver=libver) for number, libver in enumerate(["earliest", "latest"] * 2)
    ]

    def check(path: Path) -> None:
        root = opened(vzr.scan(path, strict=True))
        for name in ("chunked", "gzip", "growing", "text", "compact"):
            root[name][...]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(check, paths * 8))


# ── Values in other files ────────────────────────────────────────────────────────────────────────────────────────────


def external(file: h5py.File, name: str, *pieces: tuple[str, int, int], type_: Any = h5t.STD_I32LE) -> None:
    properties = h5p.create(h5p.DATASET_CREATE)
    for piece, offset, size in pieces:
        properties.set_external(piece.encode(), offset, size)
    h5d.create(file.id, name.encode(), type_, h5s.create_simple((10,)), properties)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder to work in that is not the file's."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")


@pytest.mark.usefixtures("elsewhere")
def test_external_storage(tmp_path, path):
    (tmp_path / "a.bin").write_bytes(np.arange(20, dtype="<i4").tobytes())
    (tmp_path / "b.bin").write_bytes(np.arange(100, 120, dtype="<i4").tobytes())
    (tmp_path / "link.bin").symlink_to("a.bin")
    with h5py.File(path, "w") as file:
        external(file, "one", ("a.bin", 8, 40))
        external(file, "unlimited", ("a.bin", 8, h5s.UNLIMITED))
        external(file, "big-endian", ("a.bin", 0, 40), type_=h5t.STD_I32BE)
        external(file, "two", ("a.bin", 0, 20), ("b.bin", 4, 20))
        external(file, "absolute", (str(tmp_path / "b.bin"), 0, 40))
        external(file, "link", ("link.bin", 0, 40))
        external(file, "short", ("a.bin", 60, 40))
        external(file, "past", ("a.bin", 1000, 40))
        external(file, "text", ("a.bin", 0, 40), type_=h5py.h5t.py_create(np.dtype("S4")))
    group = assert_reads_as_h5py(path)
    assert group["one"].manifest.urls == (str(tmp_path / "a.bin"),)
    assert opened(group)["two"][...].tolist() == [0, 1, 2, 3, 4, 101, 102, 103, 104, 105]
    assert opened(group)["short"][...].tolist() == [15, 16, 17, 18, 19, 0, 0, 0, 0, 0]


@pytest.mark.usefixtures("elsewhere")
def test_external_storage_that_is_missing(tmp_path, path):
    (tmp_path / "a.bin").write_bytes(bytes(80))
    with h5py.File(path, "w") as file:
        external(file, "one", ("nowhere.bin", 0, 40))
        external(file, "two", ("a.bin", 0, 20), ("nowhere.bin", 0, 20))
        external(file, "folder", (".", 0, 40))
    group = scan(path)
    assert not group.arrays
    assert set(reasons(group)) == {"one", "two", "folder"}


def test_external_storage_where_the_environment_says(tmp_path, path):
    """libhdf5 asks for the variable once, when it starts."""
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "a.bin").write_bytes(np.arange(10, dtype="<i4").tobytes())
    (tmp_path / "a.bin").write_bytes(bytes(40))
    with h5py.File(path, "w") as file:
        external(file, "x", ("a.bin", 0, 40))
    code = (
        "import sys; from tests.scanners.hdf5.comparison import *; print(assert_reads_as_h5py(sys.argv[1])['x'].dtype)"
    )
    environment = {**os.environ, "HDF5_EXTFILE_PREFIX": str(tmp_path / "there")}
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, env=environment, cwd=REPOSITORY, capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.stdout, done.returncode) == ("int32\n", 0), done.stderr


def virtual(file: h5py.File, name: str, *sources: tuple[str, str], fill: Any = None) -> None:
    layout = h5py.VirtualLayout((len(sources), 4), "i8")
    for row, (other, dataset) in enumerate(sources):
        layout[row] = h5py.VirtualSource(other, dataset, (4,))
    file.create_virtual_dataset(name, layout, fillvalue=fill)


@pytest.mark.usefixtures("elsewhere")
def test_virtual_datasets(tmp_path, path):
    for number in range(3):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file["x"] = np.arange(4) + 10 * number
    with h5py.File(path, "w", libver="latest") as file:
        file["own"] = np.arange(4)
        virtual(file, "others", ("0.h5", "x"), ("1.h5", "x"), ("2.h5", "x"))
        virtual(file, "missing", ("0.h5", "x"), ("nowhere.h5", "x"), ("1.h5", "nothing"), fill=-3)
        virtual(file, "inside", (".", "own"), ("x.h5", "own"))
        numbered = h5p.create(h5p.DATASET_CREATE)
        space = h5s.create_simple((3, 4), (h5s.UNLIMITED, 4))
        space.select_hyperslab((0, 0), (h5s.UNLIMITED, 1), block=(1, 4))
        numbered.set_virtual(space, b"%b.h5", b"x", h5s.create_simple((4,)))
        h5d.create(file.id, b"numbered", h5t.NATIVE_INT64, space, numbered)
    root = opened(assert_reads_as_h5py(path))
    assert root["others"][...].tolist() == root["numbered"][...].tolist() == [
        [0, 1, 2, 3], [10, 11, 12, 13], [20, 21, 22, 23]
    ]  # fmt: skip
    assert root["missing"][...].tolist() == [[0, 1, 2, 3], [-3] * 4, [-3] * 4]


def test_virtual_datasets_that_lead_back_to_themselves(tmp_path, path):
    """libhdf5 follows them until its stack is full."""
    for name, other in (("a.h5", "b.h5"), ("b.h5", "a.h5")):
        with h5py.File(tmp_path / name, "w", libver="latest") as file:
            virtual(file, "x", (other, "x"))
    with h5py.File(path, "w", libver="latest") as file:
        virtual(file, "itself", (".", "itself"))
        virtual(file, "by name", ("x.h5", "by name"))
        virtual(file, "first", (".", "second"))
        virtual(file, "second", (".", "first"))
        virtual(file, "through others", ("a.h5", "x"))
        file["0"] = np.arange(4)
        for number in range(12):
            virtual(file, f"{number + 1}", (".", f"{number}"))
    group = scan(path)
    assert {"itself", "by name", "first", "second", "through others", "12"} <= reasons(group).keys()
    assert {"0", "1", "2"} <= group.arrays.keys()
