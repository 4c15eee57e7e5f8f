"""Where the values of variables lie.

"NetCDF Classic Format Specification", "Computing File Offsets" and "Note on padding". Values of a variable without
the record dimension are one piece. The others have one piece in every record, padded to four bytes, unless there is
only one such variable: then its pieces follow each other without padding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scanners.netcdf3.header import Header, Variable
from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.errors import FormatError


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the values of a variable lie.

    Parameters
    ----------
    variable : Variable
        The variable.
    piece_size : int
        Of all its values or, if it has records, of those of one record, in bytes, without padding.
    record_size : int
        From one of its pieces to the next, in bytes; 0 if it has no records.
    record_count : int
        Number of records; 1 if it has none.
    """

    variable: Variable
    piece_size: int
    record_size: int
    record_count: int

    @property
    def shape(self) -> Shape:
        """Of the variable, in elements."""
        return tuple(self.record_count if axis.is_record else axis.length for axis in self.variable.dimensions)

    @property
    def is_one_piece(self) -> bool:
        """Whether there is nothing between its records."""
        return self.record_size in (0, self.piece_size)

    @property
    def stop(self) -> int:
        """The first byte after its values; 0 if there are none, for then its offset means nothing."""
        if not self.record_count:
            return 0
        return self.variable.begin + (self.record_count - 1) * self.record_size + self.piece_size


def lay_out(header: Header, file_size: int) -> tuple[Placement, ...]:
    """Work out where the values of all variables lie.

    Parameters
    ----------
    header : Header
        The file's header.
    file_size : int
        Bytes; tells the number of records where the header does not.

    Returns
    -------
    tuple of Placement
        In the order of the variables. None reaches into the header or into another; some may reach beyond the file.

    Raises
    ------
    FormatError
        If variables are larger than the version of the format allows, or lie over each other.
    """
    sizes = [_piece_size(variable) for variable in header.variables]
    pieces = list(zip(header.variables, sizes, strict=True))
    fixed = [piece for piece in pieces if not piece[0].is_record]
    records = [piece for piece in pieces if piece[0].is_record]
    _check_sizes(fixed, header, is_last_free=not records)
    _check_sizes(records, header, is_last_free=True)
    record_size = _record_size(records)
    count = header.record_count
    if count is None:
        count = min((_whole_records(piece, record_size, file_size) for piece in records), default=0)
    _check_places(header, fixed, records, record_size, count)
    return tuple(
        Placement(variable, size, record_size, count) if variable.is_record else Placement(variable, size, 0, 1)
        for variable, size in pieces
    )


type _Piece = tuple[Variable, int]


def _piece_size(variable: Variable) -> int:
    return math.prod(axis.length for axis in variable.dimensions if not axis.is_record) * variable.type.size


def _record_size(records: Sequence[_Piece]) -> int:
    sizes = [size for _, size in records]
    return sizes[0] if len(sizes) == 1 else sum(size + -size % 4 for size in sizes)


def _whole_records(piece: _Piece, record_size: int, file_size: int) -> int:
    """How many records of a variable there are in a file; padding after the last one may be missing."""
    variable, size = piece
    room = file_size - variable.begin
    return 0 if room < size else (room - size) // record_size + 1


def _check_sizes(pieces: Sequence[_Piece], header: Header, *, is_last_free: bool) -> None:
    """Refuse sizes that no offset could be computed from; only the last variable may be larger."""
    for i, (variable, size) in enumerate(pieces):
        is_free = is_last_free and i == len(pieces) - 1
        limit = _OFFSET_LIMIT if is_free else header.version.largest_size
        if size > limit:
            raise FormatError(
                f"the variable {variable.name!r} has {size} bytes, more than this version of the format allows",
                offset=variable.place,
            )


_OFFSET_LIMIT = 2**63 - 1


def _check_places(
    header: Header, fixed: Sequence[_Piece], records: Sequence[_Piece], record_size: int, count: int
) -> None:
    """Refuse values that lie inside the header or over those of another variable."""
    ordered = _in_order(records, header.size)
    if records:
        first, (last, last_size) = ordered[0][0], ordered[-1]
        if last.begin + last_size - first.begin > record_size:
            raise _overlap(last)
        if count:
            fixed = [*fixed, (first, (count - 1) * record_size + last.begin + last_size - first.begin)]
    _in_order(fixed, header.size)


def _in_order(pieces: Iterable[_Piece], stop: int) -> list[_Piece]:
    """Pieces by where they begin; refused if one begins before the one before it, or the header, has ended."""
    ordered = sorted(pieces, key=lambda piece: piece[0].begin)
    for variable, size in ordered:
        if variable.begin < stop:
            raise _overlap(variable)
        stop = variable.begin + size
    return ordered


def _overlap(variable: Variable) -> FormatError:
    return FormatError(
        f"the values of the variable {variable.name!r} lie over the header or another variable", offset=variable.place
    )
