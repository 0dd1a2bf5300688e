"""Collections as bodies of rules: a collection is the sum of what some bodies match.

Each match of a body is a row as often as the product of the body's weight says. Bodies of one `origin` have come from one, by
conditions of which no two hold for the same match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from dlog.as_rules import terms as T
from dlog.as_rules.terms import Term, invertible, is_literal, replaced, variables
from dlog.dataclass import dataclass
from dlog.dataflow.collection import Variable as LoopVariable
from dlog.dataflow.kinds import Kind
from dlog.grammar.syntax import Atom, Constraint, Not, Variable
from dlog.grammar.syntax import Body as Literal


@dataclass(eq=False)
class Stored:
    """A relation of the program. `attributes` has the identifiers of the columns, `names` those of the collection; one that is
    no set has a last column with how often each row is there, which `positive` relations have never below one. Each of `keys`
    are places of columns that tell the others. `least` is the place of the value of which it keeps one, the least or the
    greatest, and `loop` the variable of the loop that it stands for."""

    name: str
    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    attributes: tuple[str, ...]
    weighted: bool = False
    positive: bool = True
    keys: tuple[tuple[int, ...], ...] = ()
    least: int | None = None
    loop: LoopVariable | None = None

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.attributes)})"

    @property
    def places(self) -> tuple[int, ...]:
        return tuple(range(len(self.names)))


@dataclass(frozen=True, slots=True)
class Read:
    """A positive atom; its arguments are variables and literals."""

    stored: Stored
    args: tuple[Term, ...]

    @property
    def atom(self) -> Atom:
        return Atom(self.stored.name, self.args)


@dataclass(frozen=True, slots=True)
class Series:
    """A variable that stands for each number from 0 until before an end. Who knows all other variables of `inverted` and its
    value knows the number."""

    variable: Variable
    end: Term
    inverted: Term


Origin: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Body:
    """`columns` are terms by name; `weight` are factors of how often a match counts, and `parts` the components of its diff
    where that is a tuple. `positive` says that the product of `weight` is one or more."""

    reads: tuple[Read, ...]
    columns: Mapping[str, Term]
    conditions: tuple[Literal, ...] = ()
    series: tuple[Series, ...] = ()
    weight: tuple[Term, ...] = ()
    parts: tuple[Term, ...] = ()
    positive: bool = True
    origin: Origin = field(default=())

    @property
    def literals(self) -> tuple[Literal, ...]:
        """The body as it is written."""
        generated = (Constraint("=", s.variable, T.call("range", T.ZERO, s.end)) for s in self.series)
        return (*(read.atom for read in self.reads), *generated, *self.conditions)

    @property
    def variables(self) -> tuple[str, ...]:
        """Those of its atoms and series, in order."""
        found = [name for read in self.reads for arg in read.args for name in variables(arg)]
        return tuple(dict.fromkeys([*found, *(s.variable.name for s in self.series)]))

    def where(self, conditions: Iterable[Literal]) -> Body:
        """Where conditions hold, too."""
        return replace(self, conditions=(*self.conditions, *(c for c in conditions if c not in self.conditions)))

    def with_columns(self, columns: Mapping[str, Term]) -> Body:
        return replace(self, columns=columns)

    def times(self, factor: Term, positive: bool) -> Body:
        """Each match as many times as often."""
        return replace(self, weight=(*self.weight, factor), positive=self.positive and positive)

    def substituted(self, values: Mapping[str, Term]) -> Body:
        """With other terms, variables or literals, in the place of variables."""
        if not values:
            return self
        return replace(
            self,
            reads=tuple(Read(r.stored, tuple(replaced(a, values) for a in r.args)) for r in self.reads),
            columns={name: replaced(term, values) for name, term in self.columns.items()},
            conditions=tuple(_replaced(c, values) for c in self.conditions),
            series=tuple(_series(s, values) for s in self.series),
            weight=tuple(replaced(t, values) for t in self.weight),
            parts=tuple(replaced(t, values) for t in self.parts),
        )

    def equated(self, left: Term, right: Term) -> Body | None:
        """Where two terms have the same value, which is not a float that is computed; None where none has."""
        left, right = (right, left) if is_literal(left) else (left, right)
        if left == right:
            return self
        if is_literal(left) and is_literal(right):
            return self if T.same_literal(left, right) else None
        bound = {s.variable.name for s in self.series}
        for this, other in ((left, right), (right, left)):
            if isinstance(this, Variable) and this.name not in bound and (is_literal(other) or isinstance(other, Variable)):
                return self.substituted({this.name: other})
        return self.where([Constraint("=", left, right)])


def _replaced(literal: Literal, values: Mapping[str, Term]) -> Literal:
    match literal:
        case Constraint(op, left, right):
            return Constraint(op, replaced(left, values), replaced(right, values))
        case Not(Atom(name, args)):
            return Not(Atom(name, tuple(replaced(arg, values) for arg in args)))
        case _:
            raise AssertionError(literal)


def _series(series: Series, values: Mapping[str, Term]) -> Series:
    variable = replaced(series.variable, values)
    assert isinstance(variable, Variable)
    return Series(variable, replaced(series.end, values), replaced(series.inverted, values))


class Fresh:
    """Variables that are not taken yet, and the kinds of all."""

    def __init__(self) -> None:
        self.kinds: dict[str, Kind] = {}

    def variable(self, name: str, kind: Kind) -> Variable:
        found = f"{name}~{len(self.kinds)}"
        self.kinds[found] = kind
        return Variable(found)

    def again(self, bodies: Sequence[Body]) -> list[Body]:
        """The same bodies with variables of their own."""
        names = dict.fromkeys(name for body in bodies for name in body.variables)
        values = {name: self.variable(name.rpartition("~")[0], self.kinds[name]) for name in names}
        mark = object()
        return [replace(body.substituted(values), origin=(mark, body.origin)) for body in bodies]

    def read(self, stored: Stored) -> Body:
        """The rows of a relation."""
        args: list[Term] = [self.variable(name, kind) for name, kind in zip(stored.names, stored.kinds, strict=True)]
        columns = dict(zip(stored.names, args, strict=True))
        if not stored.weighted:
            return Body((Read(stored, tuple(args)),), columns, origin=(object(),))
        times = self.variable("m", int)
        return Body(
            (Read(stored, (*args, times)),), columns, weight=(times,), positive=stored.positive, origin=(object(),)
        )


def determined_variables(body: Body, given: Iterable[Term]) -> set[str]:
    """The variables of a body whose values these terms tell."""
    terms = list(given)
    known = {name for term in terms if (name := invertible(term)) is not None}
    while True:
        found = {*_determined_next(body, known), *_determined_numbers(body, known, terms)} - known
        if not found:
            return known
        known |= found


def _determined_next(body: Body, known: set[str]) -> Iterator[str]:
    for read in body.reads:
        if any(all(known.issuperset(variables(read.args[k])) for k in key) for key in read.stored.keys):
            for arg in read.args:
                yield from variables(arg)
    for condition in body.conditions:
        if isinstance(condition, Constraint) and condition.op == "=":
            for this, other in ((condition.left, condition.right), (condition.right, condition.left)):
                if isinstance(this, Variable) and known.issuperset(variables(other)):
                    yield this.name


def _determined_numbers(body: Body, known: set[str], given: Sequence[Term]) -> Iterator[str]:
    """The variables of series that columns show."""
    for series in body.series:
        others = {*variables(series.inverted)} - {series.variable.name}
        if series.inverted in given and known >= others:
            yield series.variable.name


def tells_match(body: Body, names: Iterable[str]) -> bool:
    """Whether columns tell which match a row is of, so that each row of these is of one."""
    return determined_variables(body, [body.columns[name] for name in names]).issuperset(body.variables)


def once_each(bodies: Sequence[Body], names: Sequence[str]) -> bool:
    """Whether each row of some columns comes from one match of one body."""
    if not all(tells_match(body, names) for body in bodies):
        return False
    return all(_apart(a, b, names) for k, a in enumerate(bodies) for b in bodies[:k])


def _apart(one: Body, other: Body, names: Sequence[str]) -> bool:
    """Whether two bodies have no row in common, each of whose rows is of one match."""
    pairs = [(one.columns[name], other.columns[name]) for name in names]
    if any(is_literal(a) and is_literal(b) and not T.same_literal(a, b) for a, b in pairs):
        return True
    return one.origin == other.origin and all(a == b for a, b in pairs)


def is_set(bodies: Sequence[Body], names: Sequence[str]) -> bool:
    """Whether no row is there more than once."""
    return all(not body.weight and not body.parts for body in bodies) and once_each(bodies, names)


def smallest_key(bodies: Sequence[Body], names: Sequence[str]) -> tuple[int, ...]:
    """Places of columns that tell the others: of one body as few as are found, else all."""
    kept = list(range(len(names)))
    if len(bodies) == 1:
        for place in reversed(range(len(names))):
            fewer = [k for k in kept if k != place]
            if tells_match(bodies[0], [names[k] for k in fewer]):
                kept = fewer
    return tuple(kept)


def joined(left: Body, right: Body, columns: Mapping[str, Term], pairs: Sequence[tuple[Term, Term]]) -> Body | None:
    """The matches of two bodies that have the same key, if there may be any; of diffs that are tuples one side has."""
    keys = {f"{side} {k}": term for k, pair in enumerate(pairs) for side, term in zip("ab", pair, strict=True)}
    found: Body | None = Body(
        (*left.reads, *right.reads),
        {**keys, **columns},
        (*left.conditions, *(c for c in right.conditions if c not in left.conditions)),
        (*left.series, *right.series),
        (*left.weight, *right.weight),
        left.parts or right.parts,
        left.positive and right.positive,
        (left.origin, right.origin),
    )
    for k in range(len(pairs)):
        if found is not None:
            found = found.equated(found.columns[f"a {k}"], found.columns[f"b {k}"])
    return None if found is None else found.with_columns({name: found.columns[name] for name in columns})


def all_rows_of(bodies: Sequence[Body], names: Sequence[str]) -> Stored | None:
    """The relation that bodies are nothing but all rows of."""
    if len(bodies) != 1 or len(bodies[0].reads) != 1:
        return None
    (body,), ((read,)) = bodies, bodies[0].reads
    stored = read.stored
    same = stored.names == tuple(names) and tuple(body.columns[name] for name in names) == read.args[: len(names)]
    variables = all(isinstance(arg, Variable) for arg in read.args) and len(set(read.args)) == len(read.args)
    weight = (read.args[-1],) if stored.weighted else ()
    if not (same and variables) or body.conditions or body.series or body.weight != weight or body.parts:
        return None
    return stored

