"""What netCDF4-python reads from damaged files, in a process of its own, for it may crash.

Reads paths from standard input; writes one line of JSON for each, which names the error or holds the variables.
"""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

import netCDF4
import numpy as np

LARGE = 1 << 20


def variable(found: netCDF4.Variable) -> Any:
    """Its type, shape and values; no values if they are more than any of the files can hold."""
    shape = [int(n) for n in found.shape]
    if np.prod(shape, dtype=float) * np.dtype(found.dtype).itemsize > LARGE:
        return None
    values = np.asarray(found[...])
    return [np.dtype(found.dtype).newbyteorder("=").str, shape, base64.b64encode(values.tobytes()).decode()]


def variables(path: str) -> dict[str, Any]:
    """Every variable of a file."""
    with netCDF4.Dataset(path) as dataset:
        dataset.set_auto_maskandscale(False)
        dataset.set_auto_chartostring(False)
        return {name: variable(found) for name, found in dataset.variables.items()}


def main() -> None:
    """Answer line by line."""
    for line in sys.stdin:
        try:
            answer: Any = variables(line.rstrip("\n"))
        except Exception as error:  # noqa: BLE001  whatever it is, the library does not read the file
            answer = repr(error)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
