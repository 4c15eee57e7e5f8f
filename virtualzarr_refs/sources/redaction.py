"""Keeping secrets out of error messages and reprs."""

from __future__ import annotations

import re

_URL_START = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[:/]")
_PASSWORD = re.compile(r"(://[^/\s:@]*):[^/\s]*@")
_TOKEN = re.compile(r"(https?://)[^/\s:@]+@", re.IGNORECASE)
_QUERY_OF_URL = re.compile(r"\?(?:(?!::).)+", re.DOTALL)
_QUERY_IN_TEXT = re.compile(r"\?[^\s'\"]+")


def redact(text: str) -> str:
    """Hide passwords and query strings of urls.

    Parameters
    ----------
    text : str
        A url, chained or not, or a message that quotes urls. A plain path stays as it is.

    Returns
    -------
    str
        The text with ``user:***@`` for user and password, and with ``?…`` for every query string: a signature
        cannot be told from a harmless parameter.

    Examples
    --------
    >>> redact("https://ada:secret@example.org/a.nc?X-Amz-Signature=0123")
    'https://ada:***@example.org/a.nc?…'
    """
    if "://" not in text:
        return text
    text = _TOKEN.sub(r"\1***@", _PASSWORD.sub(r"\1:***@", text))
    query = _QUERY_OF_URL if _URL_START.match(text) else _QUERY_IN_TEXT
    return query.sub("?…", text)
