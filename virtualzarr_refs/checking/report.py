"""What a check found."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from virtualzarr_refs.chunk_grid import JSON, ChunkIndex
from virtualzarr_refs.metadata import Skipped


@dataclass(frozen=True, slots=True)
class Difference:
    """The first element of an array that is not what the file holds.

    Parameters
    ----------
    index : tuple of int
        Of the element, in the array.
    chunk : tuple of int
        Index of the chunk that it lies in.
    found, expected : str
        What the references give, and what the format's own library gives. With the bytes in hexadecimal where
        both would look the same, such as two NaN of different payload.
    """

    index: tuple[int, ...]
    chunk: ChunkIndex
    found: str
    expected: str

    def __str__(self) -> str:
        return f"at {list(self.index)} (chunk {list(self.chunk)}): {self.found} instead of {self.expected}"

    def to_json(self) -> dict[str, JSON]:
        """As an object of plain JSON."""
        return {
            "index": list(self.index),
            "chunk": list(self.chunk),
            "found": self.found,
            "expected": self.expected,
        }


@dataclass(frozen=True, slots=True)
class ArrayReport:
    """What was found about one array.

    Parameters
    ----------
    path : str
        Of the array.
    chunks : int
        Of its chunk grid, missing ones included.
    equal, different : int
        Chunks that hold, and do not hold, what the format's own library reads, bit for bit.
    undecodable : int
        Chunks whose bytes cannot be had, or do not decode to what the array says.
    not_compared : int
        Chunks that decode, but could not be compared.
    source : str
        Url of the file that the array was compared with; empty if it was not.
    reason : str
        Why chunks were not compared.
    first_difference : Difference, optional
        In C order.
    errors : tuple of str
        What went wrong: the first few messages.
    """

    path: str
    chunks: int
    equal: int = 0
    different: int = 0
    undecodable: int = 0
    not_compared: int = 0
    source: str = ""
    reason: str = ""
    first_difference: Difference | None = None
    errors: tuple[str, ...] = ()

    @property
    def checked(self) -> int:
        """Chunks that were looked at."""
        return self.equal + self.different + self.undecodable + self.not_compared

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong, as far as it was checked."""
        return not (self.different or self.undecodable or self.errors)

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that is wrong, a sentence each."""
        counts = {
            f"chunks differ from the file, first {self.first_difference}": self.different,
            "chunks cannot be read": self.undecodable,
        }
        return (*(f"{n} of {self.checked} {what}" for what, n in counts.items() if n), *self.errors)

    def to_json(self) -> dict[str, JSON]:
        """As an object of plain JSON."""
        first = self.first_difference
        return {
            "path": self.path,
            "ok": self.ok,
            "chunks": self.chunks,
            "checked": self.checked,
            "equal": self.equal,
            "different": self.different,
            "undecodable": self.undecodable,
            "not_compared": self.not_compared,
            "source": self.source,
            "reason": self.reason,
            "first_difference": None if first is None else first.to_json(),
            "errors": list(self.errors),
        }


@dataclass(frozen=True, slots=True)
class SourceReport:
    """What was found about one file that references point into.

    Parameters
    ----------
    url : str
        Of the file, without secrets.
    size : int, optional
        In bytes; None if it cannot be looked at.
    error : str
        Why not, or that it is no longer what was scanned.
    """

    url: str
    size: int | None
    error: str = ""

    def to_json(self) -> dict[str, JSON]:
        """As an object of plain JSON."""
        return {"url": self.url, "size": self.size, "error": self.error}


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check found.

    Parameters
    ----------
    arrays : tuple of ArrayReport
        In the order of the hierarchy.
    sources : tuple of SourceReport
        Each file that references point into.
    skipped : tuple of Skipped
        What the set leaves out, and so was not checked.
    sample : int, optional
        Number of chunks of each array that were read; None for all.
    """

    arrays: tuple[ArrayReport, ...]
    sources: tuple[SourceReport, ...]
    skipped: tuple[Skipped, ...] = ()
    sample: int | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong, as far as it was checked."""
        return all(array.ok for array in self.arrays) and not any(source.error for source in self.sources)

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that is wrong, a sentence each, with the path of the array or the url of the file."""
        return (
            *(f"{source.url}: {source.error}" for source in self.sources if source.error),
            *(f"{array.path}: {problem}" for array in self.arrays for problem in array.problems),
        )

    def to_json(self) -> dict[str, JSON]:
        """As an object of plain JSON."""
        return {
            "ok": self.ok,
            "sample": self.sample,
            "arrays": [array.to_json() for array in self.arrays],
            "sources": [source.to_json() for source in self.sources],
            "skipped": [asdict(record) for record in self.skipped],
        }
