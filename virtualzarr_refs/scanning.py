"""Scanning: from the url of a file to a `VirtualGroup`.

A scanner reads the chunk layout of one format. Scanners are found through the entry-point group
``virtualzarr_refs.scanners``, so that a third party can add a format without a change here.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cache as remembered
from importlib.metadata import entry_points
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.errors import FormatError, SkippedNodeWarning, VirtualZarrError
from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.scan_cache import Cache, Found, Seen, describe_request, through_cache
from virtualzarr_refs.sources import Backend, Source, open_source
from virtualzarr_refs.sources.read_ahead import ReadAhead, read_ahead
from virtualzarr_refs.sources.redaction import redact
from virtualzarr_refs.sources.scanned import look_at

ENTRY_POINT_GROUP = "virtualzarr_refs.scanners"

HEAD_LENGTHS = (64 * 1024, 2 * 1024 * 1024)
"""Bytes from the start of a file that scanners recognise it by; the more only if none does by the fewer.

An HDF5 file may begin with a block of the user's own, of any length.
"""

MATERIALISE_LIMIT = 256 * 1024 * 1024
"""Bytes of values that one array may have, for it to be read at scan time where it is no byte range."""

TARGET_CHUNK_SIZE = 8 * 1024 * 1024
"""Bytes that a chunk is aimed at where a file stores an array in one piece."""


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """How to scan.

    Parameters
    ----------
    strict : bool
        Raise for the first node that cannot be shown, instead of leaving it out with a warning.
    materialise_limit : int
        Bytes of values an array may have to be read at scan time where it is no byte range.
    target_chunk_size : int
        Bytes that a chunk is aimed at where a file stores an array in one piece.
    doubts : list of str
        Scanners add the reasons why another scan of the same bytes may find something else: other files were looked
        at, or a read failed. What is in doubt is not kept in a cache.
    """

    strict: bool = False
    materialise_limit: int = MATERIALISE_LIMIT
    target_chunk_size: int = TARGET_CHUNK_SIZE
    doubts: list[str] = field(default_factory=list[str], compare=False, repr=False)


@runtime_checkable
class Scanner(Protocol):
    """Reads the chunk layout of one file format."""

    @property
    def name(self) -> str:
        """Short name of the format."""
        ...

    def recognises(self, head: bytes, url: str) -> bool:
        """Whether a file that starts with `head` (64 KiB, or 2 MiB if nobody knows those) is of this format."""
        ...

    def scan(self, source: Source, options: ScanOptions) -> VirtualGroup:
        """Read the layout of a whole file.

        Raises
        ------
        VirtualZarrError
            If the file cannot be read at all, or, where `options.strict`, if any node cannot.
        """
        ...


type Region = tuple[slice, ...]
"""One slice for each axis, with a start, a stop and no step."""


def _may_be_written(_: Region) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class TrueArray:
    """An array as the format's own library gives it.

    Parameters
    ----------
    shape : tuple of int
        In elements.
    dtype : numpy.dtype
        Of the values, in any byte order; ``object`` for strings of variable length, which are given as `str`.
    read : callable
        Takes a region and returns the values there. Raises VirtualZarrError.
    is_unwritten : callable
        Takes a region and says whether all of it holds one fill value, because nothing was ever written there; False
        where the library does not know. Spares reading arrays that are large and nearly empty.
    """

    shape: Shape
    dtype: np.dtype[Any]
    read: Callable[[Region], NDArray[Any]]
    is_unwritten: Callable[[Region], bool] = _may_be_written


class Truth(Protocol):
    """A file as the format's own library reads it."""

    def find(self, path: str) -> TrueArray | None:
        """The array that a scan of the file shows at `path`, or None if there is none. Raises VirtualZarrError."""
        ...


@runtime_checkable
class Verifier(Protocol):
    """What a scanner can also be: able to read values through the format's own library, to compare with.

    Nothing of what turns references into values may have a part in it: neither manifests nor codecs.
    """

    def open_truth(self, source: Source) -> AbstractContextManager[Truth]:
        """Open a file for the time of a block.

        Raises
        ------
        VirtualZarrError
            If the library cannot open it.
        """
        ...


@remembered
def scanners() -> Mapping[str, Scanner]:
    """The scanners that are installed, by name."""
    found = (point.load()() for point in entry_points(group=ENTRY_POINT_GROUP))
    return {scanner.name: scanner for scanner in found}


def scan(
    url: str | os.PathLike[str],
    *,
    scanner: Scanner | str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    backend: Backend = "auto",
    strict: bool = False,
    materialise_limit: int = MATERIALISE_LIMIT,
    target_chunk_size: int = TARGET_CHUNK_SIZE,
    cache: str | os.PathLike[str] | None = None,
) -> VirtualGroup:
    """Read the chunk layout of one file.

    Parameters
    ----------
    url : str or path
        A local path or any fsspec url.
    scanner : Scanner or str, optional
        The scanner, or its name; by default the one that recognises the file's first bytes.
    storage_options : mapping, optional
        Passed to the filesystem; never written to a reference set.
    backend : {"auto", "local", "fsspec", "obstore"}
        What reads the bytes.
    strict : bool
        Raise for the first node that cannot be shown, instead of leaving it out with a warning.
    materialise_limit : int
        Bytes of values an array may have to be read at scan time where it is no byte range; a larger
        one is left out.
    target_chunk_size : int
        Bytes that a chunk is aimed at where the file stores an array in one piece.
    cache : str or path, optional
        A local folder where what is found is kept for the next scan, or ``"sidecar"``: a file ``NAME.vzmeta`` beside
        the source. Used while size and etag or time of modification of the source stay, or else its content.

    Returns
    -------
    VirtualGroup
        Its ``skipped`` names what was left out.

    Raises
    ------
    FormatError
        If the file is corrupt or of no known format.
    SourceError
        If the file cannot be read.

    Warns
    -----
    SkippedNodeWarning
        If nodes were left out.
    CacheWarning
        If the cache cannot be written.
    """
    request = ScanRequest(scanner, storage_options, backend, strict, materialise_limit, target_chunk_size, cache)
    whole = absolute_url(url)
    group = request.run(whole)
    warn_of_skipped(whole, group)
    return group


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """How to scan, as something to hand to a worker; see `scan` for the meaning of each."""

    scanner: Scanner | str | None = None
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    backend: Backend = "auto"
    strict: bool = False
    materialise_limit: int = MATERIALISE_LIMIT
    target_chunk_size: int = TARGET_CHUNK_SIZE
    cache: str | os.PathLike[str] | None = None

    def run(self, url: str) -> VirtualGroup:
        """Scan one file; warns of nothing that is left out. Raises VirtualZarrError."""
        options = ScanOptions(self.strict, self.materialise_limit, self.target_chunk_size)
        with _opened(url, self.storage_options, self.backend) as source, _places_errors(url):
            if self.cache is not None:
                kept = Cache(self.cache, self.storage_options, self.backend)
                return _scan_cached(source, self.scanner, options, kept)
            with _ahead(source) as ahead:
                return scan_source(ahead, self.scanner, options)


def scan_source(source: Source, scanner: Scanner | str | None, options: ScanOptions) -> VirtualGroup:
    """Read the chunk layout of a source that is open already; see `scan`. Warns of nothing."""
    with _places_errors(source.url):
        chosen = _choose_scanner(source) if scanner is None else _named_scanner(scanner)
        group = chosen.scan(source, options)
        return replace(group, sources=look_at(source, group.urls))


def _scan_cached(source: Source, scanner: Scanner | str | None, options: ScanOptions, cache: Cache) -> VirtualGroup:
    def scan_anew() -> Found:
        with _ahead(source) as ahead:
            seen = Seen.at(ahead)  # before the scan: a later change has another identity
            group = scan_source(ahead, scanner, options)
        return Found(group, seen, is_lasting=not options.doubts)

    return through_cache(cache, source, _described(scanner, options), scan_anew)


def _described(scanner: Scanner | str | None, options: ScanOptions) -> str | None:
    """The request for the key of a cache; a file may be of any format, so all scanners are part of it."""
    if scanner is None or isinstance(scanner, str):
        return _described_by_name(scanner, options)
    return describe_request([scanner], _values(options))


@remembered
def _described_by_name(name: str | None, options: ScanOptions) -> str | None:
    used = list(scanners().values()) if name is None else [_named_scanner(name)]
    return describe_request(used, _values(options))


def _values(options: ScanOptions) -> dict[str, object]:
    return {own.name: getattr(options, own.name) for own in fields(options) if own.compare}


def absolute_url(url: str | os.PathLike[str]) -> str:
    """The url with a relative local path made absolute."""
    text = os.fspath(url)
    return text if "://" in text or "::" in text else os.path.abspath(text)  # noqa: PTH100  keeps links


@contextmanager
def _opened(url: str, storage_options: Mapping[str, Any] | None, backend: Backend) -> Generator[Source]:
    source = open_source(url, storage_options=storage_options, backend=backend)
    try:
        yield source
    finally:
        source.close()


@contextmanager
def _ahead(source: Source) -> Generator[Source]:
    """The source, read ahead of who reads it. If it failed, that is the cause of what a scanner raised or left out."""
    ahead = read_ahead(source)
    try:
        yield ahead
        _require_sound(ahead)
    except VirtualZarrError:
        _require_sound(ahead)
        raise


def _require_sound(source: Source) -> None:
    if isinstance(source, ReadAhead):
        source.require_sound()


@contextmanager
def _places_errors(url: str) -> Generator[None]:
    try:
        yield
    except VirtualZarrError as error:
        raise error.at(url=redact(url)) from error.__cause__


def find_scanner(source: Source) -> Scanner | None:
    """The scanner that recognises a file by its first bytes.

    Raises
    ------
    SourceError
        If the file cannot be read.
    """
    size = source.identity().size
    for length in HEAD_LENGTHS:
        head = bytes(source.read([ByteRange(0, min(length, size))])[0])
        found = next((scanner for scanner in scanners().values() if scanner.recognises(head, source.url)), None)
        if found is not None or size <= length:
            return found
    return None


def _choose_scanner(source: Source) -> Scanner:
    scanner = find_scanner(source)
    if scanner is None:
        known = ", ".join(scanners())
        raise FormatError(f"the file is of none of the formats that can be scanned ({known})", offset=0)
    return scanner


def _named_scanner(scanner: Scanner | str) -> Scanner:
    if not isinstance(scanner, str):
        return scanner
    if scanner not in scanners():
        raise ValueError(f"there is no scanner {scanner!r}; installed are {', '.join(scanners())}")
    return scanners()[scanner]


_NAMED_IN_WARNING = 5


def warn_of_skipped(url: str, group: VirtualGroup) -> None:
    """Name the first nodes that a scan left out, in a SkippedNodeWarning at the caller's caller."""
    lost = [record for record in group.skipped if record.loses_data]
    if not lost:
        return
    named = "; ".join(f"{record.path}: {record.reason}" for record in lost[:_NAMED_IN_WARNING])
    more = f"; and {len(lost) - _NAMED_IN_WARNING} more" if len(lost) > _NAMED_IN_WARNING else ""
    message = f"{len(lost)} node(s) of {redact(url)} left out, see VirtualGroup.skipped: {named}{more}"
    warnings.warn(message, SkippedNodeWarning, stacklevel=3)
