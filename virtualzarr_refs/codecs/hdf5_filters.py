"""HDF5 filters by number, and whether this process can undo them.

Numbers below 256 are HDF5's own (HDF5 File Format 3.0, IV.A.2.l "Filter Pipeline"); the others are from the
registry of filter plugins that The HDF Group keeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module, util
from types import MappingProxyType

from virtualzarr_refs.chunk_grid import JSON
from virtualzarr_refs.errors import UnsupportedError

DEFLATE, SHUFFLE, FLETCHER32, SZIP, NBIT, SCALEOFFSET = 1, 2, 3, 4, 5, 6
BZIP2, BLOSC, ZSTD = 307, 32001, 32015

FILTER_NAMES = MappingProxyType(
    {
        DEFLATE: "deflate",
        SHUFFLE: "shuffle",
        FLETCHER32: "fletcher32",
        SZIP: "szip",
        NBIT: "nbit",
        SCALEOFFSET: "scaleoffset",
        305: "lzo",
        BZIP2: "bzip2",
        32000: "lzf",
        BLOSC: "blosc",
        32004: "lz4",
        32008: "bitshuffle",
        32013: "zfp",
        ZSTD: "zstd",
        32017: "sz",
        32018: "fcidecomp",
        32024: "sz3",
        32026: "blosc2",
        32028: "sperr",
        32033: "htj2k",
    }
)


@dataclass(frozen=True, slots=True)
class HDF5Filter:
    """One step of a filter pipeline, as the file has it.

    Parameters
    ----------
    id : int
        Number of the filter.
    flags : int
        Bit 0: a chunk may do without the filter.
    values : tuple of int
        Client data, unsigned 32-bit.

    Raises
    ------
    ValueError
        If a number does not fit its field.
    """

    id: int
    flags: int
    values: tuple[int, ...]

    def __post_init__(self) -> None:
        fields = [(self.id, 16), (self.flags, 16), *((value, 32) for value in self.values)]
        if not all(type(number) is int and 0 <= number < 1 << width for number, width in fields):
            raise ValueError(f"no filter of HDF5 has the numbers {self.id!r}, {self.flags!r}, {self.values!r:.100}")

    @property
    def label(self) -> str:
        """Number and name, for messages."""
        return f"filter {self.id} ({FILTER_NAMES.get(self.id, 'unknown')})"

    def to_json(self) -> dict[str, JSON]:
        """As a codec configuration."""
        return {"id": self.id, "flags": self.flags, "values": list(self.values)}


@cache
def load_plugins() -> None:
    """Register the filters of hdf5plugin with HDF5, once, if it is installed."""
    if util.find_spec("hdf5plugin") is not None:
        import_module("hdf5plugin")


def check_available(filters: tuple[HDF5Filter, ...]) -> None:
    """Make sure that libhdf5 can undo every filter.

    Raises
    ------
    UnsupportedError
        If one is not registered, naming it.
    """
    from h5py import h5z  # noqa: PLC0415  the core does without h5py until a file needs it

    load_plugins()
    for step in filters:
        if not h5z.filter_avail(step.id):
            advice = "install virtualzarr-refs[filters]" if util.find_spec("hdf5plugin") is None else "none is known"
            raise UnsupportedError(f"no decoder for an HDF5 filter is installed; {advice}", feature=step.label)
