"""Runs an application with uvicorn."""

from __future__ import annotations

import copy
import socket
from contextlib import suppress
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.config import LOGGING_CONFIG

GRACE = 10
"""Seconds that answers which are on their way get when the server is told to stop."""

_BACKLOG = 2048
"""Connections that may wait to be accepted."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes one that is free. Raises OSError if the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns off Nagle's algorithm only for sockets that name their protocol; with it, answers take 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


def serve(app: ASGIApp, listening: socket.socket, *, access_log: bool = True) -> None:
    """Answer requests until the process is told to stop by SIGINT or SIGTERM.

    Answers that are on their way are completed first, for up to `GRACE` seconds.
    """
    with suppress(KeyboardInterrupt):  # uvicorn raises it again once it has stopped
        server(app, access_log=access_log).run(sockets=[listening])


def server(app: ASGIApp, *, access_log: bool = True) -> uvicorn.Server:
    """A server that is not running yet."""
    config = uvicorn.Config(
        app,
        http="h11",  # it bounds the size of request headers
        ws="none",
        lifespan="on",
        log_config=_logging(),
        access_log=access_log,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )
    return uvicorn.Server(config)


def _logging() -> dict[str, Any]:
    """Uvicorn's logging, and our own in the same form."""
    config = copy.deepcopy(LOGGING_CONFIG)
    config["loggers"]["virtualzarr_refs.server"] = {"handlers": ["default"], "level": "INFO", "propagate": False}
    return config
