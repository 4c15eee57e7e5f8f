"""The versions of the format, and the types of values.

"NetCDF Classic Format Specification", "The Format in Detail"; for version 5 the "CDF-5 File Format Specification".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Version:
    """What differs between the versions of the format.

    Parameters
    ----------
    count_size : int
        Of counts, lengths and numbers of dimensions, in bytes.
    offset_size : int
        Of offsets in the file, in bytes.
    last_type : int
        The highest number of a type.
    largest_size : int
        Of all but the last variable, or of one record of them, in bytes.
    """

    count_size: int
    offset_size: int
    last_type: int
    largest_size: int

    @property
    def streaming(self) -> int:
        """The number of records that stands for one that the writer did not know."""
        return (1 << 8 * self.count_size) - 1


# "Note on vsize" and "Computing File Offsets": what a variable's size, rounded up, may be.
VERSIONS: Mapping[int, Version] = {
    1: Version(count_size=4, offset_size=4, last_type=6, largest_size=2**31 - 4),
    2: Version(count_size=4, offset_size=8, last_type=6, largest_size=2**32 - 4),
    5: Version(count_size=8, offset_size=8, last_type=11, largest_size=2**63 - 4),
}


@dataclass(frozen=True, slots=True)
class ExternalType:
    """How values of a type are stored.

    Parameters
    ----------
    stored : numpy.dtype
        Big-endian.
    default_fill : object
        What the NetCDF library writes where nothing else was written; "Default fill values".
    """

    stored: np.dtype[Any]
    default_fill: Any

    @property
    def native(self) -> np.dtype[Any]:
        """The same in native byte order."""
        return self.stored.newbyteorder("=")

    @property
    def size(self) -> int:
        """Of one value, in bytes."""
        return self.stored.itemsize

    @property
    def is_char(self) -> bool:
        """Whether values are characters."""
        return self.stored.kind == "S"


_FILL_REAL = float.fromhex("0x1.ep+122")

# nc_type
TYPES: Mapping[int, ExternalType] = {
    1: ExternalType(np.dtype(">i1"), -127),
    2: ExternalType(np.dtype("S1"), b"\0"),
    3: ExternalType(np.dtype(">i2"), -32767),
    4: ExternalType(np.dtype(">i4"), -2147483647),
    5: ExternalType(np.dtype(">f4"), _FILL_REAL),
    6: ExternalType(np.dtype(">f8"), _FILL_REAL),
    7: ExternalType(np.dtype(">u1"), 255),
    8: ExternalType(np.dtype(">u2"), 65535),
    9: ExternalType(np.dtype(">u4"), 4294967295),
    10: ExternalType(np.dtype(">i8"), -9223372036854775806),
    11: ExternalType(np.dtype(">u8"), 18446744073709551614),
}
