"""Finding what to compare an array with: the same array as the format's own library reads it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Self

import numpy as np

from virtualzarr_refs.checking.comparison import same_type
from virtualzarr_refs.errors import UnsupportedError, VirtualZarrError
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.manifest import MISSING, Manifest
from virtualzarr_refs.scanning import TrueArray, Truth, Verifier, find_scanner, scanners
from virtualzarr_refs.sources import Backend, open_source
from virtualzarr_refs.sources.redaction import redact

MAX_SEARCHED = 16
"""Sources of a set that are searched for an array which does not say where it comes from."""


@dataclass(frozen=True, slots=True)
class Found:
    """What an array is compared with, or why it is not.

    Parameters
    ----------
    array : TrueArray, optional
        None if there is nothing to compare with.
    source : str
        Url of the file that holds it, without secrets.
    reason : str
        Why there is nothing.
    error : str
        What is wrong, if that is why.
    """

    array: TrueArray | None = None
    source: str = ""
    reason: str = ""
    error: str = ""


SEVERAL = Found(reason="several sources")


@dataclass(slots=True)
class Truths:
    """The sources of a set, as the libraries of their formats read them; open until the end of the block.

    Parameters
    ----------
    urls : collection of str
        The sources that are there.
    storage_options : mapping, optional
        Options of the filesystem.
    backend : {"auto", "local", "fsspec", "obstore"}
        What reads them.
    """

    urls: Collection[str]
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    backend: Backend = "auto"
    _opened: dict[str, Truth | None] = field(default_factory=dict[str, Truth | None], init=False, repr=False)
    _formats: dict[str, str] = field(default_factory=dict[str, str], init=False, repr=False)
    _stack: ExitStack = field(default_factory=ExitStack, init=False, repr=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.clear()
        self._stack.close()

    def find(self, path: str, array: VirtualArray) -> Found:
        """What to compare an array with.

        A file is looked into at the array's own path: first the one that its chunks lie in and, if that does not
        hold the array, the other sources of the set, for a file may keep values in others that are no file of its
        format, or link to them, and what is inline or missing lies in no file.
        """
        try:
            own = list(islice(self._readable(array.manifest.loaded()), 2))
            if len(own) > 1:
                return SEVERAL  # each chunk would have to say where in its source it comes from
            return self._find(path, array, own)
        except UnsupportedError as error:  # of the library, or of what it can say; nothing is wrong with the file
            return Found(reason=error.message)
        except VirtualZarrError as error:
            return Found(reason="the file cannot be read by its own library", error=str(error.at(node=path)))

    def _find(self, path: str, array: VirtualArray, own: list[str]) -> Found:
        mine = self._held(path, own)
        if fitting := [held for held in mine if held.fits(array)]:
            return fitting[0].found
        others = self._held(path, [url for url in islice(self.urls, MAX_SEARCHED) if url not in own])
        if fitting := [held for held in others if held.fits(array)]:
            return fitting[0].found if len(fitting) == 1 else SEVERAL
        if wrong := (*mine, *others):
            return wrong[0].mismatch(array)
        return self._nothing(array)

    def _nothing(self, array: VirtualArray) -> Found:
        """Why there is nothing: nothing to go by, for values that the set itself holds; else something is wrong."""
        url = next(self._present(array.manifest.loaded()), None)
        if url is None:
            return Found(reason="the set does not say which file it is from")
        if self._truth(url) is None:
            return self._unread(url)
        error = f"{redact(url)} holds no array at this path; the array was renamed, or the file overwritten"
        return Found(reason="not in the file", error=error)

    def _unread(self, url: str) -> Found:
        """Why no library reads a file: none was asked to for its format, or it is of no format."""
        if name := self._formats[url]:
            return Found(reason=f"the scanner for {name} does not compare")
        known = ", ".join(scanners())
        error = f"{redact(url)} is of no known format ({known}); was it overwritten, or is a scanner not installed?"
        return Found(reason="its format is not known", error=error)

    def _held(self, path: str, urls: Iterable[str]) -> list[_Held]:
        """The array in every source that holds it."""
        truths = ((url, self._truth(url)) for url in urls)
        arrays = ((url, truth.find(path)) for url, truth in truths if truth is not None)
        return [_Held(redact(url), array) for url, array in arrays if array is not None]

    def _readable(self, manifest: Manifest) -> Iterator[str]:
        """The urls that chunks lie in and that a library of their format reads."""
        return (url for url in self._present(manifest) if self._truth(url) is not None)

    def _present(self, manifest: Manifest) -> Iterator[str]:
        """The urls that chunks lie in and that are there."""
        ids = [] if manifest.is_missing else np.unique(manifest.url_id).tolist()
        used = (manifest.urls[i] for i in ids if i != MISSING)
        return (url for url in used if url in self.urls)

    def _truth(self, url: str) -> Truth | None:
        if url not in self._opened:
            self._opened[url] = self._open(url)
        return self._opened[url]

    def _open(self, url: str) -> Truth | None:
        source = open_source(url, self.storage_options, self.backend)
        self._stack.callback(source.close)
        try:
            scanner = find_scanner(source)
            self._formats[url] = "" if scanner is None else scanner.name
            return self._stack.enter_context(scanner.open_truth(source)) if isinstance(scanner, Verifier) else None
        except VirtualZarrError as error:
            error.at(url=redact(url))
            raise


@dataclass(frozen=True, slots=True)
class _Held:
    """An array that a source holds."""

    source: str
    array: TrueArray

    @property
    def found(self) -> Found:
        return Found(self.array, self.source)

    def fits(self, array: VirtualArray) -> bool:
        return self.array.shape == array.shape and same_type(self.array.dtype, array.dtype)

    def mismatch(self, array: VirtualArray) -> Found:
        ours, theirs = (f"{a.dtype} of shape {a.shape}" for a in (array, self.array))
        error = f"the array is {ours}, but {theirs} in {self.source}"
        return Found(source=self.source, reason="its shape or type is not the file's", error=error)
