"""Arrays of several files joined, and told in words: what differs, and which file is the odd one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from virtualzarr_refs.combine.joining import Joined, join_arrays
from virtualzarr_refs.combine.parts import Part
from virtualzarr_refs.combine.report import Finding, Status
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray


def join_or_blame(parts: Sequence[Part], axis: int) -> Joined:
    """Join arrays along an axis.

    Raises
    ------
    UnsupportedError
        If they cannot be joined; it names the file that is unlike the others.
    """
    try:
        return join_arrays(parts, axis)
    except UnsupportedError as error:
        present = [part for part in parts if part.array is not None]
        failing = [part for part in present[1:] if not _joins(present[0], part, axis)]
        odd = present[0] if failing and len(failing) * 2 > len(present) else next(iter(failing), None)
        raise error.at(url=odd.file if odd else None) from None


def _joins(first: Part, other: Part, axis: int) -> bool:
    try:
        join_arrays([first, other], axis)
    except UnsupportedError:
        return False
    return True


def finding_of(path: str, joined: Joined, arrays: Sequence[VirtualArray | None], files: Sequence[str]) -> Finding:
    """What was found of a variable.

    Parameters
    ----------
    path : str
        Of the variable.
    joined : Joined
        What came of it.
    arrays : sequence of VirtualArray or None
        None where a file lacks it.
    files : sequence of str
        Their names.
    """
    absent = tuple(file for file, array in zip(files, arrays, strict=True) if array is None)
    details = list(_details(joined))
    if absent:
        details.append("missing from some files, where it reads as missing")
    is_variant = len(joined.variants) > 1 or joined.is_unpacked
    status = Status.VARIANT if is_variant else Status.NORMALISED if joined.is_normalised or absent else Status.EQUAL
    odd = joined.files[1:] if len(joined.variants) > 1 else absent
    return Finding(path, status, "; ".join(details), tuple(odd))


def _details(joined: Joined) -> Iterator[str]:
    """What the encodings of an array differ in."""
    facts: list[tuple[str, Callable[[Any], object]]] = [
        ("the data type differs", lambda e: e.data_type),
        ("the packing differs", lambda e: (e.packing, e.types)),
        ("the stored chunk shape differs", lambda e: e.chunk_shape),
        ("codecs differ", lambda e: [codec["name"] for codec in e.codecs]),
    ]
    for text, fact in facts:
        if len({str(fact(encoding)) for encoding in joined.variants}) > 1:
            yield text
    if joined.is_normalised:
        yield "compression levels differ, which does not matter"
    if joined.is_unpacked:
        yield f"values are unpacked to {joined.array.metadata.data_type}"
