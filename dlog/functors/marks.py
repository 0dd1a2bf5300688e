"""What a user says of a function: how it is called."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getattr_static
from typing import Any, Final, Literal, TypeAlias, overload

from dlog.dataclass import dataclass

Function: TypeAlias = Callable[..., Any]
Blocks: TypeAlias = Literal["", "numpy", "arrow"]

_MARK: Final = "__dlog_functor__"


@dataclass(frozen=True, slots=True)
class FunctorMark:
    """What a function is called with, values (`""`) or blocks, and whether Numba may compile it."""

    blocks: Blocks = ""
    compiled: bool = False


@overload
def functor(function: Function, /) -> Function: ...
@overload
def functor(*, blocks: bool | Literal["numpy", "arrow"] = False, compiled: bool = True) -> Callable[[Function], Function]: ...
def functor(
    function: Function | None = None, /, *, blocks: bool | Literal["numpy", "arrow"] = False, compiled: bool = True
) -> Any:
    """Marks a function as one for a functor.

    Parameters
    ----------
    blocks
        It takes arrays, one for each parameter, and returns one with a value for each row. True or "numpy": int64, uint64 and
        float64, or objects for symbols and records. "arrow": Arrow arrays, with records as texts or structs.
    compiled
        Whether Numba may compile it, where its parameters, at most three, and its result are numbers: then integers are words
        of 64 bits, and what it computes in between wraps around as they do.

    >>> import dlog
    >>> @dlog.functor
    ... def half(x):
    ...     return x // 2
    >>> text = '''
    ... .functor half(x: number): number
    ... .decl r(x: number)
    ... r(@half(7)).
    ... '''
    >>> list(dlog.run(text, functors={"half": half})["r"])
    [(3,)]
    """
    if blocks not in (True, False, "numpy", "arrow"):
        raise ValueError(f'blocks is True, "numpy" or "arrow", not {blocks!r}')
    kind: Blocks = "numpy" if blocks is True else blocks or ""

    def mark(marked: Function) -> Function:
        setattr(marked, _MARK, FunctorMark(kind, compiled and not kind))
        return marked

    return mark if function is None else mark(function)


def is_marked(value: object) -> bool:
    """Whether it is said of something that it is for a functor."""
    return isinstance(getattr_static(value, _MARK, None), FunctorMark)


def mark_of(function: Function) -> FunctorMark:
    """What is said of a function; one without a mark is called value by value."""
    found: FunctorMark = getattr(function, _MARK, FunctorMark())
    return found
