"""Files whose variables are used as shards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

SHAPE = (7, 30, 25)
CHUNKS = (2, 10, 25)

STORAGE = {
    "raw": {},
    "deflate": {"compression": "gzip", "compression_opts": 1},
    "shuffle_deflate": {"compression": "gzip", "compression_opts": 1, "shuffle": True},
}
"""How HDF5 encodes each of the variables that `write` makes; chunks of 2 are padded at the end of an axis of 7."""


def write(path: Path, *, others: bool = True, userblock: int = 0) -> Path:
    """Variables of three encodings and, among `others`, such as make poor shards."""
    random = np.random.default_rng(0)
    with h5py.File(path, "w", userblock_size=userblock) as file:
        file.attrs["title"] = "shards"
        for name, storage in STORAGE.items():
            dataset = file.create_dataset(name, SHAPE, "f4", chunks=CHUNKS, fillvalue=7, **storage)
            dataset.attrs["units"] = "K"
            dataset[:4] = random.integers(0, 50, (4, *SHAPE[1:]))  # later chunks are missing
            dataset[6, 5] = 3
        file["group/counts"] = np.arange(40, dtype="i2")
        if others:
            file.create_dataset("lzf", data=random.integers(0, 9, 500), chunks=(40,), compression="lzf")
            file["text"] = np.array(["a", "bc"], dtype=h5py.string_dtype())
            file["scalar"] = 2.5
            skipping = file.create_dataset("skipping", (8,), "i4", chunks=(4,), compression="gzip")
            skipping.id.write_direct_chunk((0,), np.arange(4, dtype="i4").tobytes(), filter_mask=1)
            skipping[4:] = 9
    return path


def values(path: Path) -> dict[str, np.ndarray]:
    """What h5py reads of every dataset of numbers, by path."""
    found: dict[str, np.ndarray] = {}

    def take(name: str, node: object) -> None:
        if isinstance(node, h5py.Dataset) and node.dtype.kind != "O":
            found[name] = node[()]

    with h5py.File(path) as file:
        file.visititems(take)
    return found


@dataclass
class Counted:
    """Counts the bytes that a pool reads from sources."""

    bytes: int = 0

    def wrap(self, read):
        def counted(url, ranges):
            self.bytes += sum(r.length for r in ranges)
            return read(url, ranges)

        return counted
