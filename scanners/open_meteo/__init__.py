"""Open-Meteo's ``.om`` files, versions 1 to 3.

The scan reads the tree of variables (`window`, `records`, `tree`), then where the chunks of each array lie
(`lookup_table`), and builds arrays and groups (`arrays`, `scanner`). What Open-Meteo publishes says its times only in
file names and in a document beside the files; `with_time` adds them.
"""

from scanners.open_meteo.scanner import OpenMeteoScanner
from scanners.open_meteo.times import time_axis, with_time

__all__ = ["OpenMeteoScanner", "time_axis", "with_time"]
