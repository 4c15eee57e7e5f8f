from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import SourceMissingError, SourceTruncatedError
from virtualzarr_refs.manifest import VirtualChunk
from virtualzarr_refs.sources import SourcePool
from virtualzarr_refs.value import StoredValue, read_values

DATA = {"a": bytes(range(100)), "b": bytes(range(150, 250))}
positions = st.none() | st.integers(-40, 40)
parts = st.lists(
    st.binary(max_size=5)
    | st.builds(VirtualChunk, st.sampled_from("ab"), st.builds(ByteRange, st.integers(0, 80), st.integers(0, 20))),
    max_size=4,
)


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    for name, data in DATA.items():
        (folder / name).write_bytes(data)
    with SourcePool(folder) as opened:
        yield opened


def content(value):
    return b"".join(p if isinstance(p, bytes) else DATA[p.url][p.byte_range.offset : p.byte_range.stop] for p in value)


@given(parts)
def test_the_length_is_known(value):
    assert StoredValue(tuple(value)).length == len(content(value))


@given(st.lists(parts, max_size=4))
def test_values_are_the_concatenation_of_their_parts(pool, values):
    read = read_values([StoredValue(tuple(value)) for value in values], pool)
    assert [bytes(data) for data in read] == [content(value) for value in values]


@given(parts, positions, positions)
def test_slices_are_those_of_the_bytes(pool, value, start, stop):
    part = StoredValue(tuple(value)).slice(start or 0, stop)
    expected = content(value)[start or 0 : stop]
    assert part.length == len(expected)
    assert bytes(read_values([part], pool)[0]) == expected


def test_each_source_is_read_once(pool):
    values = [StoredValue((VirtualChunk(url, ByteRange(i, 5)),)) for i in range(10) for url in "ab"]
    with patch.object(pool, "read", wraps=pool.read) as read:
        read_values([*values, *values], pool)
    assert [(call.args[0], len(call.args[1])) for call in read.call_args_list] == [("a", 10), ("b", 10)]


def test_one_part_is_not_copied(pool):
    (data,) = read_values([StoredValue((VirtualChunk("a", ByteRange(3, 7)),))], pool)
    assert isinstance(data, memoryview)
    inline = b"inline"
    assert read_values([StoredValue((inline,))], pool)[0] is inline


def test_sources_that_are_missing_or_short(pool):
    with pytest.raises(SourceMissingError):
        read_values([StoredValue((VirtualChunk("absent", ByteRange(0, 1)),))], pool)
    with pytest.raises(SourceTruncatedError):
        read_values([StoredValue((VirtualChunk("a", ByteRange(99, 2)),))], pool)
