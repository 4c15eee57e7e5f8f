"""What a comparison of groups found, variable by variable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from virtualzarr_refs.errors import IncompatibleError, UnsupportedError, VirtualZarrError


class Status(StrEnum):
    """What becomes of a variable."""

    EQUAL = "equal"
    NORMALISED = "normalised"
    VARIANT = "variant"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one variable.

    Parameters
    ----------
    path : str
        Of the variable, or of the group.
    status : Status
        What becomes of it.
    detail : str
        What differs, and of what was refused the way out.
    files : tuple of str
        The files that are unlike the others.
    """

    path: str
    status: Status
    detail: str = ""
    files: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The detail, and the files concerned."""
        if not self.files:
            return self.detail
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        return f"{self.detail} (in {next(iter(self.files))}{more})"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was found of groups that are to be put together.

    Parameters
    ----------
    dim : str
        The dimension along which; empty if they are put side by side.
    count : int
        Number of groups.
    findings : tuple of Finding
        One for each variable.
    """

    dim: str
    count: int
    findings: tuple[Finding, ...]

    @property
    def refused(self) -> tuple[Finding, ...]:
        """What stands in the way."""
        return tuple(finding for finding in self.findings if finding.status is Status.REFUSED)

    @property
    def is_compatible(self) -> bool:
        """Whether the groups can be put together."""
        return not self.refused

    def table(self, *, only_refused: bool = False) -> list[str]:
        """The lines of a table, a row for each variable, or for those that are refused."""
        findings = self.refused if only_refused else self.findings
        rows = [("variable", "", "what differs"), *((f.path or "/", f.status.value, f.text) for f in findings)]
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        how = f"along {self.dim!r}" if self.dim else "side by side"
        lines = (f"{path:{widths[0]}}  {status:{widths[1]}}  {text}".rstrip() for path, status, text in rows)
        return [f"{self.count} groups {how}", *lines]

    def __str__(self) -> str:
        return "\n".join(self.table())


def odd_file(facts: Sequence[object], files: Sequence[str]) -> str | None:
    """The first file of which some fact is unlike that of most; None if all are alike.

    Parameters
    ----------
    facts : sequence of hashable
        One for each file.
    files : sequence of str
        Their names.
    """
    counts = Counter(facts)
    usual = facts[0] if counts[facts[0]] * 2 >= len(facts) else counts.most_common(1)[0][0]
    return next((file for file, fact in zip(files, facts, strict=True) if fact != usual), None)


@dataclass(frozen=True, slots=True)
class Refusals:
    """A block in which what cannot be carried of one variable becomes a finding; other errors get its name.

    Parameters
    ----------
    findings : list of Finding
        Where it goes.
    path : str
        Of the variable.
    """

    findings: list[Finding]
    path: str

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if not isinstance(error, UnsupportedError):
            if isinstance(error, VirtualZarrError):
                error.at(node=self.path)
            return False
        files = (error.url,) if error.url else ()
        text = f"{error.message} ({error.feature})" if error.feature else error.message
        self.findings.append(Finding(self.path, Status.REFUSED, text, files))
        return True


def refusal(comparison: Comparison) -> IncompatibleError:
    """The error for groups that cannot be put together."""
    refused = comparison.refused
    shown = "; ".join(f"{finding.path or '/'}: {finding.text}" for finding in refused[:3])
    more = f"; and {len(refused) - 3} more variables" if len(refused) > 3 else ""
    return IncompatibleError(
        f"the groups cannot be put together: {shown}{more}",
        comparison=comparison,
        url=next((file for finding in refused for file in finding.files), None),
        node=refused[0].path if refused else None,
    )
