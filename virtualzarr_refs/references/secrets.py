"""No secret is ever written into a reference set."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

from virtualzarr_refs.errors import NotRepresentableError
from virtualzarr_refs.sources.redaction import redact

_AUTHORITY = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)@")
_SECRET_PARAMETER = re.compile(
    r"[?&;]"
    r"(?:[^=&;]*(?:signature|credential|token|secret|passw|access-?_?key|api-?_?key|accessid|key-pair)[^=&;]*"
    r"|sig|sas|auth|authorization|policy|key|pwd)=",
    re.IGNORECASE,
)
_CONTAINER_BEFORE_AT = frozenset("abfs abfss wasb wasbs".split())
"""Schemes of Azure, whose urls read ``abfs://container@account…``."""


def require_no_secrets(urls: Iterable[str]) -> None:
    """Refuse urls with a user, a password or a signed query string.

    Raises
    ------
    NotRepresentableError
        The message shows the url without the secret.
    """
    for url in urls:
        if ("@" in url or "?" in url) and any(map(_holds_secret, url.split("::"))):
            raise NotRepresentableError(
                f"the url {redact(url)} holds credentials, which are never written to a reference set; "
                "scan by the plain url and pass the credentials as storage_options"
            )


def _holds_secret(link: str) -> bool:
    match = _AUTHORITY.match(link)
    if match and not (match[1].lower() in _CONTAINER_BEFORE_AT and ":" not in match[2]):
        return True
    return "://" in link and _SECRET_PARAMETER.search(unquote(link)) is not None
