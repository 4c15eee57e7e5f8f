"""Extending a set, two writers, and writers that die: the set that was there stays whole."""

import os
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest
import zarr

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import RegularGrid
from virtualzarr_refs.errors import IncompatibleError, ReferenceSetError, SetLockedError
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.manifest import Manifest, VirtualChunk
from virtualzarr_refs.references import open_refs, write_json
from virtualzarr_refs.references.parquet.appending import append_parquet, extend_parquet
from virtualzarr_refs.references.parquet.lock import locked
from virtualzarr_refs.references.parquet.writer import write_parquet
from virtualzarr_refs.references.target import FsspecTarget, LocalTarget


def series(helpers, count, first="/0.nc"):
    """A variable of `count` files of one chunk each, and an inline coordinate that is encoded as a whole."""
    urls = [first, *(f"/{i}.nc" for i in range(1, count))]
    chunks = {(i,): VirtualChunk(url, ByteRange(i, 2)) for i, url in enumerate(urls)}
    values = VirtualArray(
        helpers.describe("uint8", RegularGrid((2 * count,), (2,))), Manifest.from_chunks((count,), chunks)
    )
    time = np.arange(count, dtype="u1").tobytes()
    coordinate = helpers.describe("uint8", RegularGrid((count,), (count,)))
    return helpers.group(x=values, time=VirtualArray(coordinate, Manifest.from_inline((1,), {0: time})))


def run(code):
    """The exit code of a process."""
    return subprocess.run([sys.executable, "-c", code], check=False).returncode  # noqa: S603  our own code


def contents(folder):
    return {str(p.relative_to(folder)): p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def path(helpers, tmp_path):
    write_parquet(series(helpers, 5), tmp_path / "set.parq", partition_size=2)
    return tmp_path / "set.parq"


def test_only_new_partitions_are_written(helpers, path):
    before, old = contents(path), open_refs(path)
    append_parquet(path, series(helpers, 8))
    after = contents(path)
    helpers.same_group(open_refs(path), series(helpers, 8))
    assert {name for name in before if before[name] == after.get(name)} == {"x/refs.0.parq", "x/refs.1.parq"}
    assert {"x/refs.2.parq", "x/refs.3.parq", "time/refs.0.1.parq"} <= after.keys()
    assert "time/refs.0.parq" not in after
    assert old["x"].manifest.chunk((4,)) == VirtualChunk("/4.nc", ByteRange(4, 2))  # a reader that has it open


def test_an_array_that_changed_is_written_anew(helpers, path):
    extend_parquet(path, lambda _: series(helpers, 6, first="/other.nc"))
    helpers.same_group(open_refs(path), series(helpers, 6, first="/other.nc"))
    assert sorted(p.name for p in (path / "x").iterdir()) == [f"refs.{i}.1.parq" for i in range(3)]


def test_what_somebody_else_appended_is_not_lost(helpers, path):
    mine = series(helpers, 6)
    append_parquet(path, series(helpers, 7))
    with pytest.raises(IncompatibleError, match=r"/6\.nc.*appended to in between"):
        append_parquet(path, mine)
    helpers.same_group(open_refs(path), series(helpers, 7))


def test_appending_to_nothing(helpers, tmp_path):
    with pytest.raises(ReferenceSetError, match="write_parquet"):
        append_parquet(tmp_path / "none.parq", series(helpers, 2))
    write_parquet(series(helpers, 2), tmp_path / "v2.parq", zarr_format=2)
    with pytest.raises(ReferenceSetError, match="our own Parquet format"):
        append_parquet(tmp_path / "v2.parq", series(helpers, 3))


# ── two writers ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_second_writer_is_refused(helpers, path):
    def extend(old):
        for write in (lambda: append_parquet(path, old), lambda: write_parquet(old, path, overwrite=True)):
            with pytest.raises(SetLockedError, match=rf"process {os.getpid()} on .* is writing"):
                write()
        return series(helpers, 6)

    extend_parquet(path, extend)
    helpers.same_group(open_refs(path), series(helpers, 6))
    append_parquet(path, series(helpers, 7))
    assert not (path / ".lock").exists()


def test_the_lock_of_a_process_that_died_is_in_nobodys_way(helpers, path):
    code = f"""
import os
from virtualzarr_refs.references.parquet.lock import locked
from virtualzarr_refs.references.target import LocalTarget
with locked(LocalTarget(), {str(path)!r}):
    os._exit(9)
"""
    assert run(code) == 9
    assert (path / ".lock").exists()
    append_parquet(path, series(helpers, 6))
    helpers.same_group(open_refs(path), series(helpers, 6))


def test_a_lock_elsewhere_is_a_file(helpers):
    target = FsspecTarget("memory://locks/set.parq", {})
    first, second = (locked(target, "memory://locks/set.parq") for _ in range(2))
    with first, pytest.raises(SetLockedError, match="died, remove the file"), second:
        pass
    assert not target.exists("memory://locks/set.parq/.lock")


# ── writers that die ─────────────────────────────────────────────────────────────────────────────────────────────────


class KilledError(BaseException):
    """The end of a process: nothing catches it, and nothing is cleaned up after it."""


def dying(monkeypatch, number):
    """Have the operation with this number, of those that change a disk, not happen, and none after it."""
    count = 0

    def counted(operation):
        def run(*args, **kwargs):
            nonlocal count
            count += 1
            if count > number:
                raise KilledError
            return operation(*args, **kwargs)

        return run

    for name in ("write", "make_folder", "remove", "create"):
        monkeypatch.setattr(LocalTarget, name, counted(getattr(LocalTarget, name)))
    monkeypatch.setattr("virtualzarr_refs.references.target.exchange", counted(None))


@pytest.mark.parametrize("way", ["append", "overwrite"])
def test_a_crash_at_any_moment_leaves_a_whole_set(helpers, path, monkeypatch, way):
    seen = set()
    for number in range(40):
        with monkeypatch.context() as patch:
            dying(patch, number)
            try:
                if way == "append":
                    append_parquet(path, series(helpers, 8))
                else:
                    write_parquet(series(helpers, 8), path, partition_size=2, overwrite=True)
                seen.add("finished")
            except KilledError:
                pass
        found = open_refs(path)["x"].manifest.size
        helpers.same_group(open_refs(path), series(helpers, found))
        seen.add(found)
        if found == 8:
            break
    assert {5, 8} <= seen
    append_parquet(path, series(helpers, 9))
    helpers.same_group(open_refs(path), series(helpers, 9))


def test_a_process_that_is_killed_leaves_the_old_set(helpers, path, tmp_path):
    code = f"""
import os
from virtualzarr_refs.references.target import LocalTarget
write, left = LocalTarget.write, [2]
def dies(self, url, data):
    left[0] -= 1
    os.kill(os.getpid(), 9) if left[0] < 0 else write(self, url, data)
LocalTarget.write = dies
from virtualzarr_refs import open_refs, write_parquet
write_parquet(open_refs({str(tmp_path / "new.parq")!r}), {str(path)!r}, overwrite=True)
"""
    write_parquet(series(helpers, 8), tmp_path / "new.parq", partition_size=2)
    assert run(code) == -9
    helpers.same_group(open_refs(path), series(helpers, 5))
    write_parquet(series(helpers, 8), path, overwrite=True)
    helpers.same_group(open_refs(path), series(helpers, 8))


def test_a_json_set_stays_whole_too(helpers, tmp_path, monkeypatch):
    path = tmp_path / "set.json"
    write_json(series(helpers, 5), path, inline_threshold=0)
    for number in range(3):
        with monkeypatch.context() as patch:
            dying(patch, number)
            with suppress(KilledError):
                write_json(series(helpers, 8), path, inline_threshold=0, overwrite=True)
        count = open_refs(path)["x"].manifest.size
        assert zarr.open_group(open_refs(path).to_store(), mode="r")["time"][...].tolist() == list(range(count))
