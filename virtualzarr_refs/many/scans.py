"""Many files scanned at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from virtualzarr_refs.errors import VirtualZarrError, WorkerLostError
from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.many.crews import Crew, Workers
from virtualzarr_refs.many.results import FailedScan, Scans
from virtualzarr_refs.scan_cache import SIDECAR
from virtualzarr_refs.scanning import ScanRequest, absolute_url
from virtualzarr_refs.sources.redaction import redact

type Outcome = VirtualGroup | VirtualZarrError


def scan_many(
    urls: Iterable[str | os.PathLike[str]],
    *,
    executor: Workers | None = None,
    progress: bool | None = None,
    on_error: Literal["raise", "skip"] = "raise",
    **options: Any,  # noqa: ANN401  the options of `scan`
) -> Scans:
    """Scan several files.

    Parameters
    ----------
    urls : iterable of str or path
        The files.
    executor : {"threads", "processes"}, concurrent.futures.Executor or dask.distributed.Client, optional
        Who scans; by default this process, one file after another. HDF5 gains from processes, not from threads:
        libhdf5 has one lock. Remote files gain from both. Processes import the main module, so scripts need
        ``if __name__ == "__main__":``.
    progress : bool, optional
        Show a bar; by default only on a terminal.
    on_error : {"raise", "skip"}
        What to do about a file that cannot be scanned: raise its error, or go on, and list it in ``failed``.
    **options
        Passed to `scan`. With ``cache``, what was scanned before an interruption is not scanned again; where workers
        are on other machines, it has to be a folder that they share.

    Returns
    -------
    Scans
        A list of groups in the order of `urls`, with ``failed`` and, for each group, its url in ``urls``.

    Raises
    ------
    VirtualZarrError
        Unless ``on_error="skip"``, the first error that was met.
    WorkerLostError
        If `executor` is the caller's, and broke.

    Warns
    -----
    SkippedFileWarning, SkippedNodeWarning
        At the end, if files or nodes were left out.
    """
    if on_error not in ("raise", "skip"):
        raise ValueError(f'there is no on_error={on_error!r}; use "raise" or "skip"')
    request, work = request_for(options), list(map(absolute_url, urls))
    outcomes: list[Outcome | None] = [None] * len(work)
    with bar("scanning", len(work), progress) as advance, closing(_outcomes(request, work, executor)) as done:
        for number, outcome in done:
            if on_error == "raise" and isinstance(outcome, VirtualZarrError):
                raise outcome
            outcomes[number] = outcome
            advance(1)
    pairs = list(zip(work, outcomes, strict=True))
    scans = Scans(
        (group for _, group in pairs if isinstance(group, VirtualGroup)),
        [url for url, group in pairs if isinstance(group, VirtualGroup)],
        [FailedScan(url, error) for url, error in pairs if isinstance(error, VirtualZarrError)],
    )
    scans.warn()
    return scans


def request_for(options: dict[str, Any]) -> ScanRequest:
    """The options of `scan`, for workers that may have another current directory."""
    request = ScanRequest(**options)
    is_folder = request.cache is not None and request.cache != SIDECAR
    return replace(request, cache=absolute_url(request.cache)) if is_folder and request.cache else request


def _outcomes(request: ScanRequest, urls: Sequence[str], workers: Workers | None) -> Generator[tuple[int, Outcome]]:
    items = list(enumerate(urls))
    act = partial(_scan_all, request)
    if workers is None:
        for item in items:
            yield from act([item])
        return
    for _, outcomes in Crew.of(workers).work(act, items, _lost):
        yield from outcomes


def _scan_all(request: ScanRequest, items: Sequence[tuple[int, str]]) -> list[tuple[int, Outcome]]:
    """Scan some files. Errors are results: schedulers write down what is raised, with all that led to it."""
    return [(number, _scan(request, url)) for number, url in items]


def _scan(request: ScanRequest, url: str) -> Outcome:
    try:
        return request.run(url)
    except VirtualZarrError as error:
        return error.at(url=redact(url))


def _lost(item: tuple[int, str]) -> list[tuple[int, Outcome]]:
    number, url = item
    message = "whoever scans the file is killed; scan it alone, with more memory, to see why"
    return [(number, WorkerLostError(message, url=redact(url)))]


@contextmanager
def bar(description: str, total: int, shown: bool | None) -> Generator[Callable[[int], object]]:
    """A bar on the standard error stream; the block is told how to move it forward.

    Parameters
    ----------
    description : str
        One word for what is done.
    total : int
        Number of items.
    shown : bool, optional
        By default only on a terminal.
    """
    if not (sys.stderr.isatty() if shown is None else shown):
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415  only needed on a terminal
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task(description, total=total)
        yield lambda count: progress.advance(task, count)
