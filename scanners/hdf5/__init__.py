"""HDF5 and NetCDF4.

The scan parses the file into records (`tree`, `attributes`), names dimensions as NetCDF does (`dimensions`),
decides for every dataset how it can be shown (`datatypes`, `pipelines`, `chunks`), and builds arrays (`arrays`).
"""

from scanners.hdf5.scanner import HDF5Scanner

__all__ = ["HDF5Scanner"]
