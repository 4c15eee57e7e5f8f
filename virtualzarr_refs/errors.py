"""Every error and warning that virtualzarr-refs raises on purpose.

::

    VirtualZarrError
    ├── FormatError              (ValueError)           the bytes break the rules of their format
    ├── UnsupportedError         (NotImplementedError)  a sound feature that cannot be carried
    ├── ReferenceSetError        (ValueError)           a reference set that cannot be understood
    ├── NotRepresentableError    (ValueError)           the target format cannot say what the group holds
    ├── IncompatibleError        (ValueError)           groups that cannot be put together; has the whole report
    ├── DecodeError              (ValueError)           a chunk does not decode to what its array says
    ├── NodeNotFoundError        (KeyError)             no array or group at that path
    ├── WorkerLostError          (RuntimeError)         what scanned the file was killed
    ├── SetLockedError           (BlockingIOError)      somebody else is writing to the reference set
    └── SourceError              (OSError)              a source's bytes cannot be had
        ├── SourceMissingError                          there is no such source
        │   └── SourceNotFoundError  (FileNotFoundError)  the same, where nobody can take it for a missing chunk
        ├── SourceTruncatedError                        a byte range reaches past the end of the source
        └── SourceChangedError                          the source is not the one that was scanned

    SkippedNodeWarning           (UserWarning)          a scan left a node out
    SkippedFileWarning           (UserWarning)          a scan of many files left files out
    CacheWarning                 (UserWarning)          what a scan found could not be kept for the next one
    SourceChangedWarning         (UserWarning)          a source changed, and is read all the same

Each error is also the builtin that a caller would catch. The fields ``url``, ``node``, ``feature`` and
``offset`` say where; they are filled in once, at the boundary that knows them (see `VirtualZarrError.at`).
"""

from __future__ import annotations

from typing import Any, Self


class VirtualZarrError(Exception):
    """Root of the project's errors.

    Parameters
    ----------
    message : str
        What is wrong and what to do about it, a sentence without the place.
    url : str, optional
        The source or the reference set concerned.
    node : str, optional
        Path of the array or group in the hierarchy.
    feature : str, optional
        The feature of the format that is concerned, such as ``"filter 32004 (lz4)"``.
    offset : int, optional
        Where in the source, in bytes from its start.
    """

    def __init__(
        self,
        message: str,
        *,
        url: str | None = None,
        node: str | None = None,
        feature: str | None = None,
        offset: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.url = url
        self.node = node
        self.feature = feature
        self.offset = offset

    def at(self, *, url: str | None = None, node: str | None = None) -> Self:
        """Fill in the place where it is not known yet, and return the error itself."""
        self.url = self.url if self.url is not None else url
        self.node = self.node if self.node is not None else node
        return self

    def __str__(self) -> str:
        fields = {"file": self.url, "node": self.node, "feature": self.feature, "offset": self.offset}
        place = ", ".join(f"{name} {value}" for name, value in fields.items() if value is not None)
        return f"{self.message} [{place}]" if place else self.message

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions cross process borders in `scan_many`; the default would lose the keyword fields.
        return type(self), (self.message,), self.__dict__


class FormatError(VirtualZarrError, ValueError):
    """The file is corrupt, cut short, or not of the format it claims to be."""


class UnsupportedError(VirtualZarrError, NotImplementedError):
    """The file is sound, but uses a feature that cannot be shown as Zarr."""


class ReferenceSetError(VirtualZarrError, ValueError):
    """A reference set is malformed."""


class NotRepresentableError(VirtualZarrError, ValueError):
    """The format asked for cannot carry the group; the message lists the arrays and the way out."""


class IncompatibleError(VirtualZarrError, ValueError):
    """Groups cannot be put together as they are; `comparison` says of every variable why not.

    Parameters
    ----------
    message : str
        See `VirtualZarrError`.
    comparison : object, optional
        What `virtualzarr_refs.compare` found.
    """

    def __init__(self, message: str, *, comparison: object = None, **fields: Any) -> None:  # noqa: ANN401  passed on
        super().__init__(message, **fields)
        self.comparison = comparison


class DecodeError(VirtualZarrError, ValueError):
    """The bytes of a chunk do not decode to the shape and data type of its array."""


class NodeNotFoundError(VirtualZarrError, KeyError):
    """No array or group lies at the path that was asked for."""

    __str__ = VirtualZarrError.__str__


class WorkerLostError(VirtualZarrError, RuntimeError):
    """The process that scanned a file was killed, for a lack of memory or by a fault of a library."""


class SetLockedError(VirtualZarrError, BlockingIOError):
    """Somebody else is writing to the reference set; the message says who, and what to do."""

    __str__ = VirtualZarrError.__str__


class SourceError(VirtualZarrError, OSError):
    """The bytes of a source cannot be read."""

    __str__ = VirtualZarrError.__str__


class SourceMissingError(SourceError):
    """The source does not exist, or may not be seen.

    Stores and filesystems raise it: Zarr would take a FileNotFoundError to say that a chunk is missing.
    """


class SourceNotFoundError(SourceMissingError, FileNotFoundError):
    """The file that was asked for, by its url, does not exist or may not be seen."""


class SourceTruncatedError(SourceError):
    """A byte range reaches past the end of its source."""


class SourceChangedError(SourceError):
    """The source has another size, etag or modification time than when it was scanned."""


class SourceChangedWarning(UserWarning):
    """A source has changed since the scan; ``on_change="warn"`` reads it all the same."""


class SkippedNodeWarning(UserWarning):
    """A scan left out a node; `VirtualGroup.skipped` names it and says why."""


class SkippedFileWarning(UserWarning):
    """A scan of many files left out those that could not be scanned; its result names them and says why."""


class CacheWarning(UserWarning):
    """What a scan found could not be written to its cache; the next scan reads the file again."""
