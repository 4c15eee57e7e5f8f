"""Who works: this process, threads, processes, any executor, or a dask cluster.

A batch of work is a few items, so that its way to a worker costs little beside it, and only a few batches for each
worker are out at any time, so that neither a scheduler nor a queue ever holds all of the work.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import batched, islice
from typing import Any

from virtualzarr_refs.errors import WorkerLostError

MAX_BATCH = 16
"""Items of a batch."""

BATCHES_A_WORKER = 4
"""Batches that are out at a time: one that is worked at, and others that wait for their turn."""

type Workers = str | Executor | Any
"""``"threads"``, ``"processes"``, an executor, or a dask client, which this package does not import."""


class _Lost(Exception):  # noqa: N818  never leaves this module
    """A worker was killed, and took some batches with it."""


@dataclass(frozen=True, slots=True)
class Crew:
    """Some workers.

    Parameters
    ----------
    start : callable
        Gives an executor for the time of a block. May be called again where one broke, unless `is_foreign`.
    size : int
        Number of workers.
    is_foreign : bool
        Whether the executor is the caller's.
    """

    start: Callable[[], Any]
    size: int
    is_foreign: bool

    @classmethod
    def of(cls, workers: Workers) -> Crew:
        """The crew that a user names.

        Raises
        ------
        TypeError
            If it is none.
        """
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if workers == "threads":
            return cls(lambda: ThreadPoolExecutor(cores), cores, is_foreign=False)
        if workers == "processes":
            context = multiprocessing.get_context(
                "spawn"
            )  # a fork would copy the locks of libhdf5 as they happen to be
            return cls(lambda: ProcessPoolExecutor(cores, context), cores, is_foreign=False)
        if isinstance(workers, Executor):
            return cls(lambda: _kept_open(workers), getattr(workers, "_max_workers", cores), is_foreign=True)
        if hasattr(workers, "get_executor"):
            client: Any = workers
            threads = sum(client.nthreads().values())
            return cls(lambda: _kept_open(client.get_executor(pure=False)), max(1, threads), is_foreign=True)
        raise TypeError(
            f'{type(workers).__name__} is no executor; use None, "threads", "processes", an executor of '
            "concurrent.futures, or a dask Client"
        )

    def work[T, R](
        self, act: Callable[[Sequence[T]], R], items: Sequence[T], lost: Callable[[T], R]
    ) -> Iterator[tuple[Sequence[T], R]]:
        """Do something to all items, and give what became of each batch as it is done, in any order.

        Parameters
        ----------
        act : callable
            Takes a batch of items; a function of a module, so that it can be sent.
        items : sequence
            What to do it to.
        lost : callable
            Stands in for the result of an item that kills whoever works at it.

        Raises
        ------
        WorkerLostError
            If the caller's executor broke.
        """
        size = min(MAX_BATCH, -(-len(items) // (self.size * BATCHES_A_WORKER))) or 1
        batches = list(batched(items, size))
        unfinished: list[T] = []
        for batch, result in self._run(act, batches, self.size * BATCHES_A_WORKER):
            if isinstance(result, _Lost):
                unfinished += batch
            else:
                yield batch, result
        for batch, result in self._run(act, [(item,) for item in unfinished], 1):  # to see which of them it is
            yield batch, lost(batch[0]) if isinstance(result, _Lost) else result

    def _run[T, R](
        self, act: Callable[[Sequence[T]], R], batches: Sequence[Sequence[T]], limit: int
    ) -> Iterator[tuple[Sequence[T], R | _Lost]]:
        todo = iter(batches)
        is_broken = True
        while is_broken:
            is_broken = False
            with self.start() as executor:
                for batch, future in _completed(executor, act, todo, limit):
                    error = future.exception()
                    if isinstance(error, BrokenExecutor):
                        is_broken = True
                        self._require_own(error)
                    is_lost = error is not None and _is_loss(error)
                    yield batch, _Lost() if is_lost else future.result()

    def _require_own(self, error: BaseException) -> None:
        if self.is_foreign:
            raise WorkerLostError(
                "a worker was killed, and the executor with it; start another one and call again: what was scanned "
                'into a cache is not scanned again. executor="processes" goes on by itself'
            ) from error


def _completed[T](
    executor: Executor, act: Callable[[Sequence[T]], Any], batches: Iterator[Sequence[T]], limit: int
) -> Iterator[tuple[Sequence[T], Future[Any]]]:
    """Batches that are done, or lost; stops taking new ones when the executor is broken."""
    out: dict[Future[Any], Sequence[T]] = {}
    is_sound = True
    try:
        while True:
            for batch in islice(batches, limit - len(out)) if is_sound else ():
                out[_submitted(executor, act, batch)] = batch
            if not out:
                return
            for future in wait(out, return_when=FIRST_COMPLETED).done:
                is_sound &= not isinstance(future.exception(), BrokenExecutor)
                yield out.pop(future), future
    finally:
        for future in out:
            future.cancel()


def _submitted[T](executor: Executor, act: Callable[[Sequence[T]], Any], batch: Sequence[T]) -> Future[Any]:
    try:
        return executor.submit(act, batch)
    except BrokenExecutor as error:
        failed: Future[Any] = Future()
        failed.set_exception(error)
        return failed


def _is_loss(error: BaseException) -> bool:
    """Whether an error says that a worker was killed; dask's is told by its name, since dask is not imported here."""
    return isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker"


@contextmanager
def _kept_open(executor: Executor) -> Generator[Executor]:
    yield executor
