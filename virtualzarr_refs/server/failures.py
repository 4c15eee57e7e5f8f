"""From errors to answers. What an error says of files and urls goes to the log, never to a client."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from virtualzarr_refs.errors import (
    DecodeError,
    SourceChangedError,
    SourceMissingError,
    SourceTruncatedError,
    VirtualZarrError,
)
from virtualzarr_refs.sources.redaction import redact

LOG = logging.getLogger("virtualzarr_refs.server")

_ANSWERS: tuple[tuple[type[VirtualZarrError], int, str], ...] = (
    (
        SourceChangedError,
        409,
        "the file that holds these bytes changed since it was opened; it has to be scanned again",
    ),
    (SourceTruncatedError, 502, "the file that holds these bytes is shorter than when it was scanned"),
    (SourceMissingError, 502, "the file that holds these bytes is not there"),
    (DecodeError, 502, "the bytes of the file do not decode to what the array says"),
    (VirtualZarrError, 502, "the file that holds these bytes cannot be read"),
)


def failure_response(error: VirtualZarrError, key: str) -> JSONResponse:
    """The answer to a request that an error ended, and a line in the log."""
    log_failure(error, key)
    # A reader hides the class of an error that others take for a missing key; its cause still has it.
    kinds = (type(error), type(error.__cause__))
    status, words = next((status, words) for kind, status, words in _ANSWERS if any(issubclass(k, kind) for k in kinds))
    return error_response(status, words, key)


def log_failure(error: VirtualZarrError, key: str) -> None:
    """Write a line to the log."""
    LOG.error("%r: %s", key, redact(str(error)))


def refusal_response(error: HTTPException, key: str) -> JSONResponse:
    """The answer to a request that cannot be served as it is."""
    return error_response(error.status_code, error.detail, key, error.headers)


def error_response(status: int, words: str, key: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An answer that says what is wrong."""
    return JSONResponse({"error": words, "key": key}, status, {**(headers or {}), "Cache-Control": "no-store"})
