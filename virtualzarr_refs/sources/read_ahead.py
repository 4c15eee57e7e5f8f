"""Reading the metadata of a remote file in few round trips.

Scanners ask for many small pieces, one after the other, and on an object store every request takes its 50 ms, whether
for 100 bytes or for a million. So what was fetched is kept, the first request brings the identity and the start of the
file, the second all the rest of a small file, and pieces that are known to be needed are fetched all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from threading import Lock

from virtualzarr_refs.byte_range import MAX_GAP, ByteRange, coalesce
from virtualzarr_refs.errors import SourceError
from virtualzarr_refs.sources.checks import require_within
from virtualzarr_refs.sources.identity import SourceIdentity
from virtualzarr_refs.sources.protocol import Source
from virtualzarr_refs.sources.remote import RemoteSource

PAGE = 8 * 1024
"""Bytes of the pieces in which a file is fetched and kept."""

WINDOW = 1024 * 1024
"""Bytes that take about as long to fetch as a single one: what the first request asks for, and every later miss."""

SMALL_FILE = 8 * 1024 * 1024
"""Bytes of a file up to which the second request brings all the rest."""

MAX_AHEAD = 8 * 1024 * 1024
"""Bytes that are fetched at a time for who reads on and on."""

MAX_REQUEST = 4 * 1024 * 1024
"""Bytes beyond which pieces are fetched by several requests at once rather than by one."""

MAX_KEPT = 256 * 1024 * 1024
"""Bytes that are kept; what was fetched first is forgotten first."""

LARGEST_PIECE = 16 * 1024 * 1024
"""Bytes of a piece that is no metadata, and not kept."""

type Pages = dict[int, memoryview]


class ReadAhead:
    """A remote source for the time of a scan.

    Safe to use from many threads.

    Parameters
    ----------
    source : RemoteSource
        The file.

    Notes
    -----
    Once the source has failed, every read fails in the same way, and `require_sound` does: who reads may have taken
    the failure for a fault of the file, and left out a part of it.

    Pieces come from one version of the file only if it does not change meanwhile: the source refuses what it sees to
    be another version.
    """

    def __init__(self, source: RemoteSource) -> None:
        self._source = source
        self._lock = Lock()
        self._pages: Pages = {}
        self._size: int | None = None
        self._failure: SourceError | None = None
        self._next = 0
        self._ahead = WINDOW

    @property
    def url(self) -> str:
        """See `Source.url`."""
        return self._source.url

    def identity(self) -> SourceIdentity:
        """See `Source.identity`. The first call also fetches the start of the file."""
        if self._size is None:
            identity, head = self._reading(lambda: self._source.first(WINDOW))
            self._size = identity.size
            self._keep(0, head)
        return self._source.identity()

    def read(self, ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Read ranges, all those that were not fetched before at once. See `Source.read`."""
        require_within(self.url, ranges, self.identity().size)
        if any(wanted.length > LARGEST_PIECE for wanted in ranges):
            return self._reading(lambda: self._source.read(ranges))
        pages = self._fetched(chain.from_iterable(map(_page_numbers, ranges)))
        return [_cut(pages, wanted) for wanted in ranges]

    def read_on(self, wanted: ByteRange) -> memoryview:
        """Read one range for somebody who is likely to ask for what is near, and then for what comes after."""
        page, skipped = self._pages.get(wanted.offset // PAGE), wanted.offset % PAGE
        if page is not None and skipped + wanted.length <= len(page):  # the way of most reads
            return page[skipped : skipped + wanted.length]
        require_within(self.url, [wanted], self.identity().size)
        missing = next((number for number in _page_numbers(wanted) if number not in self._pages), None)
        if wanted.length <= LARGEST_PIECE and missing is not None:
            self.read([wanted, self._window(missing * PAGE, wanted.stop)])
        return self.read([wanted])[0]

    def prefetch(self, ranges: Iterable[ByteRange]) -> None:
        """Fetch what is going to be read, as far as it lies within the file, all at once."""
        size = self.identity().size
        self.read([ByteRange(r.offset, min(r.length, size - r.offset)) for r in ranges if r.offset < size])

    def require_sound(self) -> None:
        """Raise the error by which the source failed, if it did.

        Raises
        ------
        SourceError
            That error.
        """
        if self._failure is not None:
            raise self._failure

    def _reading[T](self, act: Callable[[], T]) -> T:
        self.require_sound()
        try:
            return act()
        except SourceError as error:
            self._failure = error
            raise

    def close(self) -> None:
        """See `Source.close`. What was fetched is forgotten."""
        with self._lock:
            self._pages.clear()
        self._size = self._failure = None
        self._source.close()

    @property
    def is_whole(self) -> bool:
        """Whether all of the file is here, or will be after the next request."""
        return self.identity().size <= SMALL_FILE

    def _window(self, start: int, stop: int) -> ByteRange:
        """The windows that a range lies in, and twice as many beyond each time that somebody reads on."""
        start, stop = start // WINDOW * WINDOW, -(-stop // WINDOW) * WINDOW
        self._ahead = min(2 * self._ahead, MAX_AHEAD) if start == self._next else WINDOW
        self._next = max(stop, start + self._ahead)
        return ByteRange(start, min(self._next, self.identity().size) - start)

    def _fetched(self, numbers: Iterable[int]) -> Mapping[int, memoryview]:
        """The pages of these numbers, fetched where they are not here yet."""
        wanted = dict.fromkeys(numbers)
        with self._lock:
            here = {number: self._pages[number] for number in wanted if number in self._pages}
        missing = wanted.keys() - here.keys()
        if not missing:
            return here
        if self.is_whole:
            missing = {*range(-(-self.identity().size // PAGE))} - here.keys() - self._pages.keys()
        spans = self._spans(missing)
        for span, buffer in zip(spans, self._reading(lambda: self._source.fetch(spans)), strict=True):
            here |= self._keep(span.offset, buffer)
        return here

    def _spans(self, missing: Iterable[int]) -> list[ByteRange]:
        size = self.identity().size
        pages = [ByteRange(n * PAGE, min(PAGE, size - n * PAGE)) for n in missing]
        return [batch.span for batch in coalesce(pages, MAX_GAP, MAX_REQUEST)]

    def _keep(self, offset: int, buffer: memoryview) -> Pages:
        """Keep the whole pages of what was fetched from a page's start on; the file's last page may be short."""
        end = self._source.identity().size - offset
        stop = len(buffer) if len(buffer) == end else len(buffer) // PAGE * PAGE
        pages = {(offset + at) // PAGE: buffer[at : at + PAGE] for at in range(0, stop, PAGE)}
        with self._lock:
            self._pages |= pages
            while len(self._pages) * PAGE > MAX_KEPT:
                del self._pages[next(iter(self._pages))]
        return pages


def read_ahead(source: Source) -> Source:
    """The source, read ahead of what is asked for if it is remote."""
    return ReadAhead(source) if isinstance(source, RemoteSource) else source


def _page_numbers(wanted: ByteRange) -> range:
    return range(wanted.offset // PAGE, -(-wanted.stop // PAGE) if wanted.length else 0)


def _cut(pages: Mapping[int, memoryview], wanted: ByteRange) -> memoryview:
    numbers = _page_numbers(wanted)
    if not numbers:
        return memoryview(b"")
    skipped = wanted.offset - numbers[0] * PAGE
    if len(numbers) == 1:
        return pages[numbers[0]][skipped : skipped + wanted.length]
    joined = b"".join([pages[number] for number in numbers])
    return memoryview(joined)[skipped : skipped + wanted.length]
