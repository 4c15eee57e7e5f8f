"""Groups put side by side: the variables of all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from virtualzarr_refs.combine.attributes import with_attributes
from virtualzarr_refs.combine.nodes import Arrays, Groups, Join, join_nodes
from virtualzarr_refs.combine.options import ConcatOptions
from virtualzarr_refs.combine.parts import dimensions_of
from virtualzarr_refs.combine.report import Comparison, Finding, Refusals, refusal
from virtualzarr_refs.combine.static import agree
from virtualzarr_refs.combine.values import files_of
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup


def merge(groups: Iterable[VirtualGroup], **options: Any) -> VirtualGroup:  # noqa: ANN401  see ConcatOptions
    """Put the variables of several groups into one, such as those of files that hold a variable each.

    Parameters
    ----------
    groups : iterable of VirtualGroup
        Variables that several of them have must agree.
    **options
        ``compat`` (by default ``"no_conflicts"``), ``join``, ``combine_attrs`` and ``storage_options`` of
        `virtualzarr_refs.combine.options.ConcatOptions`; they have the meanings they have in `xarray.merge`.

    Returns
    -------
    VirtualGroup
        Its values equal what xarray gives for the same files.

    Raises
    ------
    IncompatibleError
        If variables of one name differ, or dimensions of one name have different lengths.
    UnsupportedError
        If an option is not supported.
    SourceError, DecodeError
        If a variable cannot be read to be compared.
    """
    given = list(groups)
    if not given:
        raise ValueError("there are no groups to put together")
    chosen = ConcatOptions.of({"compat": "no_conflicts", **options}).reading(given)
    whole = _Merging(files_of(given), chosen)
    result = join_nodes(given, whole.join_in, whole.findings, chosen.combine_attrs)
    comparison = Comparison("", len(given), tuple(whole.findings))
    if not comparison.is_compatible:
        raise refusal(comparison)
    return replace(result, sources=chosen.sources)


@dataclass(frozen=True, slots=True)
class _Merging:
    """How groups are put side by side, and what was found on the way."""

    files: tuple[str, ...]
    options: ConcatOptions
    findings: list[Finding] = field(default_factory=list[Finding])

    def join_in(self, path: str, groups: Groups) -> Join:
        self._check_lengths(path, groups)
        return self._array

    def _array(self, path: str, arrays: Arrays) -> VirtualArray:
        array, finding = agree(path, arrays, self.files, self.options)
        self.findings.append(finding)
        present = [array for array in arrays if array is not None]
        return with_attributes(array, present, self.options.combine_attrs)

    def _check_lengths(self, path: str, groups: Groups) -> None:
        """Refuse dimensions of one name with several lengths; those that can grow may be shorter in some variables."""
        lengths: dict[str, int] = {}
        for file, group in zip(self.files, groups, strict=True):
            if group is None:
                continue
            for dim, length in _lengths(group).items():
                with Refusals(self.findings, path):
                    if lengths.setdefault(dim, length) != length:
                        raise UnsupportedError(
                            f"the dimension {dim!r} has {length} elements, and {lengths[dim]} in files before it; "
                            "rename it, or select the same labels"
                        ).at(url=file)


def _lengths(group: VirtualGroup) -> dict[str, int]:
    """The length of every dimension of a group's own arrays."""
    lengths: dict[str, int] = {}
    for array in group.arrays.values():
        for dim, length in zip(dimensions_of(array), array.shape, strict=True):
            if dim:
                lengths[dim] = max(length, lengths.get(dim, 0))
    return lengths
