"""A manifest in partitions does what the same manifest in memory does, and loads only what it is asked for."""

from dataclasses import dataclass, field
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.manifest import InlineChunk, Manifest, VirtualChunk
from virtualzarr_refs.partitioned_manifest import PartitionedManifest, runs_of

chunks = st.none() | st.binary(max_size=3).map(InlineChunk) | st.builds(
    VirtualChunk, st.sampled_from("abc"), st.builds(ByteRange, st.integers(0, 2**62), st.integers(0, 2**40))
)  # fmt: skip


@dataclass
class InMemory:
    """Partitions that note which of them were loaded."""

    whole: Manifest
    size: int
    loads: list[int] = field(default_factory=list)

    @property
    def urls(self):
        return self.whole.urls

    @property
    def count(self):
        return None

    def load(self, number, size):
        self.loads.append(number)
        block = dict(self.whole.blocks(self.size))[number * self.size]
        assert block.size == size
        return block


def cut(manifest, size):
    runs = runs_of(start // size for start, _ in manifest.blocks(size))
    return PartitionedManifest(
        manifest.grid_shape, size, InMemory(manifest, size), runs, manifest.has_variants, manifest.has_inline
    )


@st.composite
def manifests(draw):
    grid_shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    manifest = Manifest.from_chunks(grid_shape, {i: draw(chunks) for i in product(*map(range, grid_shape))})
    if not draw(st.booleans()):
        return manifest
    variant = np.arange(prod(grid_shape), dtype=np.uint16).reshape(grid_shape) % 3
    return Manifest(manifest.urls, manifest.url_id, manifest.offset, manifest.length, variant, manifest.inline)


@settings(max_examples=50)
@given(manifests(), st.integers(1, 9), st.integers(1, 9), st.randoms())
def test_it_does_what_a_manifest_does(whole, size, other_size, random):
    manifest = cut(whole, size)
    assert (manifest.size, manifest.count, manifest.nbytes) == (whole.size, whole.count, whole.nbytes)
    assert (manifest.is_missing, manifest.is_full) == (whole.is_missing, whole.is_full)
    for index in np.ndindex(whole.grid_shape):
        assert manifest.chunk(index) == whole.chunk(index)
        if whole.has_variants and whole.chunk(index) is not None:
            assert manifest.variant_of(index) == whole.variant_of(index)
    assert list(manifest.indexes()) == list(whole.indexes())
    for rank in range(len(whole.grid_shape) if whole.size else 0):
        prefix = tuple(random.randrange(n) for n in whole.grid_shape[:rank])
        assert list(manifest.indexes(prefix)) == list(whole.indexes(prefix))
        assert manifest.next_numbers(prefix).tolist() == whole.next_numbers(prefix).tolist()
    assert same(manifest.loaded(), whole)
    positions = np.array(random.sample(range(whole.size), whole.size), np.intp)
    assert same(manifest.take(positions), whole.take(positions))
    found, expected = dict(manifest.blocks(other_size)), dict(whole.blocks(other_size))
    assert found.keys() == expected.keys()
    assert all(same(found[start], block) for start, block in expected.items())


def same(one, other):
    """Variants of missing chunks say nothing."""
    return one.equals(other)


def test_only_what_is_asked_for_is_loaded():
    whole = Manifest(("a",), np.zeros(100, np.uint32), np.arange(100, dtype=np.uint64), np.ones(100, np.uint64))
    manifest = cut(whole, 10)
    assert manifest.chunk((55,)) == VirtualChunk("a", ByteRange(55, 1))
    assert manifest.take(np.array([56, 12])).offset.tolist() == [56, 12]
    assert set(manifest.partitions.loads) == {5, 1}


@pytest.mark.parametrize("index", [(100,), (-1,), (1, 1), ()])
def test_an_index_outside_of_the_grid(index):
    manifest = cut(Manifest.from_inline((100,), {3: b"x"}), 10)
    with pytest.raises(IndexError, match="no chunk index"):
        manifest.chunk(index)


def test_a_grid_of_any_size():
    manifest = PartitionedManifest((10**6, 10**9), 2**16, InMemory(Manifest.missing((1,)), 1), ())
    assert manifest.chunk((10**6 - 1, 10**9 - 1)) is None
    assert manifest.is_missing
    assert manifest.next_numbers().size == 0
    assert list(manifest.blocks(100)) == []
    assert manifest.loaded().grid_shape == (10**6, 10**9)
    with_chunks = PartitionedManifest((10**6, 10**9), 2**16, InMemory(Manifest.missing((1,)), 1), ((0, 1),))
    with pytest.raises(UnsupportedError, match="too large for memory"):
        with_chunks.loaded()


def test_urls_are_renamed_when_they_are_loaded():
    manifest = cut(Manifest.from_chunks((2,), {(1,): VirtualChunk("a", ByteRange(0, 1))}), 1).rename_urls("b/".__add__)
    assert manifest.partitions.partitions.loads == []
    assert manifest.urls == ("b/a",)
    assert manifest.chunk((1,)).url == "b/a"


@pytest.mark.parametrize("runs", [((1, 3),), ((0, 1), (1, 2)), ((1, 1),), ((1, 2), (0, 1))])
def test_partitions_that_cannot_be(runs):
    with pytest.raises(ValueError, match="outside its grid, or are out of order"):
        PartitionedManifest((20,), 10, InMemory(Manifest.missing((20,)), 10), runs)


def test_ranges_of_numbers():
    assert runs_of([]) == ()
    assert runs_of([1, 2, 3, 7, 9, 10]) == ((1, 4), (7, 8), (9, 11))
