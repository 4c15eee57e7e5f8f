import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from virtualzarr_refs.byte_range import MAX_GAP, MAX_SIZE, Batch, ByteRange, coalesce

byte_ranges = st.builds(ByteRange, st.integers(0, 10_000), st.integers(0, 500))
limits = st.tuples(st.integers(0, 1000), st.integers(0, 3000))


@pytest.mark.parametrize(("offset", "length"), [(-1, 4), (4, -1), (-1, -1)])
def test_cannot_be_negative(offset, length):
    with pytest.raises(ValueError, match=f"offset {offset}, length {length}"):
        ByteRange(offset, length)


def test_is_a_frozen_value():
    assert ByteRange(3, 4) == ByteRange(3, 4)
    assert len({ByteRange(3, 4), ByteRange(3, 4)}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        ByteRange(3, 4).offset = 5
    assert ByteRange(3, 4).stop == 7


@given(st.binary(max_size=50), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60))
def test_slice_is_the_slice_of_the_bytes(data, offset, length, start, stop):
    offset = min(offset, len(data))
    whole = ByteRange(offset, min(length, len(data) - offset))
    part = whole.slice(start, stop)
    assert data[part.offset : part.stop] == data[whole.offset : whole.stop][start:stop]
    assert whole.offset <= part.offset <= part.stop <= whole.stop


def test_coalesce_nothing():
    assert coalesce([]) == []


def test_neighbours_become_one_batch():
    ranges = [ByteRange(50, 10), ByteRange(0, 10), ByteRange(15, 5)]
    assert coalesce(ranges, max_gap=5) == [Batch(ByteRange(0, 20), (1, 2)), Batch(ByteRange(50, 10), (0,))]
    assert coalesce(ranges, max_gap=30) == [Batch(ByteRange(0, 60), (1, 2, 0))]
    assert coalesce(ranges, max_gap=30, max_size=59) == coalesce(ranges, max_gap=5)


def test_a_long_range_stays_whole():
    assert coalesce([ByteRange(0, 100), ByteRange(100, 1)], max_size=10) == [
        Batch(ByteRange(0, 100), (0,)),
        Batch(ByteRange(100, 1), (1,)),
    ]


def test_default_limits():
    assert len(coalesce([ByteRange(0, 1), ByteRange(1 + MAX_GAP, 1)])) == 1
    assert len(coalesce([ByteRange(0, 1), ByteRange(2 + MAX_GAP, 1)])) == 2
    assert len(coalesce([ByteRange(0, MAX_SIZE - 1), ByteRange(MAX_SIZE - 1, 1)])) == 1
    assert len(coalesce([ByteRange(0, MAX_SIZE), ByteRange(MAX_SIZE, 1)])) == 2


@given(st.lists(byte_ranges, max_size=40), limits)
def test_every_range_is_in_exactly_one_batch(ranges, limits):
    batches = coalesce(ranges, *limits)
    assert sorted(i for batch in batches for i in batch.members) == list(range(len(ranges)))
    for batch in batches:
        for i in batch.members:
            assert batch.span.offset <= ranges[i].offset
            assert ranges[i].stop <= batch.span.stop


@given(st.lists(byte_ranges, max_size=40), limits)
def test_batches_are_tight_ordered_and_within_the_limits(ranges, limits):
    max_gap, max_size = limits
    batches = coalesce(ranges, max_gap, max_size)
    assert [batch.span.offset for batch in batches] == sorted(batch.span.offset for batch in batches)
    for batch in batches:
        members = [ranges[i] for i in batch.members]
        assert batch.span.offset == min(member.offset for member in members)
        assert batch.span.stop == max(member.stop for member in members)
        assert batch.span.length <= max_size or len({m for m in members if m.length}) <= 1 or overlap(members)
        reached = members[0].stop
        for member in members[1:]:
            assert member.offset - reached <= max_gap
            reached = max(reached, member.stop)


def overlap(members):
    """A range longer than the limit may take along those that lie inside of it."""
    longest = max(members, key=lambda member: member.length)
    return all(longest.offset <= member.offset and member.stop <= longest.stop for member in members)
