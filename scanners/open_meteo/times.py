"""Time axes of what Open-Meteo publishes.

Files hold no times. A series lies in ``chunk_N.om``, whose first step is number ``N * chunk_time_length`` since 1970,
or in ``year_YYYY.om``, which begins with that year. The length of a step, and how many a chunk file has, stand in
``static/meta.json`` beside a model's variables. Time is always the last axis.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import RegularGrid
from virtualzarr_refs.errors import FormatError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.metadata import ArrayMetadata
from virtualzarr_refs.scanning import absolute_url
from virtualzarr_refs.sources import open_source

TIME = "time"
UNITS = "seconds since 1970-01-01"

_FILE = re.compile(r"(?P<kind>chunk|year)_(?P<number>-?[0-9]{1,9})\.om$")

_OTHER_DIMENSIONS = {1: (), 2: ("location",), 3: ("y", "x")}
"""By rank, what lies before time in published files."""

type Meta = Mapping[str, Any] | str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class _Steps:
    """What ``meta.json`` says: seconds of a step, and steps of a chunk file."""

    seconds: int
    in_chunk: int

    @classmethod
    def of(cls, meta: Meta) -> _Steps:
        content = meta if isinstance(meta, Mapping) else _read(meta)
        steps = [content.get(name) for name in ("temporal_resolution_seconds", "chunk_time_length")]
        numbers = [step for step in steps if type(step) is int and step > 0]
        if len(numbers) != len(steps):
            raise FormatError("a meta.json lacks temporal_resolution_seconds or chunk_time_length")
        return cls(*numbers)

    def first(self, kind: str, number: int) -> tuple[int, int]:
        """Seconds from 1970 to the first step of a file, and the number of steps that it may have."""
        if kind == "chunk":
            return number * self.in_chunk * self.seconds, self.in_chunk
        start, stop = (
            int(np.datetime64(year - 1970, "Y").astype("M8[s]").astype(int)) for year in (number, number + 1)
        )
        return start, (stop - start) // self.seconds


def time_axis(url: str | os.PathLike[str], meta: Meta, length: int) -> NDArray[np.datetime64]:
    """The times of a file that Open-Meteo publishes.

    Parameters
    ----------
    url : str or path
        Of the file; its name says where it begins.
    meta : mapping, str or path
        The model's ``meta.json``, or where it lies.
    length : int
        Number of steps that the file has.

    Returns
    -------
    ndarray of datetime64[s]
        One for each step.

    Raises
    ------
    ValueError
        If the file is named in another way.
    FormatError
        If the ``meta.json`` lacks what is needed, or the file has more steps than it can have.
    """
    name = os.fspath(url).partition("?")[0]
    match = _FILE.search(name)
    if match is None:
        raise ValueError(f"{name!r} is not named as chunk_N.om or year_YYYY.om, so its times are not known")
    steps = _Steps.of(meta)
    start, limit = steps.first(match["kind"], int(match["number"]))
    if length > limit:
        raise FormatError(f"the file has {length} steps of {steps.seconds} seconds; by its name, {limit} at most")
    return (start + np.arange(length) * steps.seconds).astype("M8[s]")


def with_time(group: VirtualGroup, meta: Meta, url: str | os.PathLike[str]) -> VirtualGroup:
    """Add the time axis to a scan of a file that Open-Meteo publishes.

    Parameters
    ----------
    group : VirtualGroup
        The scan. The last axis of all of its arrays is time.
    meta : mapping, str or path
        The model's ``meta.json``, or where it lies.
    url : str or path
        Of the file; its name says where it begins.

    Returns
    -------
    VirtualGroup
        With an array ``time``, and names for those dimensions that had none.

    Raises
    ------
    ValueError
        If the file is named in another way, or its arrays have no axis in common.
    FormatError
        If the ``meta.json`` lacks what is needed, or the file has more steps than it can have.

    Examples
    --------
    >>> url = "sample_data/temperature_2m/chunk_1000.om"
    >>> with_time(vzr.scan(url), "sample_data/meta.json", url).to_xarray()  # doctest: +SKIP
    """
    lengths = {array.shape[-1] for array in group.arrays.values()}
    if len(lengths) != 1 or TIME in (*group.arrays, *group.groups):
        raise ValueError("a time axis can be added to arrays whose last axes are of one length, and only once")
    times = time_axis(url, meta, *lengths)
    arrays = {name: _named(array) for name, array in group.arrays.items()}
    return replace(group, arrays={**arrays, TIME: _time_array(times)})


def _named(array: VirtualArray) -> VirtualArray:
    rank = len(array.shape)
    others = (array.metadata.dimension_names or (None,) * rank)[:-1]
    if not any(others):
        others = _OTHER_DIMENSIONS.get(rank, others)
    return replace(array, metadata=replace(array.metadata, dimension_names=(*others, TIME)))


def _time_array(times: NDArray[np.datetime64]) -> VirtualArray:
    values = times.astype("<i8")
    metadata = ArrayMetadata(
        data_type="int64",
        chunk_grid=RegularGrid(values.shape, values.shape),
        fill_value=0,
        codecs=({"name": "bytes", "configuration": {"endian": "little"}},),
        attributes={"standard_name": "time", "units": UNITS, "calendar": "proleptic_gregorian"},
        dimension_names=(TIME,),
    )
    return VirtualArray(metadata, Manifest.from_inline((1,), {0: values.tobytes()}))


def _read(url: str | os.PathLike[str]) -> Mapping[str, Any]:
    source = open_source(absolute_url(url))
    try:
        document = source.read([ByteRange(0, source.identity().size)])[0]
        content = json.loads(bytes(document))
    except ValueError as error:
        raise FormatError("the meta.json is not JSON", url=source.url) from error
    finally:
        source.close()
    if not isinstance(content, Mapping):
        raise FormatError("the meta.json is not a JSON object", url=source.url)
    return content
