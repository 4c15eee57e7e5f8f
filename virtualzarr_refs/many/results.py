"""What became of many files."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from virtualzarr_refs.errors import SkippedFileWarning, SkippedNodeWarning, VirtualZarrError
from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.sources.redaction import redact

_NAMED_IN_WARNING = 5


@dataclass(frozen=True, slots=True)
class FailedScan:
    """A file that could not be scanned.

    Parameters
    ----------
    url : str
        The file, as it was given, for another try.
    error : VirtualZarrError
        Why.
    """

    url: str = field(repr=False)
    error: VirtualZarrError


class Scans(list[VirtualGroup]):
    """The groups of many files, in the order of their urls, and what became of those that could not be scanned.

    Parameters
    ----------
    groups : iterable of VirtualGroup
        Of the files that were scanned.
    urls : sequence of str
        For each group its file.
    failed : sequence of FailedScan
        The other files.
    """

    def __init__(
        self, groups: Iterable[VirtualGroup] = (), urls: Sequence[str] = (), failed: Sequence[FailedScan] = ()
    ) -> None:
        super().__init__(groups)
        self.urls = tuple(urls)
        self.failed = tuple(failed)

    def warn(self) -> None:
        """Name what was left out, files and nodes, in two warnings at the caller's caller."""
        failed = [str(failure.error) for failure in self.failed]
        if failed:
            total = len(failed) + len(self)
            message = f"{len(failed)} of {total} files could not be scanned, see `failed`: {_some(failed)}"
            warnings.warn(message, SkippedFileWarning, stacklevel=3)
        lost = [
            f"{redact(url)}, {record.path}: {record.reason}"
            for url, group in zip(self.urls, self, strict=True)
            for record in group.skipped
            if record.loses_data
        ]
        if lost:
            message = f"{len(lost)} node(s) left out, see VirtualGroup.skipped of each: {_some(lost)}"
            warnings.warn(message, SkippedNodeWarning, stacklevel=3)


def _some(lines: Sequence[str]) -> str:
    more = f"; and {len(lines) - _NAMED_IN_WARNING} more" if len(lines) > _NAMED_IN_WARNING else ""
    return "; ".join(lines[:_NAMED_IN_WARNING]) + more
