"""Which chain decodes a chunk: one for each variant of an array."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, cast

from zarr import Array

from virtualzarr_refs.chunk_grid import JSON
from virtualzarr_refs.codecs import mixed
from virtualzarr_refs.codecs.bytes_steps import Data
from virtualzarr_refs.codecs.names import MIXED
from virtualzarr_refs.direct.chains import Chain, Codecs, PlainChain
from virtualzarr_refs.direct.zarr_chain import ZarrChain
from virtualzarr_refs.errors import DecodeError
from virtualzarr_refs.hierarchy import VirtualArray


@dataclass(frozen=True, slots=True)
class Pipelines:
    """What decodes the chunks of an array.

    Parameters
    ----------
    plain : tuple of (PlainChain or None)
        By variant; an array without variants has one.
    other : Chain, optional
        What decodes where there is no plain chain.
    is_mixed : bool
        Whether that wants the number of the variant before the bytes of the source.
    """

    plain: tuple[PlainChain | None, ...]
    other: Chain | None
    is_mixed: bool

    @classmethod
    def of_array(cls, array: VirtualArray, opened: Callable[[], Array[Any]]) -> Self | None:
        """Those of an array, or None if it takes zarr to schedule its codecs. Zarr opens it only where need be."""
        if array.dtype.hasobject:
            return None
        is_mixed = array.manifest.has_variants
        codecs = array.metadata.codecs
        plain = tuple(PlainChain.of(steps, array.dtype) for steps in (_variants(codecs) if is_mixed else (codecs,)))
        if all(chain is not None for chain in plain):
            return cls(plain, None, is_mixed)
        other = ZarrChain.of(opened())
        return None if other is None else cls(plain, other, is_mixed)

    def plain_of(self, variant: int) -> PlainChain | None:
        """The plain chain of a variant, if it has one."""
        return self.plain[variant] if variant < len(self.plain) else None

    def chain(self, variant: int, data: Data) -> tuple[Chain, Data]:
        """What decodes a chunk, and what it wants to be given.

        Raises
        ------
        DecodeError
            If there is no such variant.
        """
        plain = self.plain_of(variant)
        if plain is not None:
            return plain, data
        if self.other is None:
            raise DecodeError(f"a chunk names variant {variant} of {len(self.plain)}")
        return self.other, mixed.PREFIX.pack(variant) + bytes(data) if self.is_mixed else data


def _variants(codecs: Codecs) -> tuple[Codecs, ...]:
    """The pipelines of an array's variants; one that no plain chain knows if they do more than decode."""
    configuration = cast("Mapping[str, JSON]", codecs[0].get("configuration") or {})
    variants = cast("list[dict[str, Any]]", configuration.get("variants", []))
    if len(codecs) > 1 or codecs[0]["name"] != MIXED or any(variant.keys() != {"codecs"} for variant in variants):
        return (codecs,)
    return tuple(map(_members, (variant["codecs"] for variant in variants)))


def _members(codecs: list[str | dict[str, JSON]]) -> Codecs:
    return [{"name": codec} if isinstance(codec, str) else codec for codec in codecs]
