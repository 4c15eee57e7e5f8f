"""Sums and products of whole numbers, as generators of references use them; nothing else is understood.

Python's own parser reads the text, and only the nodes listed here are accepted from it. Nothing is evaluated
but additions, subtractions, multiplications, whole divisions and remainders of numbers.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Mapping

from virtualzarr_refs.errors import ReferenceSetError

type Value = int | str
type Expression = Callable[[Mapping[str, Value]], Value]

MAX_LENGTH = 100
"""Characters of an expression, which also bounds how deep it nests and how large its value gets."""

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def parse_expression(text: str, names: Collection[str]) -> Expression:
    """Read an expression such as ``(i * 4 + j) * 1000``.

    Parameters
    ----------
    text : str
        The expression. A name alone may stand for a text; in arithmetic it must stand for a number.
    names : collection of str
        The names it may use.

    Returns
    -------
    callable
        Takes the values of the names and returns the value of the expression. It raises ReferenceSetError if a
        text is calculated with, or a number divided by zero.

    Raises
    ------
    ReferenceSetError
        If the text is anything else.
    """
    if len(text) > MAX_LENGTH:
        raise ReferenceSetError(f"an expression of {len(text)} characters is longer than {MAX_LENGTH}")
    try:
        body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise _refused(text) from None
    return _compile(body, text, names)


def _compile(node: ast.expr, text: str, names: Collection[str]) -> Expression:
    match node:
        case ast.Constant(value=int(number)) if type(number) is int:
            return lambda _: number
        case ast.Name(id=name) if name in names:
            return operator.itemgetter(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _binary(operator.sub, lambda _: 0, _compile(operand, text, names), text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _binary(_OPERATORS[type(op)], _compile(left, text, names), _compile(right, text, names), text)
        case _:
            raise _refused(text)


def _binary(operate: Callable[[int, int], int], left: Expression, right: Expression, text: str) -> Expression:
    def evaluate(values: Mapping[str, Value]) -> int:
        a, b = left(values), right(values)
        if isinstance(a, str) or isinstance(b, str):
            raise ReferenceSetError(f"{text!r} calculates with a text")
        try:
            return operate(a, b)
        except ZeroDivisionError:
            raise ReferenceSetError(f"{text!r} divides by zero") from None

    return evaluate


def _refused(text: str) -> ReferenceSetError:
    return ReferenceSetError(
        f"{{{{{text}}}}} is more than a known name or the arithmetic of whole numbers, and nothing else is "
        "evaluated; expand it with the tool that made the reference set"
    )
