"""Work that is done in threads, once for all who ask for the same, and whose results are kept for a while."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from virtualzarr_refs.server.contents import Representation

MAX_KEPT = 64 * 1024 * 1024
"""Bytes of encoded chunks that are kept: some clients ask for the length first, or for a chunk in several ranges."""

THREADS = 8
"""Chunks that are encoded at a time."""


class Encoding:
    """Encodes chunks for the clients of one event loop."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="virtualzarr_refs.server")
        self._under_way: dict[str, Future[Representation]] = {}
        self._kept: OrderedDict[str, Representation] = OrderedDict()  # the least recently used first
        self._size = 0

    async def encoded(self, key: str, encode: Callable[[], bytes]) -> Representation:
        """What is under a key: kept, being encoded for somebody else, or encoded now.

        Raises
        ------
        SourceError, DecodeError
            If that is what `encode` raises.
        """
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        if key not in self._under_way:
            loop = asyncio.get_running_loop()
            future = loop.run_in_executor(self._threads, lambda: Representation.of_bytes(encode()))
            self._under_way[key] = future
            future.add_done_callback(lambda done: self._finish(key, done))
        return await asyncio.shield(self._under_way[key])  # a client that goes away must not stop the others

    def _finish(self, key: str, done: Future[Representation]) -> None:
        del self._under_way[key]
        if not done.cancelled() and done.exception() is None:
            self._keep(key, done.result())

    def _keep(self, key: str, found: Representation) -> None:
        self._kept[key] = found
        self._size += found.length
        while self._size > MAX_KEPT:
            self._size -= self._kept.popitem(last=False)[1].length

    def close(self) -> None:
        """Let the threads end."""
        self._threads.shutdown(wait=False, cancel_futures=True)
