"""Checking the chunks of one array."""

from __future__ import annotations

import lzma
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.checking.boxes import Box, Cuts
from virtualzarr_refs.checking.comparison import equal_elements, shown
from virtualzarr_refs.checking.ranges import Broken, present_chunks
from virtualzarr_refs.checking.report import ArrayReport, Difference
from virtualzarr_refs.checking.truths import Found
from virtualzarr_refs.errors import VirtualZarrError
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.scanning import Region

MAX_BYTES = 32 * 1024 * 1024
"""Bytes of values that are read at once, unless a single chunk has more."""

MAX_CHUNKS = 4096
"""Chunks that are read at once."""

_OBJECT_SIZE = 64
"""Bytes that a string of variable length is reckoned with."""

_MAX_ERRORS = 5
"""Messages that are kept of each array."""

DECODING_ERRORS = (
    VirtualZarrError,
    ArithmeticError,
    BufferError,
    EOFError,
    ExceptionGroup,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    lzma.LZMAError,
    zlib.error,
)
"""What zarr and the codecs that it calls raise where a chunk does not decode."""


class _Outcome(Enum):
    """What was found about a chunk."""

    EQUAL = "equal"
    DIFFERENT = "different"
    UNDECODABLE = "undecodable"
    NOT_COMPARED = "not compared"


@dataclass(slots=True)
class _Tally:
    chunks: Counter[_Outcome] = field(default_factory=Counter[_Outcome])
    first: Difference | None = None
    errors: list[str] = field(default_factory=list[str])

    def note(self, error: str) -> None:
        if len(self.errors) < _MAX_ERRORS and error not in self.errors:
            self.errors.append(error)


@dataclass(frozen=True)
class ArrayCheck:
    """Reads an array through its references, and compares it with the truth.

    Parameters
    ----------
    path : str
        Of the array.
    array : VirtualArray
        The array.
    read : callable
        Reads a region through references.
    found : Found
        What to compare with.
    broken : Broken
        Chunks that need not be tried.
    advance : callable
        Told the number of chunks that were checked.
    """

    path: str
    array: VirtualArray
    read: Callable[[Region], NDArray[Any]]
    found: Found
    broken: Broken
    advance: Callable[[int], None]
    _tally: _Tally = field(default_factory=_Tally, init=False)

    def run(self, boxes: Iterable[Box]) -> ArrayReport:
        """Check the chunks of boxes that do not overlap and are in C order.

        A box that is not all well is taken apart until it is clear which of its chunks are not.

        Parameters
        ----------
        boxes : iterable of Box
            The chunks to check.
        """
        for error in (*self.broken.errors, *filter(None, [self.found.error])):
            self._tally.note(error)
        waiting = list(boxes)[::-1]
        while waiting:
            box = waiting.pop()
            if self._settle(box):
                self.advance(box.count)
            else:
                waiting.extend(reversed(box.halves()))
        return self._report()

    def _report(self) -> ArrayReport:
        tally = self._tally
        return ArrayReport(
            path=self.path,
            chunks=self.array.manifest.size,
            equal=tally.chunks[_Outcome.EQUAL],
            different=tally.chunks[_Outcome.DIFFERENT],
            undecodable=tally.chunks[_Outcome.UNDECODABLE],
            not_compared=tally.chunks[_Outcome.NOT_COMPARED],
            source=self.found.source,
            reason=self.found.reason,
            first_difference=tally.first,
            errors=tuple(tally.errors),
        )

    @cached_property
    def _cuts(self) -> Cuts:
        return Cuts.of(self.array.metadata.chunk_grid)

    @cached_property
    def _present(self) -> NDArray[np.bool_] | None:
        return present_chunks(self.array.manifest.loaded())

    def _settle(self, box: Box) -> bool:
        """Count the chunks of a box, if they are all alike; else it has to be taken apart."""
        region = self._cuts.region(box)
        if self._is_blank(box, region):
            one = tuple(slice(part.start, part.start + 1) for part in region)
            return self._read(box, one, stands_for_all=True)
        broken = 0 if self.broken.mask is None else int(self.broken.mask[box.chunks].sum())
        if broken == box.count:
            return self._count(box, _Outcome.UNDECODABLE)
        if box.count > 1 and (broken or self._is_large(box)):
            return False
        return self._read(box, region, stands_for_all=box.count == 1)

    def _is_blank(self, box: Box, region: Region) -> bool:
        """Whether every chunk is missing, and was never written in the file either: then one element says it all."""
        if not self._cuts.elements(box) or (self._present is not None and self._present[box.chunks].any()):
            return False
        try:
            return self.found.array is None or self.found.array.is_unwritten(region)
        except VirtualZarrError:
            return False  # reading will tell

    def _is_large(self, box: Box) -> bool:
        dtype = self.array.dtype
        item = _OBJECT_SIZE if dtype.hasobject else dtype.itemsize
        return box.count > MAX_CHUNKS or self._cuts.elements(box) * item > MAX_BYTES

    def _read(self, box: Box, region: Region, *, stands_for_all: bool) -> bool:
        try:
            values = self.read(region)
        except DECODING_ERRORS as error:
            return stands_for_all and self._fail(box, _Outcome.UNDECODABLE, error)
        if self.found.array is None:
            return self._count(box, _Outcome.NOT_COMPARED)
        try:
            expected = self.found.array.read(region)
        except VirtualZarrError as error:
            return stands_for_all and self._fail(box, _Outcome.NOT_COMPARED, error)
        equal = equal_elements(values, expected)
        if equal.all():
            return self._count(box, _Outcome.EQUAL)
        return stands_for_all and self._differ(box, region, equal, (values, expected))

    def _differ(
        self, box: Box, region: Region, equal: NDArray[np.bool_], values: tuple[NDArray[Any], NDArray[Any]]
    ) -> bool:
        if self._tally.first is None:
            place = np.unravel_index(int(np.argmin(equal)), equal.shape) if equal.shape else ()
            index = tuple(part.start + int(i) for part, i in zip(region, place, strict=True))
            self._tally.first = Difference(index, box.start, *shown(*(array[place] for array in values)))
        return self._count(box, _Outcome.DIFFERENT)

    def _fail(self, box: Box, outcome: _Outcome, error: Exception) -> bool:
        self._tally.note(f"chunk {list(box.start)}: {_summary(error)}")
        return self._count(box, outcome)

    def _count(self, box: Box, outcome: _Outcome) -> bool:
        self._tally.chunks[outcome] += box.count
        return True


def _summary(error: Exception) -> str:
    if isinstance(error, VirtualZarrError):
        return str(error)
    if isinstance(error, ExceptionGroup):
        return _summary(error.exceptions[0])
    text = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
