"""What was asked of a scan, and what answered: the part of a key that is not the source."""

from __future__ import annotations

import hashlib
import json
import pickle
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version

_DECIDE = ("virtualzarr-refs", "h5py", "hdf5plugin", "imagecodecs", "numba", "numcodecs", "virtualizarr", "zarr")
"""Distributions whose versions decide what a scan finds: what one cannot decode, a later one may."""


def describe_request(scanners: Sequence[object], options: Mapping[str, object]) -> str | None:
    """Text that differs wherever another scan of the same source might find something else.

    Parameters
    ----------
    scanners : sequence of Scanner
        Those that may be used. Told apart by name, version and configuration, which is what they pickle as.
    options : mapping
        Of the scan.

    Returns
    -------
    str or None
        None if a scanner cannot be pickled.
    """
    try:
        told = [_told(scanner) for scanner in scanners]
    except (pickle.PicklingError, TypeError, AttributeError):
        return None
    return json.dumps({"scanners": told, "options": dict(options), "versions": _versions()})


def _told(scanner: object) -> list[str]:
    package = type(scanner).__module__.partition(".")[0]
    release = getattr(scanner, "version", None) or getattr(sys.modules.get(package), "__version__", "")
    configuration = hashlib.blake2b(pickle.dumps(scanner, 4), digest_size=8).hexdigest()
    return [str(getattr(scanner, "name", "")), str(release), configuration]


@cache
def _versions() -> dict[str, str]:
    found = {name: _version(name) for name in _DECIDE}
    return {name: release for name, release in found.items() if release is not None}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
