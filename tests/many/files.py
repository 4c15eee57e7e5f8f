"""Files to scan, and scanners that kill whoever uses them."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from scanners.hdf5 import HDF5Scanner


def write(folder, count, bad=()):
    """Files with one array each; those numbered in `bad` are no files of any format."""
    paths = []
    for number in range(count):
        path = folder / f"{number}.h5"
        if number in bad:
            path.write_bytes(b"nothing")
        else:
            with h5py.File(path, "w") as file:
                file.create_dataset("v", data=np.full((6, 4), number), chunks=(2, 4))
        os.utime(path, ns=(10**18, 10**18))
        paths.append(path)
    return paths


@dataclass(frozen=True)
class Killer:
    """Kills its process at a file of some name: always, or as long as there is a flag, which it takes down."""

    victim: str
    flag: str | None = None
    name: str = "killer"

    def recognises(self, *_):
        return True

    def scan(self, source, options):
        if source.url.endswith(self.victim) and self._may_kill():
            os.kill(os.getpid(), signal.SIGKILL)
        return HDF5Scanner().scan(source, options)

    def _may_kill(self):
        if self.flag is None:
            return True
        try:
            Path(self.flag).unlink()
        except FileNotFoundError:
            return False
        return True
