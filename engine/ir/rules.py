"""The typed, normalized program: what every later stage reads.

Normalization promises, so that the planner has few cases:

* one head per rule, no disjunction (bodies are conjunctions), no nested aggregates in terms;
* arguments of body atoms (positive or negated) are `Variable`, `Constant` or `None` (anonymous);
* a record pattern in a body is a literal `Unpack(variable, fields)` whose fields are `Variable`, `Constant` or `None`;
* a value of an algebraic data type is a record of its branch: its tag, its fields, and `PAD` up to the width of the type;
* a call of a table function is a literal `Generator` whose results are `Variable`, `Constant` or `None`;
* every other complex term became a fresh variable and a `Compare("=", ...)`;
* heads and both sides of a `Compare` may hold any `Term` over bound variables (functors, record construction);
* each `Aggregate` sits in a body as a literal that binds its `result` variable;
* ids of variables count from 0 within a rule, its aggregates' bodies included;
* every operation is monomorphic: `Functor.kind` and `Compare.kind` say on which kind of value it works.

Values: `number` is a signed 64-bit integer, `unsigned` an unsigned one, `float` a double; `symbol` and records are ids into
tables. Subtypes and unions share the representation of their base.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from enum import Enum
from functools import cached_property
from math import copysign
from typing import Any, Final, Protocol, TypeAlias
from typing import Literal as OneOf

from dlog.dataclass import dataclass, immutable
from dlog.engine.ir.dominance import Dominance
from dlog.engine.ir.options import NO_OPTIONS, Options
from dlog.grammar.source import NOWHERE, Source, Span

ITERATION_COUNTER: Final = "recursive_iteration_cnt"
"""The relation whose one row is the number of the iteration, for rules that read it."""


class Kind(Enum):
    """A kind of value: decides how it is represented and compared."""

    NUMBER = "number"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    SYMBOL = "symbol"
    RECORD = "record"

    __hash__ = object.__hash__  # each is there once; that of Enum hashes its name again and again


class Domain(Enum):
    """What the values of a type of numbers are outside of the engine: in files, in Python, in other systems."""

    PLAIN = "plain"
    DATE = "date"
    """Days since 1970-01-01."""
    TIMESTAMP = "timestamp"
    """Microseconds since 1970-01-01, without a time zone."""
    SHORT = "short"
    """Numbers of 32 bits."""


@immutable
class Type:
    """A resolved type. `fields` (names and type names) is set for records, which may be recursive: look names up in
    `Program.types`.

    An algebraic data type is a record type whose first field is a tag, the place of the value's branch in `branches`; what the
    other fields are, the branch says. A branch is a type of its own, named `$Branch`, with the same number of fields: the tag,
    its own ones (`arity` of them), and numbers in the places that are left. `adt` is the type it belongs to."""

    name: str
    kind: Kind
    fields: tuple[tuple[str, str], ...] = ()
    branches: tuple[str, ...] = ()
    adt: str = ""
    arity: int = 0
    domain: Domain = Domain.PLAIN

    @property
    def is_calendar(self) -> bool:
        return self.domain in (Domain.DATE, Domain.TIMESTAMP)

    @property
    def whole(self) -> str:
        """The name of the type of a value that this is the type, or the branch, of."""
        return self.adt or self.name


# ---------------------------------------------------------------------------------------------------------------- terms


def _sign(value: int | float | str | None) -> float:
    return copysign(1.0, value) if isinstance(value, int | float) else 1.0


@immutable
class Variable:
    id: int


@immutable
class Constant:
    """A literal value: int for NUMBER and UNSIGNED, float, str for SYMBOL, None (nil) for RECORD."""

    value: int | float | str | None
    kind: Kind

    def __eq__(self, other: object) -> bool:
        """Equality as relations tell values apart: 0.0 and -0.0 are two, though they compare as equal."""
        if not isinstance(other, Constant) or self.kind is not other.kind:
            return False
        return self.value == other.value and (self.kind is not Kind.FLOAT or _sign(self.value) == _sign(other.value))


PAD = Constant(0, Kind.RECORD)
"""What fills the places of an algebraic data type's record that its branch has no field for."""


@immutable
class Functor:
    """A function of values. `op` is a row's name in `functors`, `AUTOINC`, `printing(...)`, or `@` and the name of a user's
    functor; `kind` is the kind of its arguments where it is overloaded, else of its result (`Intrinsic.by_argument`); `result`
    is its result's kind. `to_number`, `to_unsigned` and `to_float` are left for symbols only: between numeric kinds they have
    become `itof` and the like, and `+` on symbols has become `cat`."""

    op: str
    args: tuple[Term, ...]
    kind: Kind
    result: Kind
    span: Span = NOWHERE
    stateful: bool = False
    """Whether it may give another value for the same arguments."""


AUTOINC = "autoinc"
"""The functor that gives another number each time."""
NOW: Final = "now"
"""The functor that is the present round. Compiled programs have none: see compile/timed."""
_PRINT = "print\t"


def printing(types: Iterable[str]) -> str:
    """The functor that writes its arguments, which are of these types, to standard error; it gives 1."""
    return _PRINT + "\t".join(types)


def printed_types(op: str) -> list[str] | None:
    """The types of what a functor writes; None for others."""
    if not op.startswith(_PRINT):
        return None
    types = op.removeprefix(_PRINT)
    return types.split("\t") if types else []


@immutable
class Record:
    """Construction of a record value from its fields; `type` names the record type."""

    type: str
    args: tuple[Term, ...]


Term: TypeAlias = Variable | Constant | Functor | Record
Arg: TypeAlias = Variable | Constant | None

# ------------------------------------------------------------------------------------------------------------- literals


@immutable
class Atom:
    relation: str
    args: tuple[Arg, ...]
    span: Span = NOWHERE


@immutable
class Negation:
    """Holds when no row of the relation matches; every variable in it is bound elsewhere."""

    atom: Atom
    span: Span = NOWHERE


@immutable
class Compare:
    """`left op right`; op is one of `= != < <= > >= match contains not_match not_contains`; symbols are ordered by their text.
    An `=` with an unbound variable on one side (the left one) binds it. Floats compare as floats, other kinds as integers or
    ids."""

    op: str
    left: Term
    right: Term
    kind: Kind
    span: Span = NOWHERE


@immutable
class Unpack:
    """`value = [fields]`: holds when the bound record `value` is not nil; binds or checks each field that is not None."""

    value: Variable
    type: str
    fields: tuple[Arg, ...]
    span: Span = NOWHERE


@immutable
class Generator:
    """`[results] = function(args)`: one match for each row that a table function gives for its bound arguments, of which no two
    are equal; binds or checks each result that is not None. `function` is a row's name in `table_functions`; `kind` is the kind
    of the arguments of one that is overloaded, else of the first result."""

    function: str
    args: tuple[Term, ...]
    results: tuple[Arg, ...]
    kind: Kind
    span: Span = NOWHERE


@immutable
class Aggregate:
    """`result = op target : { body }`.

    `target` is None for `count`. `outer` are the variables of the enclosing body that the aggregate's body mentions: it is
    evaluated once per binding of them. The value is taken over all matches of the body. Of a single atom without a repeated
    variable each row is one; any other body is, as in Souffle, a relation over its named variables whose rows count once.
    `alternatives` are its body in disjunctive form (usually one): with several, a match is a distinct binding of the variables
    the alternatives share. `op` is a row's name in `aggregates`, which tells what it gives on no match, or `@@` and the name of
    a user's functor. That folds the values, in ascending order, into `init`, which it gives on no match; a variable there is
    one of `outer`. `kind` is the result's kind; the target of one whose result always has the same kind has it too."""

    result: Variable
    op: str
    target: Term | None
    alternatives: tuple[tuple[Literal, ...], ...]
    outer: tuple[Variable, ...]
    kind: Kind
    span: Span = NOWHERE
    init: Variable | Constant | None = None


Literal: TypeAlias = Atom | Negation | Compare | Unpack | Generator | Aggregate

# ----------------------------------------------------------------------------------------------------------------- rules


@immutable
class Head:
    relation: str
    args: tuple[Term, ...]
    span: Span = NOWHERE


@immutable
class Rule:
    """`head :- body.` `variables[i]` is the name and `kinds[i]` the kind of variable i (fresh ones are named `_1`, ...). `text`
    is the clause as the user wrote it, for plans, statistics and messages. An empty body is a fact with computed or constant
    arguments. `weight` is what a match adds to the sum of a row which holds where that exceeds its last column (see
    plan/incremental/thresholds)."""

    head: Head
    body: tuple[Literal, ...]
    variables: tuple[str, ...]
    kinds: tuple[Kind, ...]
    text: str
    span: Span = NOWHERE
    weight: Term | None = None


@immutable
class Relation:
    name: str
    attributes: tuple[tuple[str, Type], ...]
    span: Span = NOWHERE

    @property
    def arity(self) -> int:
        return len(self.attributes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.attributes)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return tuple([t.kind for _, t in self.attributes])


@immutable
class Io:
    """One `.input`, `.output`, `.printsize` or `.limitsize` of one relation, with its parameters."""

    action: OneOf["input", "output", "printsize", "limitsize"]
    relation: str
    params: tuple[tuple[str, str], ...] = ()
    span: Span = NOWHERE

    def get(self, key: str, default: str = "") -> str:
        return dict(self.params).get(key, default)


@immutable
class Stratum:
    """Relations that depend on each other (one, or a cycle) and the rules that define them. `recursive` iff some rule's body
    mentions a relation of the stratum positively, through a monotone aggregate (`lattice`, `thresholds`) or, where it is one of
    `Program.alternating`, in any way."""

    relations: tuple[str, ...]
    rules: tuple[Rule, ...]
    recursive: bool


@immutable
class UserFunctor:
    """A functor that the program declares. `function` computes it on blocks of rows; None until somebody has given it."""

    name: str
    params: tuple[Type, ...]
    result: Type
    stateful: bool
    span: Span = NOWHERE
    function: BlockFunction | None = field(default=None, compare=False)


class BlockFunction(Protocol):
    """A user's function on the columns of a block. `tables` has the strings and the records of the run."""

    def __call__(self, functor: UserFunctor, args: Sequence[Any], rows: int, tables: Any) -> Any: ...

    def fold(self, functor: UserFunctor, init: Any, values: Any, numbers: Any, tables: Any) -> Any:
        """What the function makes of each group's first state in `init`, value by value, ascending; `numbers` has the group of
        each value."""


@immutable
class Lattice:
    """A relation whose only rule is `r(keys, v) :- ..., v = min x : { ... r ... }`, recursive through its own aggregate: per
    key it holds the one value that no other dominates. `column` is where the value stands. Without a dominance it is what
    plan/incremental/thresholds makes for an executor: per key the sum of the rules' weights, which counts from where it exceeds
    the column before it."""

    relation: str
    dominance: Dominance | None
    column: int


@immutable
class Retention:
    """The rows that a relation keeps of those that come, iteration by iteration.

    `dominated` are rules of subsumption: their first two atoms are two rows of the relation, and the first one, which is the
    head, leaves where the body holds. `keys` are those of a choice domain, their columns ascending: of rows that agree on one,
    the first stays. `logs` are relations of all rows that came (`debug_delta`), each with the number of its iteration. `facts`
    are those of the text where there are keys: the first rows, in this order."""

    dominated: tuple[Rule, ...] = ()
    keys: tuple[tuple[int, ...], ...] = ()
    logs: tuple[str, ...] = ()
    join: Rule | None = None
    """Makes one row of two that have the same key, where columns are those of lattices."""
    facts: tuple[tuple[Constant | Record, ...], ...] = ()


@immutable
class Timed:
    """What a relation without rules has, of which the rounds decide (compile/timed):

    * "shown": the rows of `source` in the rounds from that in its last column but one on, until before that in its last one;
    * "changed": in each round the rows of `source` that come or go in it, with +1 or -1, and the round;
    * "kept": `source` has what rows of `event` met in the round in which they changed, as "changed" has them: the columns of
      `event`, others, +1 or -1, and the round. Of these, all but the last two are there as often as the diffs add up to, with
      that number, and the round that it is of, in their places. With `original`, what goes is what the row had met when it
      came, whatever it meets now."""

    how: OneOf["shown", "changed", "kept"]
    source: str
    event: str = ""
    original: bool = False
    span: Span = NOWHERE


@dataclass(frozen=True)
class Program:
    """`facts[r]` are rows of constants written in the program text (constant tuples, already checked), `strata` are in the
    order of evaluation and hold every rule once."""

    source: Source
    types: dict[str, Type]
    relations: dict[str, Relation]
    facts: dict[str, tuple[tuple[Constant | Record, ...], ...]]
    strata: tuple[Stratum, ...]
    io: tuple[Io, ...]
    lattices: dict[str, Lattice]
    inline: frozenset[str] = frozenset()
    """The declared relations that have no rows: their bodies stand where they are read."""
    retentions: dict[str, Retention] = field(default_factory=dict)
    """By relation; one that is a lattice too is kept as that says, which is the same."""
    first_symbols: tuple[str, ...] = ()
    """The strings of facts in the text, which come first in the order by which choice domains choose."""
    options: Options = NO_OPTIONS
    eqrels: frozenset[str] = frozenset()
    """The equivalence relations. Rules that say so are among those of each (compile/equivalence), unless it has classes."""
    classes: Mapping[str, str] = field(default_factory=dict)
    """By equivalence relation, the relation of its values and their classes that is kept in its place (optimize/classes). What
    has the name of the former is whatever its rules derive and others give: the pairs are those of values with one class."""
    functors: dict[str, UserFunctor] = field(default_factory=dict)
    """Those that the program declares."""
    timed: Mapping[str, Timed] = field(default_factory=dict)
    """The relations that rounds feed, by name."""
    at_once: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)
    """By relation its rules as they are where there is one round only, if rules of it read timed relations."""
    alternating: frozenset[str] = frozenset()
    """The relations of strata that depend on themselves through negation, or through aggregates that are neither lattices nor
    compared with bounds (plan/static/alternating)."""
    passing: frozenset[str] = frozenset()
    """Relations of which only the changes are asked for: events, and what they meet (plan/incremental/passing)."""

    @cached_property
    def iterated(self) -> frozenset[str]:
        """The relations of strata that are evaluated iteration by iteration, what these keep depending on those, or pass after
        pass."""
        single = self.retentions.keys() - self.lattices.keys()
        counted = [s for s in self.strata if not single.isdisjoint(s.relations) or _counts_iterations(s)]
        return self.alternating.union(name for s in counted for name in s.relations)

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The relations that have an `.input`."""
        return frozenset(io.relation for io in self.io if io.action == "input")

    @cached_property
    def stratum_of(self) -> dict[str, Stratum]:
        """The stratum of each relation that is in one."""
        return {name: stratum for stratum in self.strata for name in stratum.relations}

    @cached_property
    def rules(self) -> dict[str, tuple[Rule, ...]]:
        """The rules of each relation that has any."""
        found: dict[str, list[Rule]] = {}
        for stratum in self.strata:
            for rule in stratum.rules:
                found.setdefault(rule.head.relation, []).append(rule)
        return {name: tuple(rules) for name, rules in found.items()}

    @cached_property
    def derived(self) -> dict[str, None]:
        """The relations of strata with rules, in the order of evaluation; those that an `.output` or an input made are none."""
        return {name: None for stratum in self.strata if stratum.rules for name in stratum.relations}

    @cached_property
    def plain_eqrels(self) -> frozenset[str]:
        """The equivalence relations without rules but those that their declarations say: their other rows are given."""
        own = {name for name in self.eqrels for rule in self.rules.get(name, ()) if rule.span != self.relations[name].span}
        return self.eqrels - own

    @cached_property
    def copying(self) -> dict[str, dict[str, list[Rule]]]:
        """The rules whose body is one atom: by the relation of their head, then by that of the atom. A lattice does not keep
        all that its rules say."""
        found: dict[str, dict[str, list[Rule]]] = {}
        for stratum in self.strata:
            for rule in stratum.rules:
                head = rule.head.relation
                if len(rule.body) == 1 and isinstance(atom := rule.body[0], Atom) and head not in self.lattices:
                    found.setdefault(head, {}).setdefault(atom.relation, []).append(rule)
        return found


def _counts_iterations(stratum: Stratum) -> bool:
    return any(isinstance(x, Atom) and x.relation == ITERATION_COUNTER for rule in stratum.rules for x in rule.body)


def reading_rule(relation: Relation) -> Rule:
    """A rule for the rows that a relation has without rules, once it has no others."""
    names = tuple(name for name, _ in relation.attributes)
    args = tuple(Variable(i) for i in range(relation.arity))
    text = f"{relation.name}({', '.join(names)})."
    return Rule(Head(relation.name, args), (Atom(relation.name, args),), names, relation.kinds, text, relation.span)


def with_inputs(program: Program, relations: Iterable[str]) -> Program:
    """The program that takes rows from outside for all these relations, whether they have rules or not."""
    return replace(program, io=(*program.io, *(Io("input", name) for name in relations)))
