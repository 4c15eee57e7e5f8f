"""What of a file becomes a shard of the copy, what is copied to files of its own, and what is left out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from virtualzarr_refs.embedding.tail import Index
from virtualzarr_refs.errors import NodeNotFoundError, UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.metadata import Skipped
from virtualzarr_refs.sharding import IndexLocation, ShardCodec
from virtualzarr_refs.shards.conversion import ShardPlan, plan_shards

MAX_COPIED = 64 * 1024
"""Bytes of an array in one chunk up to which a copy of the chunk is simpler than an index."""

COPY_LIMIT = 256 * 1024 * 1024
"""Bytes beyond which an array that is no shard is left out."""


@dataclass(frozen=True, slots=True)
class Shard:
    """An array whose shard is the copy.

    Parameters
    ----------
    plan : ShardPlan
        Its file is the only source.
    index : Index
        Of its chunks, at their places in the copy.
    """

    plan: ShardPlan
    index: Index

    @classmethod
    def of(cls, plan: ShardPlan, shift: int) -> Self:
        """The shard of an array, each of whose chunks lies `shift` bytes further in the copy than in its source."""
        array = plan.array()
        (inner,) = array.manifest.loaded().inner_chunks.values()
        shape = ShardCodec.of(array.metadata).inner_grid(
            array.metadata.chunk_grid.encoded_shape((0,) * len(array.shape))
        )
        return cls(plan, Index(inner.moved(shift).to_bytes(), shape))

    def array(self, location: IndexLocation, spare: int) -> VirtualArray:
        """The array as the hierarchy has it, with so many rows of inner chunks that are not there."""
        return self.plan.array(location, spare=(spare, *(0,) * (len(self.plan.chunk_shape) - 1)))


@dataclass(frozen=True, slots=True)
class EmbeddingPlan:
    """What becomes of the arrays of a file.

    Parameters
    ----------
    shards : mapping of str to ShardPlan
        By path.
    copied : tuple of str
        Paths of arrays whose chunks are copied.
    left_out : tuple of Skipped
        Arrays that are neither.
    """

    shards: Mapping[str, ShardPlan]
    copied: tuple[str, ...]
    left_out: tuple[Skipped, ...]

    @classmethod
    def of(cls, group: VirtualGroup, url: str) -> Self:
        """Decide for every array of a file."""
        shards: dict[str, ShardPlan] = {}
        copied: list[str] = []
        left_out: list[Skipped] = []
        for path, array in group.walk_arrays():
            plan, reason = _plan(array, url)
            if plan is not None:
                shards[path] = plan
            elif array.manifest.nbytes <= COPY_LIMIT:
                copied.append(path)
            else:
                left_out.append(Skipped(path, f"too large to be copied, and no shard: {reason}; scan the file instead"))
        return cls(shards, tuple(copied), tuple(left_out))

    def only(self, variable: str | None) -> Self:
        """The same with one shard, which has to be named if there are several.

        Raises
        ------
        UnsupportedError
            If it is not named, or there is none.
        NodeNotFoundError
            If none has the name.
        """
        if variable is None and len(self.shards) != 1:
            names = ", ".join(self.shards) or "there is none"
            raise UnsupportedError(f"a user block has room for the index of one array; name it ({names})")
        name = variable or next(iter(self.shards))
        if name not in self.shards:
            raise NodeNotFoundError(f"no such array can be a shard; these can: {', '.join(self.shards)}", node=name)
        reason = f"the user block has the index of {name}"
        others = tuple(Skipped(path, reason) for path in self.shards if path != name)
        return replace(self, shards={name: self.shards[name]}, left_out=(*self.left_out, *others))


def _plan(array: VirtualArray, url: str) -> tuple[ShardPlan | None, str]:
    """How an array becomes a shard, or why it does not."""
    try:
        plan = plan_shards(array, least=1)
    except UnsupportedError as error:
        return None, error.message
    if plan is None:
        return None, "it has no chunks in the file"
    if plan.chunks.urls != (url,):
        return None, "its chunks lie in other files"
    is_small = plan.chunks.size == 1 and plan.chunks.nbytes <= MAX_COPIED
    return (None, "it is small") if is_small else (plan, "")


def keep(group: VirtualGroup, arrays: Mapping[str, VirtualArray], prefix: str = "") -> VirtualGroup:
    """The hierarchy with other arrays, by path, and without those that are not among them."""
    own = {name: arrays[prefix + name] for name in _kept(group.arrays, arrays, prefix)}
    groups = {name: keep(inner, arrays, f"{prefix}{name}/") for name, inner in group.groups.items()}
    return replace(group, arrays=own, groups=groups)


def _kept(names: Iterable[str], arrays: Mapping[str, VirtualArray], prefix: str) -> list[str]:
    return [name for name in names if prefix + name in arrays]


def room(index: Index) -> int:
    """Bytes of the smallest user block that an index fits into (HDF5 II.A: 512 bytes, or a power of two times that)."""
    needed = len(index.entries) + index.row + 4
    return 512 << max(0, math.ceil(math.log2(needed / 512)))
