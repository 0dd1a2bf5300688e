"""The dataflow plan: one `Scope` per stratum, delta-query paths over shared arrangements.

A scope iterates iff it has feedback `variables`. Each `Path` is one delta query: a chain of operators from a seed to a sink,
so no intermediate result of a join is ever kept:

    Scan (the seed's rows or changes) -> HalfJoin | Extend | SemiJoin | AntiJoin | Filter | Map | UnpackRecord | Generate
    | LookUp ... -> Insert | Accumulate

Variables are those of the path's rule. A step sees the variables bound by earlier steps and says which it binds. Terms are
`rules.Term`; nothing here knows of columns' widths, registers or kernels.

`View` is the AltNeu nudge in the static model: in an iteration, `neu` is a feedback relation including the changes being
processed, `alt` without them; `all` is a relation that does not change in this scope. The executor may read `neu` for `alt`:
sets absorb the duplicates.

Over rounds
-----------
A scope whose `model` is `total` or `partial` maintains its relations while its inputs change. Everything in it is a collection
of updates (row, time, diff). Every path is seeded by changes: `Scan(changes=True)`, or `Unit` (which changes once, from nothing
to one row, at the first time). There is one path per part of a body that can change: each positive reading, each negation, each
look-up of a reduction. A change of part k at time t meets part j < k at `neu` (updates with time <= t) and part j > k at `alt`
(time < t), where times compare in their total, lexicographic order; the diffs multiply.

`total`: times are rounds; paths are in `stages` and `enter`; what a path reads is complete up to the present round before.
`partial`: times are (round, iteration). Parts that read imports (relations of earlier scopes: iteration 0) count before parts
that read `variables`. `enter` paths are seeded by imports, `loop` paths by variables. The result of a path stands at
the latest iteration of what it met, plus `Path.advance`. Source: half-joins of differential dataflow's dogsdogsdogs; the total
order makes them right on partially ordered times, and prior rounds precede at every iteration.

No step of these paths may merge matches: a result's diff counts its derivations.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from dlog.dataclass import immutable
from dlog.engine.ir.aggregates import AGGREGATES
from dlog.engine.ir.rules import Compare, Constant, Kind, Lattice, Term

View: TypeAlias = Literal["all", "alt", "neu"]
Model: TypeAlias = Literal["static", "total", "partial"]
Bind: TypeAlias = tuple[int, int]  # (column of the relation, variable)


@immutable
class Only:
    """Rows whose `column` has a value that stands in column `of` of `relation`, which does not change in the scope."""

    column: int
    relation: str
    of: int


@immutable
class Arrangement:
    """An index of `relation` by the columns `key` (in this order), shared by all paths that name it. An empty key is a full
    scan. `order` are further columns by which the rows of one key are sorted, needed by `Extend`. Readers have no use for rows
    that are not of `only`: an executor may leave them out."""

    relation: str
    key: tuple[int, ...]
    order: tuple[int, ...] = ()
    only: Only | None = None


@immutable
class Scan:
    """The seed: all rows of `relation`, or, with `changes`, the rows the last iteration added. Constants and repeated
    variables of the atom are checked by `Filter`s that follow; `sorted_by` asks for rows grouped by these columns (an
    `Extend` that reuses a group profits).

    Over rounds: `negated` is the seed of a negated atom, whose diffs change sign. `missing` is the seed of a look-up with a
    default: the groups of a reduction that had no row and now have one (diff -1) or had one and now have none (diff +1); only
    key columns may be bound."""

    relation: str
    binds: tuple[Bind, ...]
    changes: bool = False
    sorted_by: tuple[int, ...] = ()
    negated: bool = False
    missing: bool = False


@immutable
class Unit:
    """The seed of a rule without positive atoms: one empty row."""


@immutable
class HalfJoin:
    """For each incoming row, the rows of the arrangement whose key equals `key`: binds `binds` (non-key columns).
    Everything an atom says about bound columns is in the key."""

    arrangement: Arrangement
    key: tuple[Term, ...]
    binds: tuple[Bind, ...]
    view: View = "all"
    rows: float = field(default=1.0, compare=False)
    """Estimated matches per incoming row, for the reader of a plan."""


@immutable
class Proposer:
    """One candidate of an `Extend`: the values of column `column` among the rows of `arrangement` with this key. Key and
    column are together the whole row, so that each value occurs once."""

    arrangement: Arrangement
    key: tuple[Term, ...]
    column: int
    view: View = "all"


@immutable
class Extend:
    """Worst-case optimal extension by one variable: for each incoming row the proposer with the fewest rows proposes values,
    the others validate. All proposers' arrangements have `order == (column,)`."""

    variable: int
    proposers: tuple[Proposer, ...]
    rows: float = field(default=1.0, compare=False)


@immutable
class SemiJoin:
    """Keeps rows for which the relation has a row equal to `args` (None matches anything): binds nothing. Over rounds one
    with a None is only a hint: it may keep rows that a later join drops."""

    relation: str
    args: tuple[Term | None, ...]
    view: View = "all"


@immutable
class AntiJoin:
    """Keeps rows for which the relation has no row equal to `args` (None matches anything; over rounds every argument is
    given)."""

    relation: str
    args: tuple[Term | None, ...]
    view: View = "all"


@immutable
class Filter:
    compare: Compare


@immutable
class Map:
    """Binds `variable` to the value of `term`."""

    variable: int
    term: Term


@immutable
class UnpackRecord:
    """Keeps rows whose record `variable` is not nil and binds fields: pairs (field, variable). Fields to be checked are bound
    to fresh variables (numbered from `Path.variables`' end by the planner) and followed by a `Filter`."""

    variable: int
    type: str
    binds: tuple[tuple[int, int], ...]


@immutable
class Generate:
    """For each incoming row, the rows of a table function for `args`: binds pairs (column of the result, variable). `kind` is
    that of `rules.Generator`."""

    function: str
    args: tuple[Term, ...]
    binds: tuple[Bind, ...]
    kind: Kind


@immutable
class LookUp:
    """Reads a reduced relation (the planner's own, `@1`, ...) by its whole key: binds `variable` to the value. A missing
    group gives `default`, or drops the row where `default` is None."""

    relation: str
    key: tuple[Term, ...]
    variable: int
    default: int | None = None
    view: View = "all"


Step: TypeAlias = HalfJoin | Extend | SemiJoin | AntiJoin | Filter | Map | UnpackRecord | Generate | LookUp


@immutable
class Insert:
    """The sink of a rule: adds the row to the relation. `distinct` false promises that no two rows of the whole relation are
    equal (one rule, injective head), so the executor needs no set to check against. `weight` is that of each match, where rows
    hold whose matches weigh more than their last column says."""

    relation: str
    terms: tuple[Term, ...]
    distinct: bool = True
    weight: Term | None = None


@immutable
class Accumulate:
    """The sink of an aggregate: combines `value` (None for count) into the group `key` of a reduced relation."""

    relation: str
    key: tuple[Term, ...]
    value: Term | None


@immutable
class Path:
    """One delta query. `rule` is the index into the scope's `rules` text, for statistics; `variables` is how many variable
    ids there are. `advance` is 1 for a path of a rule that reads the scope's variables, in the `partial` model. A `delayed`
    path derives a lattice of least values: the greater the value, the later the iteration at which it enters. `apart` says that
    values are kept away from each other, `ordered` that they come one after the other. `also` are other reductions that the
    same matches fill."""

    rule: int
    seed: Scan | Unit
    steps: tuple[Step, ...]
    sink: Insert | Accumulate
    variables: int
    advance: int = 0
    delayed: Literal["no", "apart", "ordered"] = "no"
    also: tuple[Accumulate, ...] = ()

    @property
    def sinks(self) -> tuple[Insert | Accumulate, ...]:
        return (self.sink, *self.also)


@immutable
class Reduction:
    """A relation made by the planner for one aggregate: key columns then one value column, one row per key.

    `mean` keeps a sum and a count beside it, and divides at the end."""

    relation: str
    keys: tuple[str, ...]
    """Kinds of the key columns (`rules.Kind` values)."""
    op: str
    kind: str
    """Kind of the aggregated values (argument), which is the result's too where that has no kind of its own."""

    @property
    def columns(self) -> tuple[Kind, ...]:
        """The kinds of all columns, with those of what stands beside the value while rows come."""
        return (*map(Kind, self.keys), *AGGREGATES[self.op].columns(Kind(self.kind)))


@immutable
class Temporary:
    """A plain relation made by the planner (the outer bindings of a correlated aggregate, a shared semijoin): kinds of its
    columns."""

    relation: str
    kinds: tuple[str, ...]


@immutable
class Fold:
    """A relation made by the planner for an aggregate that is a user's functor: one row for each of `groups`, a temporary of
    the key columns, with the value in a last column. `matches` is a temporary of the key columns, of what tells matches apart,
    and of the values. Without keys there is one group, and `groups` is None. `init` is what the functor begins with: a key
    column, or the same everywhere. The executor fills it as soon as `matches` is filled."""

    relation: str
    functor: str
    groups: str | None
    matches: str
    keys: tuple[str, ...]
    """Kinds of the key columns."""
    kind: str
    init: int | Constant

    @property
    def columns(self) -> tuple[Kind, ...]:
        return (*map(Kind, self.keys), Kind(self.kind))


@immutable
class Nested:
    """An aggregate that is computed for the bindings of its outer variables as they come, where only the recursion of the scope
    binds them: a table function `name` of these bindings, called by `Generate`. For those of a block, which the executor puts
    into `groups`, `scope` fills `result`: the bindings and the value. A missing one is `default`, if that is not None."""

    name: str
    groups: Temporary
    scope: Scope
    result: str
    kind: str
    default: int | None


@immutable
class Connection:
    """The loop of a lattice gives each key the best value that any key of its connected component has (`connect`).

    `edges` are (relation, column, column): the keys in both columns are neighbours. `where` are (relation, column): only keys
    that stand in all of them get values; the others only give theirs."""

    relation: str
    edges: tuple[tuple[str, int, int], ...]
    where: tuple[tuple[str, int], ...]


@immutable
class Union:
    """`classes` has the values of the relation `pairs` and, for each, the class that it is in where all pairs are equivalent.
    The executor fills it, after each iteration, from the pairs that there are by then. In the loop a value may have several
    classes: two values are equivalent iff they have one in common."""

    pairs: str
    classes: str


@immutable
class Scope:
    """One stratum. `enter` paths run once; then, iff there are `variables`, `loop` paths run on each iteration's changes
    until there are none. `stages` run before `enter`, in order: each is a list of paths that fill the planner's own relations
    (reductions, temporaries). An executor may do what `connection` says in the place of the loop. `keys` are columns that
    determine the rows of relations it makes."""

    relations: tuple[str, ...]
    variables: tuple[str, ...]
    rules: tuple[str, ...]
    temporaries: tuple[Temporary, ...]
    reductions: tuple[Reduction, ...]
    stages: tuple[tuple[Path, ...], ...]
    enter: tuple[Path, ...]
    loop: tuple[Path, ...]
    lattices: tuple[Lattice, ...] = ()
    model: Model = "static"
    connection: Connection | None = None
    keys: tuple[tuple[str, tuple[int, ...]], ...] = ()
    unions: tuple[Union, ...] = ()
    folds: tuple[Fold, ...] = ()
    nested: tuple[Nested, ...] = ()
    prefilled: tuple[Temporary, ...] = ()
    """Relations of the planner's own that are filled before the scope is run."""
    derived: tuple[object, ...] = field(default=(), compare=False)
    """Over rounds: what is derived, in whatever order it is read. Two scopes of one stratum that agree about this keep the same
    rows with the same derivations."""


def arrangements(scope: Scope) -> tuple[Arrangement, ...]:
    """The distinct arrangements that the scope's paths read, in order of first use."""
    found: dict[Arrangement, None] = {}
    for path in (*(p for stage in scope.stages for p in stage), *scope.enter, *scope.loop):
        for step in path.steps:
            match step:
                case HalfJoin(arrangement=a):
                    found.setdefault(a)
                case Extend(proposers=ps):
                    for p in ps:
                        found.setdefault(p.arrangement)
                case SemiJoin() | AntiJoin() | Filter() | Map() | UnpackRecord() | Generate() | LookUp():
                    pass
    return tuple(found)
