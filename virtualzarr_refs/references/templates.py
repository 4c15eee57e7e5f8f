"""The ``templates`` of a reference set: texts that urls refer to by name, as in ``{{u}}/a.nc``.

They are substituted as plain text. The specification lets them be programs of a template language; those are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self, cast

from virtualzarr_refs.errors import ReferenceSetError
from virtualzarr_refs.sources.redaction import redact

MAX_URL = 1 << 16
"""Characters of a url that a template makes; more is taken for an attack on memory."""

_PLACE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Templates:
    """Texts by name.

    Parameters
    ----------
    texts : mapping of str to str
        The templates.
    """

    texts: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def parse(cls, member: object) -> Self:
        """Read the ``templates`` member of a reference set.

        Raises
        ------
        ReferenceSetError
            If it is no object of names and texts, or a template is a program.
        """
        if not isinstance(member, Mapping):
            raise ReferenceSetError(f"the templates are not a JSON object: {member!r}")
        texts = cast("Mapping[str, object]", member)
        for name, text in texts.items():
            if not isinstance(text, str):
                raise ReferenceSetError(f"the template {name!r} is not a text: {text!r}")
            if not _NAME.fullmatch(name) or "{{" in text or "{%" in text:
                raise _refused(f"the template {name!r}: {text!r}")
        return cls(cast("Mapping[str, str]", texts))

    def substitute(self, text: str) -> str:
        """The text with every ``{{name}}`` replaced; where there are no templates, the text as it is.

        Raises
        ------
        ReferenceSetError
            If it holds anything but known names between braces.
        """
        if not self.texts or "{{" not in text:
            return text
        longest = max(map(len, self.texts.values()))
        if len(text) + text.count("{{") * longest > MAX_URL:
            raise ReferenceSetError(f"a url with its templates may be longer than {MAX_URL} characters")
        return _PLACE.sub(self._replacement, text)

    def _replacement(self, match: re.Match[str]) -> str:
        text = self.texts.get(match[1].strip())
        if text is None:
            raise _refused(match[0])
        return text


def split_places(text: str) -> list[str]:
    """Cut a text at its places ``{{…}}``: texts at even positions, what stands in the places at odd ones."""
    return _PLACE.split(text)


def _refused(what: str) -> ReferenceSetError:
    return ReferenceSetError(
        f"{redact(what)} is not the name of a template that is a plain text, and nothing is evaluated; "
        "expand it with the tool that made the reference set"
    )
