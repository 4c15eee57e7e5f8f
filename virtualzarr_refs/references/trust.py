"""What the references of a set may point to. A reference set is untrusted input."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self
from urllib.parse import unquote, urlsplit

from virtualzarr_refs.errors import ReferenceSetError
from virtualzarr_refs.sources.location import local_path
from virtualzarr_refs.sources.redaction import redact

_REMOTE = frozenset("http https s3 s3a gs gcs abfs abfss az adl oci oss r2 ftp ftps sftp ssh".split())
"""Schemes that cannot reach the files of this machine. A scheme that is not here may, or may call another."""

_NAMES_A_HOST = frozenset("http https ftp ftps sftp ssh".split())
_WRAPPERS = frozenset("simplecache filecache blockcache cached zip tar".split())
"""Links of a chain such as ``simplecache::https://…`` that only change how its last link is read."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")
_CONFUSING = re.compile(r"[^\x21-\x7e]|[\\%]")
"""Characters in the name of a host over which parsers of urls disagree; some take digits of other scripts for ASCII."""

_INTERNAL = (".localhost", ".localdomain", ".local", ".internal", ".lan", ".home.arpa")
"""How names end that only a private network knows."""


@dataclass(frozen=True, slots=True)
class Trust:
    """The rule for the urls of one reference set.

    Parameters
    ----------
    is_remote : bool
        Whether the set came over a network. Such a set may not point to local files in any spelling, nor to
        addresses of this machine or of a private network.
    host : str, optional
        The host that a remote set came from, which it may always point to.
    allow : tuple of str, optional
        Folders and complete urls that references may point to; given, they are the whole rule.
    """

    is_remote: bool = False
    host: str | None = None
    allow: tuple[str, ...] | None = None

    @classmethod
    def in_set_at(cls, url: str | None, allow: Iterable[str] | None) -> Self:
        """The rule for a set that was read from `url`, or that is a Python object (None)."""
        prefixes = None if allow is None else as_prefixes(allow)
        if url is None or local_path(url) is not None or _scheme(url) == "memory":
            return cls(allow=prefixes)
        target = url.split("::")[-1]
        return cls(is_remote=True, host=_host(target) if _scheme(target) in _NAMES_A_HOST else None, allow=prefixes)

    def require(self, url: str) -> None:
        """Refuse a url that the rule does not cover.

        Raises
        ------
        ReferenceSetError
            The message says what to pass as `allow`.
        """
        if self.allow is not None:
            if not any(_is_below(url, prefix) for prefix in self.allow):
                raise _refused(url, "lies outside the urls that `allow` lists")
        elif self.is_remote:
            self._require_remote(url)

    def _require_remote(self, url: str) -> None:
        target = _target(url)
        scheme = _scheme(target)
        if scheme not in _REMOTE:
            raise _refused(url, "may reach files of this machine, and the reference set came over a network")
        if scheme in _NAMES_A_HOST and _is_internal(host := _host(target)) and (host is None or host != self.host):
            raise _refused(url, "is an address of this machine or of a private network")


def as_prefixes(allow: Iterable[str]) -> tuple[str, ...]:
    """What a user allows, which may be one text."""
    return tuple(map(os.fspath, [allow] if isinstance(allow, str) else allow))


def _is_below(url: str, prefix: str) -> bool:
    target, path = _target(url), local_path(url)
    if path is not None:
        folder = local_path(prefix)
        target, prefix = os.path.abspath(path), "" if folder is None else os.path.abspath(folder)  # noqa: PTH100
    elif ".." in unquote(target).split("/"):
        return False
    return bool(prefix) and (target == prefix or target.startswith(prefix.rstrip("/") + "/"))


def _target(url: str) -> str:
    """The last link of a chain: where the bytes come from."""
    *wrappers, target = url.split("::")
    if any(link.partition("://")[0] not in _WRAPPERS for link in wrappers):
        raise _refused(url, "is a chain of a kind that may reach anything")
    return target


def _scheme(url: str) -> str | None:
    match = _SCHEME.match(url)
    return None if match is None else match[1]


def _host(url: str) -> str | None:
    match = _AUTHORITY.match(url)
    if match is None or _CONFUSING.search(match[1]):
        raise _refused(url, "does not name its host as urls do")
    try:
        return urlsplit(url).hostname
    except ValueError:
        raise _refused(url, "is malformed") from None


def _is_internal(host: str | None) -> bool:
    """Whether a host names this machine or a private network, as far as the name alone says it."""
    host = "" if host is None else host.rstrip(".")
    if not host or host.endswith(_INTERNAL):
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            address = ipaddress.ip_address(socket.inet_aton(host))  # also 127.1, 0x7f000001, 2130706433
        except (OSError, UnicodeError, ValueError):
            return "." not in host  # localhost, and whatever a private network calls its machines
    address = getattr(address, "ipv4_mapped", None) or address
    return not address.is_global or address.is_multicast


def _refused(url: str, reason: str) -> ReferenceSetError:
    return ReferenceSetError(f"a reference points to {redact(url)!r}, which {reason}; pass allow=[…] to trust it")
