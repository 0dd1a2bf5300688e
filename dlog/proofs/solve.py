"""Bodies of rules, solved for given values of some variables: a literal at a time, the most selective next, many bindings at
once. Bindings come in pieces and depth first, so that one solution does not cost the making of all.

Within a recursive stratum rows have ranks, the iteration at which they appear. `Below` keeps a body to rows that were there
before an iteration, which is what makes proofs well-founded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias, assert_never

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import (
    Aggregate,
    Atom,
    Compare,
    Constant,
    Functor,
    Generator,
    Kind,
    Literal,
    Negation,
    Term,
    Unpack,
    Variable,
)
from dlog.engine.ir.short_functors import NARROWING
from dlog.engine.ir.traversal import term_variables
from dlog.proofs.aggregates import reduced
from dlog.proofs.stored import BLOCK, Stored
from dlog.proofs.terms import Frame, Terms

Relations: TypeAlias = Callable[[str], Stored]


@dataclass(frozen=True, slots=True)
class Below:
    """A bound on ranks: of these relations, only rows with a rank less than `rank` count; so it is `inside` negations and
    aggregates, or not."""

    relations: frozenset[str] = frozenset()
    rank: int = 0
    inside: bool = True


EVERYTHING = Below()


@dataclass(frozen=True, slots=True)
class Solver:
    """Solves bodies of one rule. With `every` each combination of rows is a solution, else atoms that bind nothing are matched
    with one row, the first to appear."""

    relations: Relations
    terms: Terms
    below: Below = EVERYTHING
    every: bool = False

    @property
    def inside(self) -> Solver:
        """The solver for what negations and aggregates say."""
        return self if self.below.inside else replace(self, below=EVERYTHING)

    def of_every_row(self) -> Solver:
        """The same, for which each combination of rows is a solution."""
        return replace(self, every=True)

    def solutions(self, body: Sequence[Literal], frame: Frame) -> Iterator[Frame]:
        """The bindings in `frame`, extended in all ways that satisfy the body; no piece is empty."""
        if not frame.rows:
            return
        if not body:
            yield frame
            return
        literal = self.next(body, frame)
        rest = [x for x in body if x is not literal]
        for piece in self.step(literal, frame):
            for low in range(0, piece.rows, BLOCK):
                part = piece if piece.rows <= BLOCK else piece.take(np.arange(low, min(low + BLOCK, piece.rows)))
                yield from self.solutions(rest, part)

    def step(self, literal: Literal, frame: Frame) -> Iterator[Frame]:
        """The extensions of the bindings that satisfy one literal, which is ready."""
        match literal:
            case Atom():
                yield from self._match(literal, frame)
            case Negation(atom=atom):
                yield frame.take(~self.inside.exists(atom, frame))
            case Compare():
                yield self._compare(literal, frame)
            case Unpack():
                yield self._unpack(literal, frame)
            case Generator():
                yield self._generate(literal, frame)
            case Aggregate():
                yield self.inside._aggregate(literal, frame)
            case _:
                assert_never(literal)

    # --------------------------------------------------------------------------------------------------------------- order

    def next(self, body: Sequence[Literal], frame: Frame) -> Literal:
        """The literal to take next: whatever is ready before an atom, atoms by how many rows they are likely to give, and
        aggregates when no atom is left that has a bound argument."""
        bound = set(frame.values)
        return min(body, key=lambda literal: self._cost(literal, bound))

    def _cost(self, literal: Literal, known: set[int]) -> float:
        match literal:
            case Atom(args=args):
                given = sum(isinstance(a, Constant) or (isinstance(a, Variable) and a.id in known) for a in args)
                stored = self.relations(literal.relation)
                return 1.0 + stored.estimate(given) + (0.0 if given or not args else 1e12)
            case Aggregate():
                return 1e11 if ready(literal, known) else np.inf
            case Generator():
                return 1.0 if ready(literal, known) else np.inf
            case Negation() | Compare() | Unpack():
                return 0.0 if ready(literal, known) else np.inf

    # --------------------------------------------------------------------------------------------------------------- atoms

    def _match(self, atom: Atom, frame: Frame) -> Iterator[Frame]:
        stored = self.relations(atom.relation)
        places, keys = self._key(atom, frame)
        fresh = [(c, a.id) for c, a in enumerate(atom.args) if isinstance(a, Variable) and a.id not in frame.values]
        for origin, found in stored.pairs(places, keys, frame.rows):
            origin, found = self._in_time(atom.relation, stored, origin, found)
            if not fresh and not self.every:
                origin, found = _first_of_each(stored, origin, found)
            taken = frame.take(origin)
            picks = taken.picks | {id(atom): found}
            yield _bind_rows(Frame(len(found), taken.values, picks), stored, fresh, found)

    def _in_time(
        self, relation: str, stored: Stored, origin: np.ndarray, found: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The pairs whose rows were there before the iteration in question."""
        if relation not in self.below.relations or stored.ranks is None:
            return origin, found
        early = stored.ranks[found] < self.below.rank
        return origin[early], found[early]

    def exists(self, atom: Atom, frame: Frame) -> np.ndarray:
        """A mask of the bindings for which the atom has a row."""
        mask = np.zeros(frame.rows, bool)
        places, keys = self._key(atom, frame)
        stored = self.relations(atom.relation)
        for origin, found in stored.pairs(places, keys, frame.rows):
            origin, _ = self._in_time(atom.relation, stored, origin, found)
            mask[origin] = True
        return mask

    def _key(self, atom: Atom, frame: Frame) -> tuple[tuple[int, ...], list[np.ndarray]]:
        """The columns in which the atom has values, and these."""
        places: list[int] = []
        keys: list[np.ndarray] = []
        for column, arg in enumerate(atom.args):
            if isinstance(arg, Constant) or (isinstance(arg, Variable) and arg.id in frame.values):
                places.append(column)
                keys.append(self.terms.value(arg, frame)[0])
        return tuple(places), keys

    # ---------------------------------------------------------------------------------------------------------- conditions

    def _compare(self, compare: Compare, frame: Frame) -> Frame:
        if (target := binds(compare, set(frame.values))) is not None:
            variable, term = target
            column, has_value = self.terms.value(term, frame)
            return frame.bind(variable, column).take(has_value)
        return frame.take(self.terms.holds(compare, frame))

    def _unpack(self, unpack: Unpack, frame: Frame) -> Frame:
        frame = frame.take(frame.values[unpack.value.id] != 0)
        for arg, column in zip(unpack.fields, self.terms.fields(unpack.type, frame.values[unpack.value.id]), strict=True):
            if isinstance(arg, Variable) and arg.id not in frame.values:
                frame = frame.bind(arg.id, column)
        # Checks come second: a variable may be bound by one field and tested by another.
        mask = np.ones(frame.rows, bool)
        for arg, column in zip(unpack.fields, self.terms.fields(unpack.type, frame.values[unpack.value.id]), strict=True):
            if arg is not None:
                mask &= self.terms.value(arg, frame)[0] == column
        return frame.take(mask)

    def _generate(self, generator: Generator, frame: Frame) -> Frame:
        args: list[np.ndarray] = []
        for arg in generator.args:
            column, has_value = self.terms.value(arg, frame)
            args = [a[has_value] for a in args]
            args.append(column[has_value])
            frame = frame.take(has_value)
        columns, origin = self.terms.rows(generator, args)
        frame = frame.take(origin)
        mask = np.ones(frame.rows, bool)
        for result, column in zip(generator.results, columns, strict=True):
            if isinstance(result, Variable) and result.id not in frame.values:
                frame = frame.bind(result.id, column)
            elif result is not None:
                mask &= self.terms.value(result, frame)[0] == column
        return frame.take(mask)

    def _aggregate(self, aggregate: Aggregate, frame: Frame) -> Frame:
        values, has_value = reduced(self, aggregate, frame)
        bound = frame.values.get(aggregate.result.id)
        if bound is None:
            return frame.bind(aggregate.result.id, values).take(has_value)
        return frame.take(has_value & agree(values, bound, aggregate.kind))


def agree(left: np.ndarray, right: np.ndarray, kind: Kind) -> np.ndarray:
    """A mask of values that are the same; floats but for the order in which they were added up."""
    if kind is Kind.FLOAT:
        return np.isclose(left.view(np.float64), right.view(np.float64), rtol=1e-9, atol=0.0, equal_nan=True)
    return np.asarray(left == right)


def _bind_rows(frame: Frame, stored: Stored, fresh: Sequence[tuple[int, int]], found: np.ndarray) -> Frame:
    """Binds new variables to the columns of the rows found; a repeated one keeps the rows that agree."""
    mask = np.ones(frame.rows, bool)
    values = dict(frame.values)
    for column, variable in fresh:
        words = stored.columns[column][found]
        if variable in values:
            mask &= values[variable] == words
        else:
            values[variable] = words
    made = Frame(frame.rows, values, frame.picks)
    return made if mask.all() else made.take(mask)


def _first_of_each(stored: Stored, origin: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each number one row, the earliest."""
    ranks = np.zeros(len(found), np.int32) if stored.ranks is None else stored.ranks[found]
    order = np.lexsort((found, ranks, origin))
    firsts = np.flatnonzero(np.diff(origin[order], prepend=-1))
    return origin[order[firsts]], found[order[firsts]]


# ------------------------------------------------------------------------------------------------------------- what is ready


def ready(literal: Literal, bound: set[int]) -> bool:
    """Whether a literal can be taken when these variables have values."""
    match literal:
        case Atom():
            return True
        case Negation(atom=atom):
            return all(a.id in bound for a in atom.args if isinstance(a, Variable))
        case Compare():
            return binds(literal, bound) is not None or {*term_variables(literal.left), *term_variables(literal.right)} <= bound
        case Unpack(value=value):
            return value.id in bound
        case Generator(args=args):
            return all(v in bound for arg in args for v in term_variables(arg))
        case Aggregate(outer=outer):
            return all(v.id in bound for v in outer)


def binds(compare: Compare, bound: set[int]) -> tuple[int, Term] | None:
    """The variable that an equation gives a value to, and which; sums and differences are solved for either operand.

    >>> x, y = Variable(0), Variable(1)
    >>> sum = Functor("+", (y, Constant(1, Kind.NUMBER)), Kind.NUMBER, Kind.NUMBER)
    >>> binds(Compare("=", x, sum, Kind.NUMBER), {0})[1].op
    '-'
    """
    if compare.op != "=":
        return None
    for left, right in ((compare.left, compare.right), (compare.right, compare.left)):
        if not set(term_variables(right)) <= bound:
            continue
        if isinstance(left, Variable):
            return None if left.id in bound else (left.id, right)
        if isinstance(left, Functor) and left.kind in (Kind.NUMBER, Kind.UNSIGNED):
            if left.op not in NARROWING or not isinstance(left.args[0], Functor):
                return _inverted(left, right, bound)
            found = _inverted(left.args[0], right, bound)
            return found and (found[0], Functor(left.op, (found[1],), left.kind, left.result, left.span))
    return None


def _inverted(functor: Functor, value: Term, bound: set[int]) -> tuple[int, Term] | None:
    """The same for `functor = value`. Integers wrap around, so this is exact."""
    left_known, right_known = (set(term_variables(a)) <= bound for a in (*functor.args, *functor.args)[:2])
    match functor:
        case Functor(op="+" | "-" as op, args=(Variable(id=v), other)) if right_known and not left_known:
            return v, Functor("-" if op == "+" else "+", (value, other), functor.kind, functor.result)
        case Functor(op="+", args=(other, Variable(id=v))) if left_known and not right_known:
            return v, Functor("-", (value, other), functor.kind, functor.result)
        case Functor(op="-", args=(other, Variable(id=v))) if left_known and not right_known:
            return v, Functor("-", (other, value), functor.kind, functor.result)
        case Functor():
            return None
