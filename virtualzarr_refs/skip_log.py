"""What a scan leaves out."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from virtualzarr_refs.errors import UnsupportedError, VirtualZarrError
from virtualzarr_refs.metadata import Skipped


@dataclass(slots=True)
class SkipLog:
    """Collects what a scan leaves out, or raises at once where that was asked for.

    Parameters
    ----------
    strict : bool
        Raise instead of collecting.
    doubts : list of str
        See `virtualzarr_refs.ScanOptions`; gets the node of every error that a second try may not meet.
    """

    strict: bool
    doubts: list[str] = field(default_factory=list[str])
    records: list[Skipped] = field(default_factory=list[Skipped])

    def node(self, path: str) -> AbstractContextManager[None, bool]:
        """Turn an error of the block into a record of the node at `path`."""
        return _Node(self, path)

    def note(self, path: str, reason: str) -> None:
        """Record a node that carries no data of its own; never raises."""
        self.records.append(Skipped(path, reason, loses_data=False))


@dataclass(frozen=True, slots=True)
class _Node:
    """The block of `SkipLog.node`.

    Not a generator: an error that is thrown into one keeps itself alive, and with it whatever its block had open.
    """

    log: SkipLog
    path: str

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if not isinstance(error, VirtualZarrError):
            return False
        error.at(node=self.path)
        if not isinstance(error, UnsupportedError):
            self.log.doubts.append(self.path)
        if not self.log.strict:
            self.log.records.append(Skipped(self.path, _reason(error)))
        return not self.log.strict


def _reason(error: VirtualZarrError) -> str:
    return f"{error.message} ({error.feature})" if error.feature else error.message
