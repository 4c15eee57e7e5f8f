"""The ``Range`` field of a request: RFC 9110, section 14."""

from __future__ import annotations

import re

from starlette.exceptions import HTTPException

from virtualzarr_refs.byte_range import ByteRange

_BYTES = re.compile(r"bytes\s*=(.*)", re.IGNORECASE | re.DOTALL)
_SPEC = re.compile(r"\s*([0-9]{0,19})-([0-9]{0,19})\s*")


def requested_range(header: str, length: int) -> ByteRange | None:
    """Read a ``Range`` field.

    Parameters
    ----------
    header : str
        The value of the field.
    length : int
        Of what is asked for, in bytes.

    Returns
    -------
    ByteRange or None
        Clipped to the length; None if the range is not one of bytes, and the whole is to be sent.

    Raises
    ------
    HTTPException
        400 if the field is malformed; 416 if the range lies beyond the end, or there are several.
    """
    unit = _BYTES.fullmatch(header)
    if unit is None:
        return _other_unit(header)
    specs = unit[1].split(",")
    if len(specs) > 1:
        raise _refused(length, "several ranges in one request are not served; ask for each on its own")
    match = _SPEC.fullmatch(specs[0])
    if match is None or not (match[1] or match[2]):
        raise _malformed()
    first, last = match[1], match[2]
    start = int(first) if first else max(0, length - int(last))
    stop = min(int(last) + 1, length) if first and last else length
    if first and last and int(last) < int(first):
        raise _malformed()
    if start >= stop:
        raise _refused(length, f"the range begins beyond the end, which is at {length} bytes")
    return ByteRange(start, stop - start)


def _other_unit(header: str) -> None:
    """A range in units that are not known is ignored, as the RFC has it."""
    if "=" not in header:
        raise _malformed()


def _malformed() -> HTTPException:
    return HTTPException(400, "the Range field is malformed; bytes=0-99, bytes=100- and bytes=-100 are well-formed")


def _refused(length: int, message: str) -> HTTPException:
    return HTTPException(416, message, {"Content-Range": f"bytes */{length}"})
