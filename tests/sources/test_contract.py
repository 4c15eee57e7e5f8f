"""What every source does, whoever reads."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import SourceChangedError, SourceMissingError, SourceTruncatedError

DATA = bytes(range(256)) * 40
RANGES = [ByteRange(5000, 100), ByteRange(0, 10), ByteRange(10, 10), ByteRange(5, 10), ByteRange(len(DATA) - 1, 1)]
byte_ranges = st.builds(ByteRange, st.integers(0, len(DATA) - 300), st.integers(0, 300))


def sliced(ranges, data=DATA):
    return [data[r.offset : r.stop] for r in ranges]


def test_reads_each_range_in_the_order_asked(place):
    views = place.holding(DATA).read(RANGES)
    assert [bytes(view) for view in views] == sliced(RANGES)
    assert all(isinstance(view, memoryview) and view.readonly and view.format == "B" for view in views)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(ranges=st.lists(byte_ranges, max_size=12), max_gap=st.integers(0, 2000), max_size=st.integers(1, 4000))
def test_reading_equals_slicing(place, ranges, max_gap, max_size):
    source = place.holding(DATA, max_gap=max_gap, max_size=max_size)
    assert [bytes(view) for view in source.read(ranges)] == sliced(ranges)


def test_nothing_asked_nothing_read(place):
    assert place.holding(DATA).read([]) == []


def test_identity(place):
    identity = place.holding(DATA).identity()
    assert identity.size == len(DATA)
    assert identity.etag is None or '"' not in identity.etag
    assert identity.last_modified is None or identity.last_modified > 1e9


def test_empty_file(place):
    source = place.holding(b"")
    assert source.identity().size == 0
    assert [bytes(view) for view in source.read([ByteRange(0, 0)])] == [b""]
    with pytest.raises(SourceTruncatedError):
        source.read([ByteRange(0, 1)])


def test_empty_ranges(place):
    source = place.holding(DATA)
    ranges = [ByteRange(7, 0), ByteRange(1, 2), ByteRange(len(DATA), 0)]
    assert [bytes(view) for view in source.read(ranges)] == sliced(ranges)
    with pytest.raises(SourceTruncatedError) as caught:
        source.read([ByteRange(len(DATA) + 1, 0)])
    assert caught.value.offset == len(DATA) + 1


@pytest.mark.parametrize("offset", [len(DATA) - 5, len(DATA), len(DATA) + 1000])
def test_no_range_reaches_past_the_end(place, offset):
    source = place.holding(DATA)
    with pytest.raises(SourceTruncatedError, match=f"has {len(DATA)} bytes") as caught:
        source.read([ByteRange(0, 10), ByteRange(offset, 10)])
    assert (caught.value.url, caught.value.offset) == (source.url, offset)


def test_missing_file(place):
    source = place.open("nowhere.bin")
    for act in (source.identity, lambda: source.read([ByteRange(0, 1)])):
        with pytest.raises(SourceMissingError) as caught:
            act()
        assert caught.value.url == source.url


def test_cut_short_under_our_feet(place):
    source = place.holding(DATA)
    source.identity()
    place.write("file.bin", DATA[:100])
    with pytest.raises(SourceChangedError, match="scan it again"):
        source.read([ByteRange(50, 100)])


def test_cut_short_before_the_first_look(place):
    source = place.holding(DATA)
    place.write("file.bin", DATA[:100])
    with pytest.raises(SourceTruncatedError):
        source.read([ByteRange(50, 100)])


def test_removed_under_our_feet(place):
    source = place.holding(DATA)
    source.read([ByteRange(0, 1)])
    place.remove("file.bin")
    with pytest.raises(SourceMissingError):
        source.read([ByteRange(0, 1)])


def test_buffers_outlive_the_source(place):
    source = place.holding(DATA)
    views = source.read(RANGES)
    source.close()
    source.close()
    assert [bytes(view) for view in views] == sliced(RANGES)


def test_reads_again_after_closing(place):
    source = place.holding(DATA)
    source.read(RANGES)
    source.close()
    assert [bytes(view) for view in source.read(RANGES)] == sliced(RANGES)


def test_survives_pickling(place):
    source = place.holding(DATA, max_gap=3)
    source.read(RANGES)
    copy = pickle.loads(pickle.dumps(source))
    assert [bytes(view) for view in copy.read(RANGES)] == sliced(RANGES)
    assert (copy.url, copy.identity()) == (source.url, source.identity())


def test_many_threads(place):
    source = place.holding(DATA, max_gap=0)
    jobs = [[ByteRange(start, 50), ByteRange(start + 200, 7)] for start in range(0, 6000, 60)]
    with ThreadPoolExecutor(8) as threads:
        results = threads.map(source.read, jobs)
    assert [[bytes(view) for view in views] for views in results] == [sliced(job) for job in jobs]
