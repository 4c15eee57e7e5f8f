"""Many files scanned at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from functools import partial
from typing import Any

from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.scanning import scan


def scan_many(
    urls: Iterable[str | os.PathLike[str]],
    *,
    executor: Executor | None = None,
    progress: bool | None = None,
    **options: Any,  # noqa: ANN401  the options of `scan`
) -> list[VirtualGroup]:
    """Scan several files.

    Parameters
    ----------
    urls : iterable of str or path
        The files.
    executor : concurrent.futures.Executor, optional
        Runs the scans; HDF5 gains from processes, not from threads. By default one after another.
    progress : bool, optional
        Show a bar; by default only on a terminal.
    **options
        Passed to `scan`.

    Returns
    -------
    list of VirtualGroup
        In the order of `urls`.
    """
    work = list(urls)
    one = partial(scan, **options)
    results = map(one, work) if executor is None else executor.map(one, work)
    shown = sys.stderr.isatty() if progress is None else progress
    return list(_with_progress(results, len(work)) if shown else results)


def _with_progress[T](results: Iterable[T], total: int) -> Iterator[T]:
    from rich.console import Console  # noqa: PLC0415  only needed on a terminal
    from rich.progress import track  # noqa: PLC0415

    yield from track(results, "scanning", total=total, console=Console(stderr=True))
