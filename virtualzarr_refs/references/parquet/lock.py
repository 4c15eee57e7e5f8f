"""One writer at a time: a file ``.lock`` in the folder of a set.

On this machine's disks the system holds the lock, and lets go of it when the process ends, however it ends. Elsewhere
the file itself is the lock; that of a writer that died has to be removed by hand, which the error says.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from virtualzarr_refs.errors import SetLockedError
from virtualzarr_refs.references.target import Target
from virtualzarr_refs.sources.location import join, local_path
from virtualzarr_refs.sources.redaction import redact

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

LOCK = ".lock"


@contextmanager
def locked(target: Target, folder: str, name: str = LOCK) -> Generator[None]:
    """Hold the lock of the set in a folder, which has to be there.

    Parameters
    ----------
    target : Target
        Writes to the folder.
    folder : str
        Url of the folder.
    name : str
        Of the lock; the sets of a folder that holds several have one each.

    Raises
    ------
    SetLockedError
        If somebody else holds it; the message says who, since when, and what to do.
    """
    url = join(folder, name)
    path = local_path(url)
    lock = _by_file(target, url) if path is None or fcntl is None else _by_system(Path(path))
    with lock:
        yield


@contextmanager
def _by_system(path: Path) -> Generator[None]:
    descriptor = _acquire(path)
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, _signature())
        yield
    finally:
        with suppress(OSError):  # somebody removed it by hand
            path.unlink()
        os.close(descriptor)


def _acquire(path: Path) -> int:
    """Open and lock the file; anew, if its last holder removed it in between."""
    system = cast("_Fcntl", fcntl)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            system.flock(descriptor, system.LOCK_EX | system.LOCK_NB)
            if _is_at(descriptor, path):
                return descriptor
        except BlockingIOError:
            holder = _described(os.pread(descriptor, 1000, 0))
            os.close(descriptor)
            raise SetLockedError(
                f"{holder} is writing to this reference set; try again when it is done", url=str(path.parent)
            ) from None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


class _Fcntl:
    """What is used of the module `fcntl`, which not every system has."""

    LOCK_EX: int
    LOCK_NB: int

    def flock(self, descriptor: int, operation: int) -> None:
        """Lock an open file."""


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is still the one of this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def _by_file(target: Target, url: str) -> Generator[None]:
    try:
        target.create(url, _signature())
    except FileExistsError:
        raise SetLockedError(
            f"the file {redact(url)} says that somebody is writing to this reference set. If that writer is done or "
            "died, remove the file, and write again",
            url=redact(url),
        ) from None
    try:
        yield
    finally:
        target.remove(url)


def _signature() -> bytes:
    holder = {"process": os.getpid(), "machine": socket.gethostname(), "since": f"{datetime.now(UTC):%F %T} UTC"}
    return json.dumps(holder).encode()


def _described(signature: bytes) -> str:
    try:
        return "process {process} on {machine}, since {since},".format(**json.loads(signature))
    except (ValueError, KeyError, TypeError):
        return "another process"
