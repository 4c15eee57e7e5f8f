"""Operations on 128 bits of packed integers at once, for the compiled decoder.

Each is a few instructions of a processor, written in LLVM's terms since numba has no type for a vector. A vector
holds as many integers as fit: 16, 8, 4 or 2, by the type of the array that is written to.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_WORD = ir.IntType(64)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:  # noqa: ANN401  numba's types
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


def _vector_type(array_type: Any) -> Any:  # noqa: ANN401
    bits: int = array_type.dtype.bitwidth
    return ir.VectorType(ir.IntType(bits), 128 // bits)


def _splat(builder: Any, vector: Any, value: Any) -> Any:  # noqa: ANN401
    """A vector of which every integer is `value`, cut to fit."""
    element = vector.element
    value = builder.trunc(value, element) if value.type.width > element.width else value
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.IntType(32)(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), vector.count), None))


def _load_vector(builder: Any, vector: Any, pointer: Any) -> Any:  # noqa: ANN401
    return builder.load(builder.bitcast(pointer, vector.as_pointer()), align=1)


def _store_vector(builder: Any, vector: Any, pointer: Any) -> None:  # noqa: ANN401
    builder.store(vector, builder.bitcast(pointer, vector.type.as_pointer()), align=1)


def _load(_: object, data: Any, position: Any) -> Any:  # noqa: ANN401, ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        pointer = _pointer(context, builder, signature.args[0], *arguments)
        return builder.load(builder.bitcast(pointer, _WORD.as_pointer()), align=1)

    return types.uint64(data, types.int64), generate


load_word: Any = intrinsic(_load)
"""``load_word(data, position)``: the 64-bit word that begins at a byte, on whatever address."""


def _unpack(_: object, data: Any, position: Any, shift: Any, mask: Any, out: Any, place: Any) -> Any:  # noqa: ANN401, ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        data, position, shift, mask, out, place = arguments
        vector = _vector_type(signature.args[4])
        low, high = (
            _load_vector(builder, vector, _pointer(context, builder, signature.args[0], data, at))
            for at in (position, builder.add(position, _WORD(16)))
        )
        # Shifted twice, as a shift by all bits has no result.
        up = builder.sub(_WORD(vector.element.width - 1), shift)
        high = builder.shl(builder.shl(high, _splat(builder, vector, _WORD(1))), _splat(builder, vector, up))
        low = builder.lshr(low, _splat(builder, vector, shift))
        both = builder.and_(builder.or_(low, high), _splat(builder, vector, mask))
        _store_vector(builder, both, _pointer(context, builder, signature.args[4], out, place))
        return context.get_dummy_value()

    return types.void(data, types.int64, types.int64, types.uint64, out, types.int64), generate


unpack_row: Any = intrinsic(_unpack)
"""``unpack_row(data, position, shift, mask, out, place)``: put integers in place, one from each lane.

Those of a lane are in its words one behind the other; a word of each lane makes 16 bytes. The integers begin `shift`
bits up in the words at `position` and may go on in the next ones.
"""


def _sum(_: object, values: Any, place: Any, carry: Any, is_signed: Any) -> Any:  # noqa: ANN401, ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        values, place, carry, is_signed = arguments
        pointer = _pointer(context, builder, signature.args[0], values, place)
        steps = _load_vector(builder, _vector_type(signature.args[0]), pointer)
        steps = builder.select(is_signed, _from_zigzag(builder, steps), steps)
        return _scan(builder, builder.add, steps, carry, pointer)

    return values.dtype(values, types.int64, values.dtype, types.boolean), generate


def _from_zigzag(builder: Any, steps: Any) -> Any:  # noqa: ANN401
    one = _splat(builder, steps.type, _WORD(1))
    return builder.xor(builder.lshr(steps, one), builder.neg(builder.and_(steps, one)))


def _xor(_: object, values: Any, place: Any, carry: Any, shift: Any) -> Any:  # noqa: ANN401, ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        values, place, carry, shift = arguments
        pointer = _pointer(context, builder, signature.args[0], values, place)
        vector = _vector_type(signature.args[0])
        bits = _load_vector(builder, vector, pointer)
        kind = ir.FunctionType(vector, [vector])
        name = f"llvm.bitreverse.v{vector.count}i{vector.element.width}"
        bits = builder.call(builder.module.declare_intrinsic(name, fnty=kind), [bits])
        return _scan(builder, builder.xor, builder.lshr(bits, _splat(builder, vector, shift)), carry, pointer)

    return values.dtype(values, types.int64, values.dtype, types.int64), generate


def _scan(builder: Any, combine: Any, steps: Any, carry: Any, pointer: Any) -> Any:  # noqa: ANN401
    """Combine each integer with all before it and the carry, in a number of steps that grows with the logarithm."""
    vector, count = steps.type, steps.type.count
    zero, indexes = ir.Constant(vector, None), ir.VectorType(ir.IntType(32), count)
    distance = 1
    while distance < count:
        mask = ir.Constant(indexes, [count - distance + i for i in range(count)])
        steps = combine(steps, builder.shuffle_vector(zero, steps, mask))
        distance *= 2
    steps = combine(steps, _splat(builder, vector, carry))
    _store_vector(builder, steps, pointer)
    return builder.extract_element(steps, ir.IntType(32)(count - 1))


add_up: Any = intrinsic(_sum)
"""``add_up(values, place, carry, is_signed)``: turn a vector of differences into integers; returns the last.

Of signed ones 0, 1, 2, 3 stand for 0, -1, 1, -2.
"""

xor_up: Any = intrinsic(_xor)
"""``xor_up(values, place, carry, shift)``: turn a vector of differing bits, which are stored backwards and
shifted up, into words; returns the last. The shift is less than a word."""
