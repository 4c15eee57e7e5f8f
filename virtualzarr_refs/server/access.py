"""Who may read: a token that requests have to carry."""

from __future__ import annotations

from secrets import compare_digest

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from virtualzarr_refs.server.failures import error_response


class TokenRequired:
    """An application that answers only requests with ``Authorization: Bearer TOKEN``.

    Parameters
    ----------
    inner : ASGI application
        Answers those.
    token : str
        What they carry.

    Raises
    ------
    ValueError
        If the token is empty.
    """

    def __init__(self, inner: ASGIApp, token: str) -> None:
        if not token:
            raise ValueError("an empty token keeps nobody out; give one, or None for no token")
        self._inner = inner
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http" and not self._may_read(scope):
            refusal = error_response(
                401, "a token is needed: Authorization: Bearer TOKEN", scope["path"], {"WWW-Authenticate": "Bearer"}
            )
            await refusal(scope, receive, send)
        else:
            await self._inner(scope, receive, send)

    def _may_read(self, scope: Scope) -> bool:
        scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and compare_digest(given.strip().encode(), self._token)
