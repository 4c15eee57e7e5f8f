"""Work shared out among as many threads as there are cores."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache


def run_all[T](work: Callable[[T], None], tasks: Iterable[T], *, alone: bool = False) -> None:
    """Do `work` for each task, in the calling thread and in those of a pool that the whole process shares.

    The caller works on its own tasks and never waits for a thread that has not begun, so it may itself be one of
    many threads, of this pool or another.

    Parameters
    ----------
    work : callable
        Gets one task.
    tasks : iterable
        What to work on, in any order.
    alone : bool
        Whether the calling thread does everything.

    Raises
    ------
    Exception
        The first that `work` raised; tasks that had not begun by then are left.
    """
    waiting = deque(tasks)

    def drain() -> None:
        while True:
            try:
                task = waiting.popleft()
            except IndexError:
                return
            try:
                work(task)
            except BaseException:
                waiting.clear()
                raise

    count = 0 if alone else min(cores(), len(waiting)) - 1
    helpers = [_pool(os.getpid()).submit(drain) for _ in range(count)]
    try:
        drain()
    finally:
        begun = [helper for helper in helpers if not helper.cancel()]
        failures = [helper.exception() for helper in begun]
    for failure in failures:
        if failure is not None:
            raise failure


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool(process: int) -> ThreadPoolExecutor:  # noqa: ARG001  threads do not live on in a forked process
    return ThreadPoolExecutor(max(1, cores() - 1), thread_name_prefix="virtualzarr_refs_decoding")
