"""What of a group a set has in itself, and what goes to files that belong to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.references.sidecar import SidecarFile, move_out, point_into
from virtualzarr_refs.references.variants import has_variants, materialise

INLINE_THRESHOLD = 1024 * 1024
"""Bytes of inline chunks that an array may have in the set itself."""

type Materialise = Literal["inline", "sidecar"] | None


def check_options(zarr_format: object, materialise: object) -> None:
    """Refuse options that mean nothing. Raises ValueError."""
    if zarr_format not in (2, 3):
        raise ValueError(f"zarr_format is 2 or 3, not {zarr_format!r}")
    if materialise not in (None, "inline", "sidecar"):
        raise ValueError(f'materialise is None, "inline" or "sidecar", not {materialise!r}')


@dataclass(frozen=True, slots=True)
class InlineChoice:
    """Where chunks that are inline, or have to be encoded anew, are kept.

    Parameters
    ----------
    threshold : int
        Bytes of inline chunks above which those of an array go to files.
    materialise : {"inline", "sidecar"}, optional
        Whether chunks that are not encoded as most of their array are encoded anew, and where they go.
    """

    threshold: int = INLINE_THRESHOLD
    materialise: Materialise = None


def divide(
    group: VirtualGroup,
    folder: str,
    choice: InlineChoice,
    place: str,
    storage_options: Mapping[str, Any] | None,
) -> tuple[VirtualGroup, dict[str, SidecarFile]]:
    """Take out of a group what goes to files.

    Parameters
    ----------
    group : VirtualGroup
        To be written.
    folder : str
        Where the files go.
    choice : InlineChoice
        Which chunks do.
    place : str
        What the set calls the folder.
    storage_options : mapping, optional
        For reading chunks that have to be encoded anew.

    Raises
    ------
    NotRepresentableError
        If the pipeline of an array cannot encode.
    SourceError
        If chunks cannot be read.
    """
    encoded_anew: frozenset[str] = frozenset()
    if choice.materialise is not None:
        encoded_anew = frozenset(path for path, array in group.walk_arrays() if has_variants(array))
        group = materialise(group, storage_options) if encoded_anew else group

    def is_moved(path: str, array: VirtualArray) -> bool:
        if path in encoded_anew:
            return choice.materialise == "sidecar"
        return sum(map(len, array.manifest.loaded().inline.values())) > choice.threshold

    divided, files = move_out(group, is_moved, place)
    return point_into(divided, folder, place), files
