"""Turning the exceptions of operating systems, servers and client libraries into the project's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import cast

from virtualzarr_refs.errors import SourceError, SourceNotFoundError
from virtualzarr_refs.sources.redaction import redact

# Roots of the exceptions that fsspec's filesystems let through and that are no OSError.
_CLIENT_ERRORS = (
    ("aiohttp", "ClientError"),
    ("azure.core.exceptions", "AzureError"),
    ("botocore.exceptions", "BotoCoreError"),
    ("botocore.exceptions", "ClientError"),
    ("ftplib", "Error"),
    ("gcsfs.retry", "HttpError"),
    ("google.auth.exceptions", "GoogleAuthError"),
    ("httpx", "HTTPError"),
    ("lzma", "LZMAError"),
    ("paramiko", "SSHException"),
    ("tarfile", "TarError"),
    ("zipfile", "BadZipFile"),
    ("zlib", "error"),
)
_MISSING_STATUS = frozenset({404, 410})
_DENIED_STATUS = frozenset({401, 403, 407})
_DENIED_NAMES = frozenset({"PermissionDeniedError", "UnauthenticatedError"})  # obstore's
_RANGE_STATUS = 416


def client_errors() -> tuple[type[BaseException], ...]:
    """Exceptions by which a filesystem says that it cannot read, whichever client library it uses.

    Only libraries that are already imported are asked: what is not imported cannot have raised.
    """
    known = (getattr(sys.modules.get(module), name, None) for module, name in _CLIENT_ERRORS)
    return OSError, EOFError, *(error for error in known if isinstance(error, type))


def translate(error: BaseException, url: str) -> SourceError:
    """Our error for a foreign one, with the url redacted.

    Raise it ``from None`` if the url is remote: the foreign message, which a traceback would show, may quote a
    signed url, such as the one that a server redirected to.
    """
    error = _origin(error)
    status = http_status(error)
    if status in _MISSING_STATUS or (status is None and isinstance(error, FileNotFoundError | NotADirectoryError)):
        return SourceNotFoundError("there is no such file, or it may not be seen; check the url", url=redact(url))
    if status in _DENIED_STATUS or isinstance(error, PermissionError) or type(error).__name__ in _DENIED_NAMES:
        return SourceError(f"access was denied ({_summary(error, url)}); check the credentials", url=redact(url))
    return SourceError(
        f"reading failed ({_summary(error, url)}); check the url and the storage options", url=redact(url)
    )


def is_range_error(error: BaseException) -> bool:
    """Whether a server may have refused the range rather than the file. Says when a second look pays, no more."""
    return http_status(error) == _RANGE_STATUS or "range" in str(error).lower()


def http_status(error: BaseException) -> int | None:
    """The HTTP status that an exception of a client library, or its cause, carries in any of the usual places."""
    places = chain(_status_places(error), _status_places(error.__cause__))
    return next((place for place in places if isinstance(place, int)), None)


def _status_places(error: BaseException | None) -> Iterator[object]:
    for name in ("status", "status_code", "code"):  # one by one: aiohttp warns of its "code"
        yield getattr(error, name, None)
    response: object = getattr(error, "response", None)
    yield getattr(response, "status_code", None)
    if isinstance(response, Mapping):  # botocore
        yield cast("Mapping[str, Mapping[str, object]]", response).get("ResponseMetadata", {}).get("HTTPStatusCode")


def _origin(error: BaseException) -> BaseException:
    """What happened: fsspec's HTTP filesystem says "not found" of any failure, with the failure as the cause."""
    cause = error.__cause__
    if isinstance(error, FileNotFoundError) and isinstance(cause, client_errors()):
        return cause
    return error


def _summary(error: BaseException, url: str) -> str:
    first_line = str(error).strip().partition("\n")[0].replace(url, redact(url))
    return redact(f"{type(error).__name__}: {first_line}") if first_line else type(error).__name__
