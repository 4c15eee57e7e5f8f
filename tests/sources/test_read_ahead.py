"""What scanners read of a remote file: the right bytes, few round trips, and no byte twice."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import SourceMissingError, SourceTruncatedError
from virtualzarr_refs.sources import SourceIdentity, open_source
from virtualzarr_refs.sources.read_ahead import MAX_AHEAD, SMALL_FILE, WINDOW, ReadAhead, read_ahead
from virtualzarr_refs.sources.remote import RemoteSource

MEGABYTE = 1024 * 1024
LARGE = np.random.default_rng(0).bytes(SMALL_FILE + 12 * MEGABYTE + 777)


class CountedSource(RemoteSource):
    """Bytes in memory; `trips` lists what was fetched together."""

    def __init__(self, data):
        super().__init__("counted://a")
        self.data = data
        self.trips: list[list[ByteRange]] = []

    def _fetch(self, spans):
        self.trips.append(list(spans))
        return [memoryview(self.data)[span.offset : span.stop] for span in spans]

    def _look(self):
        return SourceIdentity(len(self.data))

    def _look_and_fetch(self, length):
        return self._look(), self._fetch([ByteRange(0, min(length, len(self.data)))])[0]

    def _fetch_whole(self):
        raise NotImplementedError

    def _ignores_ranges(self, _):
        return False

    def _failures(self):
        return (OSError,)

    def _disconnect(self):
        pass

    @property
    def fetched(self):
        return sorted((span.offset, span.stop) for trip in self.trips for span in trip)


def opened(data):
    source = CountedSource(data)
    return source, ReadAhead(source)


def is_once(source):
    fetched = source.fetched
    return all(before[1] <= after[0] for before, after in pairwise(fetched))


@pytest.mark.parametrize("size", [0, 1, 8192, WINDOW - 1, WINDOW])
def test_a_tiny_file_comes_with_its_identity(size):
    source, ahead = opened(LARGE[:size])
    assert ahead.identity().size == size
    assert bytes(ahead.read([ByteRange(0, size)])[0]) == LARGE[:size]
    assert source.fetched == [(0, size)]


def test_the_rest_of_a_small_file_comes_with_the_second_round_trip():
    source, ahead = opened(LARGE[: 5 * MEGABYTE])
    ahead.read([ByteRange(3 * MEGABYTE, 10)])
    ahead.read([ByteRange(MEGABYTE - 5, 10), ByteRange(5 * MEGABYTE - 1, 1)])
    assert len(source.trips) == 2
    assert is_once(source)
    assert sum(stop - start for start, stop in source.fetched) == 5 * MEGABYTE


def test_pieces_that_lie_apart_are_fetched_at_once_and_alone():
    source, ahead = opened(LARGE)
    wanted = [ByteRange(MEGABYTE * i + 5, 100) for i in range(2, 18)]
    assert [bytes(view) for view in ahead.read(wanted)] == [LARGE[r.offset : r.stop] for r in wanted]
    assert [len(trip) for trip in source.trips] == [1, 16]
    assert all(span.length <= 2 * 8192 for span in source.trips[1])
    ahead.read(wanted)
    assert len(source.trips) == 2


def test_who_reads_on_is_served_ahead():
    source, ahead = opened(LARGE)
    for start in range(0, len(LARGE), 3000):
        piece = ByteRange(start, min(3000, len(LARGE) - start))
        assert ahead.read_on(piece) == LARGE[piece.offset : piece.stop]
    assert len(source.trips) <= 6
    assert is_once(source)
    assert all(sum(span.length for span in trip) <= MAX_AHEAD for trip in source.trips)


def test_who_jumps_about_is_not():
    source, ahead = opened(LARGE)
    for megabyte in (9, 3, 15):
        ahead.read_on(ByteRange(megabyte * MEGABYTE + 5, 10))
    assert [sum(span.length for span in trip) for trip in source.trips[1:]] == [WINDOW] * 3


def test_prefetching_stops_at_the_end():
    source, ahead = opened(LARGE)
    ahead.prefetch([ByteRange(len(LARGE) - 10, 4096), ByteRange(len(LARGE) + 5, 10), ByteRange(9 * MEGABYTE, 10)])
    assert len(source.trips) == 2
    assert bytes(ahead.read([ByteRange(len(LARGE) - 10, 10)])[0]) == LARGE[-10:]
    assert len(source.trips) == 2


def test_what_is_no_metadata_is_not_kept(monkeypatch):
    monkeypatch.setattr("virtualzarr_refs.sources.read_ahead.LARGEST_PIECE", 100_000)
    source, ahead = opened(LARGE)
    for _ in range(2):
        assert bytes(ahead.read([ByteRange(2 * MEGABYTE, 100_001)])[0]) == LARGE[2 * MEGABYTE :][:100_001]
    assert len(source.trips) == 3


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr("virtualzarr_refs.sources.read_ahead.MAX_KEPT", 2 * MEGABYTE)
    _, ahead = opened(LARGE)
    for megabyte in (0, 9, 4, 9, 0):
        start = megabyte * MEGABYTE
        assert ahead.read([ByteRange(start, MEGABYTE)])[0] == LARGE[start : start + MEGABYTE]
        assert len(ahead._pages) <= 256


@settings(max_examples=30)
@given(
    st.lists(
        st.lists(st.builds(ByteRange, st.integers(0, len(LARGE) - 70_000), st.integers(0, 70_000)), min_size=1),
        max_size=6,
    ),
    st.booleans(),
)
def test_reading_equals_slicing(reads, near):
    _, ahead = opened(LARGE)
    for wanted in reads:
        views = [ahead.read_on(r) for r in wanted] if near else ahead.read(wanted)
        assert [bytes(view) for view in views] == [LARGE[r.offset : r.stop] for r in wanted]


def test_many_threads():
    _, ahead = opened(LARGE)
    wanted = [ByteRange(start, 5000) for start in range(0, len(LARGE) - 5000, 333_333)]
    with ThreadPoolExecutor(8) as threads:
        views = threads.map(ahead.read_on, wanted)
        assert all(view == LARGE[r.offset : r.stop] for view, r in zip(views, wanted, strict=True))


def test_errors_are_those_of_the_source(server):
    server.files["/a"] = b"abc"
    ahead = read_ahead(open_source(f"{server.url}/a"))
    for act in (ahead.read, lambda ranges: [ahead.read_on(r) for r in ranges]):
        with pytest.raises(SourceTruncatedError):
            act([ByteRange(1, 3)])
    with pytest.raises(SourceMissingError):
        read_ahead(open_source(f"{server.url}/b")).identity()


def test_a_local_source_is_left_as_it_is(tmp_path):
    source = open_source(tmp_path / "a")
    assert read_ahead(source) is source


def test_reads_again_after_closing():
    source, ahead = opened(LARGE)
    ahead.identity()
    ahead.close()
    assert bytes(ahead.read([ByteRange(3, 4)])[0]) == LARGE[3:7]
    assert len(source.trips) == 2
