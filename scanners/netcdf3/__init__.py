"""NetCDF classic, in its three versions: classic, 64-bit offset and 64-bit data (CDF-5).

The scan parses the header into records (`header`, `types`), works out where each variable's values lie (`layout`),
and builds arrays (`scanner`). `truth` reads the same file through the NetCDF library, to compare with.
"""

from scanners.netcdf3.scanner import NetCDF3Scanner

__all__ = ["NetCDF3Scanner"]
