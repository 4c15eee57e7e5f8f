"""Opening an HDF5 file through a source, and turning h5py's errors into ours."""

from __future__ import annotations

import io
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import h5py

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.codecs.hdf5_filters import load_plugins
from virtualzarr_refs.errors import FormatError, UnsupportedError, VirtualZarrError
from virtualzarr_refs.sources import Source
from virtualzarr_refs.sources.location import local_path
from virtualzarr_refs.sources.read_ahead import ReadAhead, read_ahead

SIGNATURE = b"\x89HDF\r\n\x1a\n"

HDF5_ERRORS = (OSError, RuntimeError, ValueError, KeyError, TypeError, NotImplementedError, MemoryError)
"""What h5py raises where libhdf5 cannot make sense of a file."""


def signature_offset(head: bytes) -> int | None:
    """Where the superblock lies: at 0, 512, 1024, 2048, … bytes (HDF5 File Format 3.0, II.A), or None."""
    offset = 0
    while offset + len(SIGNATURE) <= len(head):
        if head.startswith(SIGNATURE, offset):
            return offset
        offset = max(512, 2 * offset)
    return None


@dataclass(frozen=True, slots=True)
class h5py_errors:  # noqa: N801  reads as a statement
    """Turns an error of h5py in its block into a FormatError that says `what` could not be done.

    Not a generator: an error that is thrown into one keeps itself alive, and with it the HDF5 objects of its block.
    """

    what: str
    offset: int | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, HDF5_ERRORS) and not isinstance(error, VirtualZarrError):
            raise FormatError(f"{self.what}: {_first_line(error)}", offset=self.offset) from error


@contextmanager
def open_hdf5(source: Source) -> Generator[h5py.File]:
    """Open the file for the time of the block.

    Raises
    ------
    FormatError
        If libhdf5 cannot open it.
    SourceError
        If its bytes cannot be read.
    """
    load_plugins()
    source.identity()  # a file that is not there is no failure of libhdf5's
    with h5py_errors("libhdf5 cannot open the file", offset=0):
        file = _open(source)
    try:
        yield file
    finally:
        # Closing a corrupt file may fail; by then everything that could be read has been.
        with suppress(*HDF5_ERRORS):
            file.close()


def _open(source: Source) -> h5py.File:
    path = local_path(source.url)
    if path is not None:
        return _open_local(path)
    ahead = read_ahead(source)
    if not isinstance(ahead, ReadAhead):
        raise UnsupportedError("HDF5 files are read from local files and from remote sources", feature=repr(source))
    return h5py.File(SourceFile(ahead), "r")


def _open_local(path: str) -> h5py.File:
    """Open a local file, with whatever locking can be had, but not while another process writes it.

    A filesystem may refuse locks; and libhdf5 refuses another kind of locking while this process has the file open.
    """
    try:
        return h5py.File(path, "r")
    except BlockingIOError:  # the lock is another process's
        raise
    except OSError:
        for locking in (False, True):
            with suppress(OSError):
                return h5py.File(path, "r", locking=locking)
        raise  # the first error says more


class SourceFile(io.RawIOBase):
    """A seekable file over a remote source, for h5py.

    Parameters
    ----------
    source : ReadAhead
        What to read from.
    """

    def __init__(self, source: ReadAhead) -> None:
        super().__init__()
        self._source = source
        self._size = source.identity().size
        self._position = 0

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """The position, in bytes from the start."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position and return it."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Fill `buffer` from the position on, and return the number of bytes."""
        count = max(0, min(len(buffer), self._size - self._position))
        buffer[:count] = self._source.read_on(ByteRange(self._position, count))
        self._position += count
        return count


def _first_line(error: BaseException) -> str:
    return str(error).strip("'\"").partition("\n")[0]
