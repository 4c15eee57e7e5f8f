"""Groups that tile two or more dimensions, given as nested lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from virtualzarr_refs.combine.concat import concat, stack
from virtualzarr_refs.combine.concatenation import has_dimension
from virtualzarr_refs.combine.merge import merge
from virtualzarr_refs.hierarchy import VirtualGroup

type Nested = VirtualGroup | Iterable[Nested]
type Dimensions = str | Sequence[Any] | None

_OF_MERGE = ("compat", "join", "combine_attrs", "storage_options")


def combine_nested(groups: Nested, concat_dim: Dimensions, **options: Any) -> VirtualGroup:  # noqa: ANN401
    """Put groups together along one dimension for each level of nested lists.

    Parameters
    ----------
    groups : nested list of VirtualGroup
        As deep as there are dimensions, such as ``[[west, east], [west, east]]``.
    concat_dim : str, index or None, or a list of them
        The dimension of each level, the outermost first. One that no file has is new (see `stack`); None merges.
    **options
        See `virtualzarr_refs.combine.options.ConcatOptions`.

    Returns
    -------
    VirtualGroup
        Its values equal what `xarray.combine_nested` gives for the same files.

    Raises
    ------
    IncompatibleError
        If anything stands in the way; its ``comparison`` is the report of the level concerned.
    ValueError
        If the lists are not nested as deep as there are dimensions.
    UnsupportedError
        If an option is not supported.
    SourceError, DecodeError
        If a coordinate cannot be read.
    """
    dims = list(concat_dim) if isinstance(concat_dim, list | tuple) else [concat_dim]
    return _combined(groups, dims, options)


def _combined(level: Nested, dims: Sequence[Any], options: dict[str, Any]) -> VirtualGroup:
    if isinstance(level, VirtualGroup) != (not dims):
        raise ValueError("the lists have to be nested as deep as there are dimensions to combine along")
    if isinstance(level, VirtualGroup):
        return level
    parts = [_combined(part, dims[1:], options) for part in level]
    return combine_along(parts, dims[0], options)


def combine_along(groups: Sequence[VirtualGroup], dim: Any, options: dict[str, Any]) -> VirtualGroup:  # noqa: ANN401
    """Groups put together along a dimension they have, along a new one, or side by side where there is none."""
    if dim is None:
        return merge(groups, **{name: value for name, value in options.items() if name in _OF_MERGE})
    if isinstance(dim, str) and has_dimension(groups, dim):
        return concat(groups, dim, **options)
    return stack(groups, cast("str", dim), **options)
