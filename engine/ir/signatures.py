"""What a row of the table of functors says, and short ways to write rows that are alike.

A signature names the kinds each argument may have and the result's. Without a result's kind, all arguments and the result have
one common kind among those: that is how `+` and `min` are overloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final, Literal, TypeAlias

from dlog.dataclass import dataclass
from dlog.engine.ir import scalars
from dlog.engine.ir.kinds import FLOAT, INTEGRAL, NUMBER, ORDERED, SYMBOL, Kinds
from dlog.engine.ir.rules import Domain, Kind

Form: TypeAlias = Literal["call", "infix", "prefix", "internal"]
"""How a functor is written: `f(x, y)`, `x f y`, `f x`, or not at all: the compiler makes it."""

KEEP: Final = "KEEP"
"""The opcode of a functor whose value has the bits of its argument: there is nothing to do."""


@dataclass(frozen=True, slots=True)
class Signature:
    """`args` per argument (the last repeats when `variadic`); `result` None says: of the arguments' common kind."""

    args: tuple[Kinds, ...]
    result: Kind | None
    variadic: bool = False

    def accepts(self, count: int) -> bool:
        return count >= len(self.args) if self.variadic else count == len(self.args)

    def arg(self, index: int) -> Kinds:
        return self.args[min(index, len(self.args) - 1)]


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A functor of the language.

    `opcodes` names, by the kind of the first argument, the kernels' operation: of kernels/values/texts.py for symbols, else of
    kernels/arithmetic.py; more than two arguments are taken from the left. `overloads` are functors of their own that it
    becomes on some kinds. `partial` tells on which arguments it stops the run; empty: it is total. `value` computes it in
    Python, up to `scalars.as_kind`. `example` is a condition that holds.
    """

    name: str
    signature: Signature
    opcodes: Mapping[Kind, str]
    value: Callable[..., Any]
    documentation: str
    example: str
    form: Form = "call"
    symbol: str = ""
    """What is written, where that is not the name."""
    overloads: Mapping[Kind, str] = field(default_factory=dict)
    identity: bool = False
    """Whether it is the value itself where that has the result's kind already: a conversion."""
    partial: str = ""
    monotone: Literal["", "first", "all"] = ""
    """The arguments with which a number it makes never falls."""
    domains: tuple[Domain, ...] = ()
    """What the arguments and the result are, where these are no mere numbers; else PLAIN."""

    @property
    def written(self) -> str:
        return self.symbol or self.name

    @property
    def by_argument(self) -> bool:
        """Whether an operation is told by the kind of its arguments and not by that of its result."""
        result = self.signature.result
        kinds = self.signature.args[0] - self.overloads.keys() - ({result} if self.identity else set())
        return result is None or len(kinds) > 1


def same(allowed: Kinds, count: int = 2, variadic: bool = False) -> Signature:
    """Arguments and result have one kind."""
    return Signature((allowed,) * count, None, variadic)


def alike(kinds: Kinds, opcode: str) -> dict[Kind, str]:
    """The same operation of each kind, in the kinds' order: that of a frozenset changes from run to run."""
    return {kind: opcode for kind in Kind if kind in kinds}


def numeric(number: str, unsigned: str, floating: str) -> dict[Kind, str]:
    return {Kind.NUMBER: number, Kind.UNSIGNED: unsigned, Kind.FLOAT: floating}


def bitwise(name: str, opcode: str, value: Callable[..., Any], documentation: str, example: str) -> Intrinsic:
    return Intrinsic(name, same(INTEGRAL), alike(INTEGRAL, opcode), value, documentation, example, "infix")


def reading(name: str, result: Kind, opcode: str, overloads: dict[Kind, str], kind: str, example: str) -> Intrinsic:
    """A conversion that reads the number a text begins with."""
    return Intrinsic(
        name,
        Signature((ORDERED,), result),
        {Kind.SYMBOL: opcode},
        float if result is Kind.FLOAT else int,
        f"The value as {kind}; of a symbol, the one that its text begins with.",
        example,
        overloads=overloads,
        identity=True,
        partial=f"a text that does not begin with {kind}",
    )


def converting(name: str, source: Kinds, result: Kind, opcode: str, value: Callable[..., Any], example: str) -> Intrinsic:
    (kind,) = source
    rounded = ", towards zero" if kind is Kind.FLOAT else ""
    documentation = f"The {kind.value} as {'an' if result is Kind.UNSIGNED else 'a'} {result.value}{rounded}."
    return Intrinsic(name, Signature((source,), result), {kind: opcode}, value, documentation, example)


def rounding(name: str, opcode: str, value: Callable[[float], int], documentation: str, example: str) -> Intrinsic:
    return Intrinsic(name, same(FLOAT, 1), {Kind.FLOAT: opcode}, scalars.whole(value), documentation, example)


def on_calendar(
    name: str,
    opcode: str,
    value: Callable[..., int],
    domains: tuple[Domain, ...],
    documentation: str,
    example: str,
    monotone: Literal["", "first", "all"] = "",
) -> Intrinsic:
    """A functor on days or microseconds; `domains` are those of its arguments and its result."""
    signature = Signature((NUMBER,) * (len(domains) - 1), Kind.NUMBER)
    return Intrinsic(
        name, signature, {Kind.NUMBER: opcode}, value, documentation, example, monotone=monotone, domains=domains
    )


def calendar_text(
    name: str, domain: Domain, opcode: str, value: Callable[[str], int], documentation: str, example: str
) -> Intrinsic:
    """A functor that reads a date or a time."""
    return Intrinsic(
        name,
        Signature((SYMBOL,), Kind.NUMBER),
        {Kind.SYMBOL: opcode},
        value,
        documentation,
        example,
        partial=f"a text that is no {name}",
        domains=(Domain.PLAIN, domain),
    )
