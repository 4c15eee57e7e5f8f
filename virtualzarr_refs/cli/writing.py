"""Reference sets, written in the form that their names say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from virtualzarr_refs.hierarchy import VirtualGroup


def write_set(group: VirtualGroup, url: str, **options: Any) -> None:  # noqa: ANN401  passed on
    """Write a set in Parquet if it is named so, else in JSON; `options` are what the two writers have in common."""
    from virtualzarr_refs.references.recognition import is_parquet_name  # noqa: PLC0415  slow to import

    if is_parquet_name(url):
        from virtualzarr_refs.references.parquet.writer import write_parquet  # noqa: PLC0415  slow to import

        write_parquet(group, url, **options)
    else:
        from virtualzarr_refs.references import write_json  # noqa: PLC0415  slow to import

        write_json(group, url, **options)
