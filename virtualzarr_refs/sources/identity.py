"""What tells one version of a source from another."""

from __future__ import annotations

from dataclasses import dataclass

_CLOCK_TOLERANCE = 1e-3
"""Seconds by which two clocks with fractions may differ: some backends round to microseconds or milliseconds."""


@dataclass(frozen=True, slots=True)
class SourceIdentity:
    """Size, etag and time of modification of a source.

    Parameters
    ----------
    size : int
        In bytes.
    etag : str, optional
        As the server says it, without quotes and without the mark of a weak etag.
    last_modified : float, optional
        In seconds since the epoch.

    Raises
    ------
    ValueError
        If the size is negative.
    """

    size: int
    etag: str | None = None
    last_modified: float | None = None

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError(f"a source cannot have a negative size: {self.size}")

    def matches(self, other: SourceIdentity) -> bool:
        """Whether both can describe the same bytes, going by what both of them know.

        Sizes must be equal. Then etags decide, or else times of modification; what one side does not know is not
        compared. A time in whole seconds, as HTTP sends it, is compared in whole seconds.
        """
        if self.size != other.size:
            return False
        if self.etag is not None and other.etag is not None:
            return self.etag == other.etag
        if self.last_modified is None or other.last_modified is None:
            return True
        return _same_time(self.last_modified, other.last_modified)


def bare_etag(etag: str) -> str:
    """An etag without quotes and without the mark of a weak one: backends differ in both."""
    return etag.removeprefix("W/").strip('"')


def _same_time(a: float, b: float) -> bool:
    if a.is_integer() or b.is_integer():
        return a // 1 == b // 1
    return abs(a - b) < _CLOCK_TOLERANCE
