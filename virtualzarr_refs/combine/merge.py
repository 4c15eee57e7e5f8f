"""Groups put side by side: the variables of all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from virtualzarr_refs.combine.attributes import combine_group_metadata, with_attributes
from virtualzarr_refs.combine.options import ConcatOptions
from virtualzarr_refs.combine.parts import dimensions_of, names_of
from virtualzarr_refs.combine.report import Comparison, Finding, Refusals, refusal
from virtualzarr_refs.combine.static import agree
from virtualzarr_refs.combine.values import files_of
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.metadata import GroupMetadata

type Groups = Sequence[VirtualGroup | None]


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
    result = replace(whole.group("", given), sources=chosen.sources)
    comparison = Comparison("", len(given), tuple(whole.findings))
    if not comparison.is_compatible:
        raise refusal(comparison)
    return result


@dataclass(frozen=True, slots=True)
class _Merging:
    """How groups are put side by side, and what was found on the way."""

    files: tuple[str, ...]
    options: ConcatOptions
    findings: list[Finding] = field(default_factory=list[Finding])

    def group(self, path: str, groups: Groups) -> VirtualGroup:
        present = [group for group in groups if group is not None]
        self._check_lengths(path, groups)
        arrays: dict[str, VirtualArray] = {}
        for name in names_of(group.arrays for group in present):
            node = f"{path}/{name}" if path else name
            with Refusals(self.findings, node):
                arrays[name] = self._array(
                    node, [None if group is None else group.arrays.get(name) for group in groups]
                )
        children = {
            name: self.group(
                f"{path}/{name}" if path else name,
                [None if group is None else group.groups.get(name) for group in groups],
            )
            for name in names_of(group.groups for group in present)
        }
        metadata = GroupMetadata()
        with Refusals(self.findings, path):
            metadata = combine_group_metadata([group.metadata for group in present], self.options.combine_attrs)
        return VirtualGroup(metadata, arrays, children)

    def _array(self, path: str, arrays: Sequence[VirtualArray | None]) -> VirtualArray:
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
