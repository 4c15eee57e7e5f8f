"""The codec ``reshape`` of the Zarr extensions: the same elements in the same order, with other axes.

Arrays of several files are stacked along a new axis of length 1; codecs that heed the shape of a chunk go on to see the
one that they encoded.

.. code-block:: json

    {"name": "reshape", "configuration": {"shape": [[0, 1], [2]]}}

Each element of ``shape`` is an axis of what the codecs after this one see: a list of axes that are merged into it, a
length, or -1 for what is left (zarr-extensions, "reshape codec").
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, cast, override

import numpy as np
from zarr.abc.codec import ArrayArrayCodec
from zarr.core.common import JSON

from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.codecs.names import RESHAPE as NAME
from virtualzarr_refs.errors import DecodeError, ReferenceSetError

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import NDBuffer

type Axis = int | tuple[int, ...]


@dataclass(frozen=True)
class ReshapeCodec(ArrayArrayCodec):
    """Gives chunks other axes.

    Parameters
    ----------
    shape : tuple of int or tuple of int
        Of a stored chunk; see the module.
    """

    is_fixed_size = True

    shape: tuple[Axis, ...]

    @classmethod
    def from_dict(cls, data: dict[str, JSON]) -> Self:
        """Read the codec's member of ``zarr.json``.

        Raises
        ------
        ReferenceSetError
            If the configuration is malformed.
        """
        try:
            members = cast("dict[str, Any]", data["configuration"])["shape"]
            shape = tuple(tuple(member) if isinstance(member, list) else member for member in members)
        except (KeyError, TypeError) as error:
            raise ReferenceSetError(f"the codec {NAME} is misconfigured: {error!r}") from error
        _check(shape)
        return cls(shape)

    def to_dict(self) -> dict[str, JSON]:
        """The codec's member of ``zarr.json``."""
        shape: list[JSON] = [axis if isinstance(axis, int) else list(axis) for axis in self.shape]
        return {"name": NAME, "configuration": {"shape": shape}}

    def resolve_metadata(self, chunk_spec: ArraySpec) -> ArraySpec:
        """What the codecs after this one decode to. zarr also asks about shapes that no chunk has."""
        return replace(chunk_spec, shape=self._stored(chunk_spec.shape))

    def _stored(self, shape: Shape) -> Shape:
        """The shape of a chunk as it was stored; it only has as many elements if the configuration fits."""
        if any(axis >= len(shape) for axes in self.shape if not isinstance(axes, int) for axis in axes):
            raise DecodeError(f"the codec {NAME} has no use for chunks of shape {shape}", feature=str(self.shape))
        lengths = [axis if isinstance(axis, int) else math.prod(shape[i] for i in axis) for axis in self.shape]
        if -1 in lengths:
            known = math.prod(length for length in lengths if length != -1)
            lengths[lengths.index(-1)] = math.prod(shape) // max(1, known)
        return tuple(lengths)

    def _decode_sync(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        self._check_size(chunk_spec.shape)
        return chunk_data.reshape(chunk_spec.shape)

    async def _decode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        return self._decode_sync(chunk_data, chunk_spec)

    def _encode_sync(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        self._check_size(chunk_spec.shape)
        return chunk_data.reshape(self._stored(chunk_spec.shape))

    @override
    async def _encode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer | None:
        return self._encode_sync(chunk_data, chunk_spec)

    @override
    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """As much as before."""
        return input_byte_length

    def _check_size(self, shape: Shape) -> None:
        stored = self._stored(shape)
        if math.prod(stored) != math.prod(shape):
            raise DecodeError(f"the codec {NAME} cannot make chunks of shape {shape} of {stored}")


def _check(shape: tuple[Any, ...]) -> None:
    """Refuse what the specification does not allow: axes out of order, twice, or not merged from neighbours."""
    axes = [axis for member in shape if isinstance(member, tuple) for axis in member]
    lengths = [member for member in shape if not isinstance(member, tuple)]
    are_numbers = all(type(number) is int for number in (*axes, *lengths))
    if (
        not are_numbers
        or axes != sorted(set(axes))
        or any(axis < 0 for axis in axes)
        or any(length < 1 and length != -1 for length in lengths)
        or lengths.count(-1) > 1
        or any(np.ptp(member) != len(member) - 1 for member in shape if isinstance(member, tuple) and member)
    ):
        raise ReferenceSetError(f"the codec {NAME} has a shape that cannot be understood: {shape!r:.100}")
