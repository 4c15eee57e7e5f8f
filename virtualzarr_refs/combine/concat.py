"""Groups put one after the other: along a dimension that they have, or along a new one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from virtualzarr_refs.combine.concatenation import Concatenation, has_dimension
from virtualzarr_refs.combine.labels import name_of, scalars
from virtualzarr_refs.combine.options import ConcatOptions
from virtualzarr_refs.combine.report import Comparison, refusal
from virtualzarr_refs.errors import NodeNotFoundError, UnsupportedError
from virtualzarr_refs.hierarchy import VirtualGroup

if TYPE_CHECKING:
    from virtualzarr_refs.combine.labels import Index


def concat(groups: Iterable[VirtualGroup], dim: str, **options: Any) -> VirtualGroup:  # noqa: ANN401  see ConcatOptions
    """Put groups one after the other along a dimension.

    Parameters
    ----------
    groups : iterable of VirtualGroup
        In order, unless ``sort=True``.
    dim : str
        A dimension of theirs; see `stack` for a new one.
    **options
        See `virtualzarr_refs.combine.options.ConcatOptions`; they have xarray's names and meanings.

    Returns
    -------
    VirtualGroup
        Its values equal what xarray gives for the same files.

    Raises
    ------
    IncompatibleError
        If anything stands in the way; its ``comparison`` is the whole report.
    NodeNotFoundError
        If no variable has the dimension.
    UnsupportedError
        If an option is not supported.
    SourceError, DecodeError
        If a coordinate cannot be read.
    """
    whole = Concatenation.of(groups, dim, ConcatOptions.of(options))
    if whole.is_new:
        raise NodeNotFoundError(f"no variable has the dimension {dim!r}; for a new one, use stack")
    return _finished(whole)


def stack(groups: Iterable[VirtualGroup], dim: str | Index, **options: Any) -> VirtualGroup:  # noqa: ANN401
    """Put groups side by side along a new dimension, such as the member of an ensemble or the start of a run.

    Parameters
    ----------
    groups : iterable of VirtualGroup
        In order.
    dim : str, pandas.Index, xarray.DataArray or xarray.Variable
        Name of the new dimension; with values, one for each group, they become its coordinate. Without, a scalar
        variable of that name does.
    **options
        See `virtualzarr_refs.combine.options.ConcatOptions`. By default all data variables get the new dimension, and
        the coordinates that differ.

    Returns
    -------
    VirtualGroup
        Its values equal what `xarray.concat` gives for the same files; the new axis is the first.

    Raises
    ------
    IncompatibleError
        If anything stands in the way; its ``comparison`` is the whole report.
    ValueError
        If there are not as many values as groups, or the dimension has no name.
    UnsupportedError
        If an option is not supported, or files have the dimension already.
    SourceError, DecodeError
        If a coordinate cannot be read.
    """
    given = list(groups)
    name = dim if isinstance(dim, str) else name_of(dim)
    if has_dimension(given, name):
        raise UnsupportedError(f"files have the dimension {name!r} already; use concat")
    if not isinstance(dim, str):
        labels = scalars(dim, len(given))
        given = [
            replace(group, arrays={name: label, **group.arrays}) for group, label in zip(given, labels, strict=True)
        ]
    return _finished(Concatenation.of(given, name, ConcatOptions.of(options)))


def compare(groups: Iterable[VirtualGroup], dim: str, **options: Any) -> Comparison:  # noqa: ANN401  see ConcatOptions
    """Tell what would become of every variable if groups were put together along a dimension.

    Parameters
    ----------
    groups, dim, **options
        See `concat`, and `stack` for a dimension that they do not have.

    Raises
    ------
    UnsupportedError
        If an option is not supported.
    SourceError, DecodeError
        If a coordinate cannot be read.
    """
    whole = Concatenation.of(groups, dim, ConcatOptions.of(options))
    whole.run()
    return whole.comparison()


def _finished(whole: Concatenation) -> VirtualGroup:
    result = whole.run()
    comparison = whole.comparison()
    if result is None or not comparison.is_compatible:
        raise refusal(comparison)
    return result
