"""The oracle's share in relations that do not keep all of their rows: subsumption, choice domains, `debug_delta`.

The iterations are part of what such a program means: a rule derives from the rows that the last iteration brought and those
that stood then; what is fresh is sifted as a whole, where there is a choice rule by rule.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dlog.branch import Branch
from dlog.grammar.syntax import (
    And,
    Atom,
    Call,
    Clause,
    LatticeDecl,
    Program,
    RelationDecl,
    String,
    Subsumption,
    Term,
    Variable,
    Wildcard,
)
from tests.naive_bodies import Goal, alternatives, variables, walk

if TYPE_CHECKING:
    from tests.naive import _Evaluation

Row = tuple[Any, ...]
Rows = dict[str, set[Row]]
DELTA = "%delta"


@dataclass
class Kept:
    subsumptions: list[Subsumption] = field(default_factory=list)
    keys: list[tuple[int, ...]] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    joins: dict[int, Term] = field(default_factory=dict)
    """The `Lub` of each lattice column."""


def retentions(program: Program) -> dict[str, Kept]:
    """By relation, what it keeps of its rows, if not all of them."""
    found: dict[str, Kept] = {}
    lattices = {i.type: dict(i.entries)["Lub"] for i in program.items if isinstance(i, LatticeDecl)}
    for item in program.items:
        if isinstance(item, RelationDecl):
            columns = {n: lattices[a.type[:-2]] for n, a in enumerate(item.attributes) if a.type.endswith("<>")}
            for name in item.names if columns else ():
                found.setdefault(name, Kept()).joins = columns
        match item:
            case Subsumption(dominated=atom):
                found.setdefault(atom.name, Kept()).subsumptions.append(item)
            case RelationDecl(debug_delta=of) if of is not None:
                found.setdefault(of.relation, Kept()).logs.append(item.names[0])
            case RelationDecl(choice_domain=domain) if domain:
                columns = [a.name for a in item.attributes]
                for name in item.names:
                    found.setdefault(name, Kept()).keys = [tuple(columns.index(k) for k in d.keys) for d in domain]
            case _:
                pass
    return found


class Iterations:
    """The evaluation of one stratum."""

    def __init__(self, evaluation: _Evaluation, stratum: set[str]) -> None:
        self.evaluation = evaluation
        self.logs = {log: name for name, kept in evaluation.retentions.items() for log in kept.logs if name in stratum}
        self.stratum = stratum - self.logs.keys()
        self.rows: Rows = {name: set() for name in self.stratum}
        self.delta: Rows = {}
        self.first = _first_symbols(evaluation.clauses)

    def run(self) -> None:
        facts, plain, recursive = self._clauses()
        given = [*self._derived([fact] for fact in facts), self.evaluation.given]
        for name in self.stratum:
            if self._kept(name).keys:
                self._stand({**self.rows, name: self._chosen_one_by_one(name, given, set())})
        others = {name: set().union(*(rows[name] for rows in given)) for name in self.stratum if not self._kept(name).keys}
        self._settle([*self._derived(plain), {name: others.get(name, set()) for name in self.stratum}])
        self._go_on_from({name: set(rows) for name, rows in self.rows.items()})
        number = 0
        self._log(number)
        while any(self.delta.values()):
            number += 1
            self._settle(self._derived(recursive))
            self._log(number)

    def _kept(self, name: str) -> Kept:
        return self.evaluation.retentions.get(name, Kept())

    def _derived(self, rules: Iterable[list[Clause]]) -> list[Rows]:
        """What each rule says."""
        return [self.evaluation.derived(rule, self.stratum) for rule in rules]

    def _clauses(self) -> tuple[list[Clause], list[list[Clause]], list[list[Clause]]]:
        """Facts, rules that read nothing of the stratum, and the others, once for each atom that reads a delta."""
        facts, plain, recursive = [], [], []
        for clause in self.evaluation.clauses:
            if not any(h.name in self.stratum for h in clause.heads):
                continue
            if clause.body is None:
                facts.append(clause)
                continue
            for goals in alternatives(clause.body):
                places = [n for n, g in enumerate(goals) if isinstance(g, Atom) and g.name in self.stratum]
                if not places:
                    plain.append([replace(clause, body=And(tuple(goals)))])
                recursive.append([replace(clause, body=And(tuple(_with_delta(goals, at)))) for at in places])
        return facts, plain, recursive

    def _stand(self, rows: Rows) -> None:
        self.rows = rows
        self.evaluation.rows |= rows

    def _settle(self, derived: list[Rows]) -> None:
        """What comes of an iteration, in which each rule has derived rows."""
        accepted, left = {}, {}
        for name in self.stratum:
            rows, kept = self.rows[name], self._kept(name)
            fresh = set().union(*(found[name] for found in derived)) - rows
            if kept.joins:
                joined, touched = self._joined(name, fresh, rows)
                accepted[name], left[name] = joined - rows, rows - (touched - joined)
            elif kept.keys:
                accepted[name], left[name] = self._chosen_one_by_one(name, derived, rows), rows
            else:
                accepted[name] = fresh - self._dominated(name, fresh, fresh | rows)
                left[name] = rows - self._dominated(name, rows, accepted[name])
        self._go_on_from(accepted)
        self._stand({name: left[name] | accepted[name] for name in self.stratum})
        for name in (n for n in self.evaluation.types if n in self.stratum):
            if any(isinstance(n, Atom) and n.name in self.stratum for s in self._kept(name).subsumptions for n in walk(s.body)):
                gone = self._dominated(name, self.rows[name], self.rows[name])
                self._stand({**self.rows, name: self.rows[name] - gone})
                self._go_on_from({**self.delta, name: self.delta[name] - gone})

    def _go_on_from(self, delta: Rows) -> None:
        self.delta = delta
        for name, rows in delta.items():
            self.evaluation.rows[name + DELTA] = rows
            self.evaluation.types[name + DELTA] = self.evaluation.types[name]

    def _dominated(self, name: str, rows: Iterable[Row], others: Iterable[Row]) -> set[Row]:
        """The rows that some of the others dominate."""
        return {row for row in rows for s in self._kept(name).subsumptions if any(self._dominates(s, o, row) for o in others)}

    def _dominates(self, subsumption: Subsumption, other: Row, row: Row) -> bool:
        if other == row:
            return False
        evaluation, less, greater = self.evaluation, subsumption.dominated, subsumption.dominating
        evaluation.infer(Clause((less,), And((less, greater, subsumption.body))))
        scope = variables((less, greater, subsumption.body), inside_aggregates=False)
        types = [*evaluation.types[less.name]] * 2
        for binding in evaluation.unify((*less.args, *greater.args), types, (*row, *other), {}, scope):
            if next(evaluation.solutions(subsumption.body, binding, scope), None) is not None:
                return True
        return False

    def _chosen_one_by_one(self, name: str, derived: list[Rows], rows: set[Row]) -> set[Row]:
        """What is chosen of the rows of each rule in turn beside those that stand."""
        chosen: set[Row] = set()
        for found in derived:
            chosen |= self._chosen(name, found[name] - rows, rows | chosen)
        return chosen

    def _chosen(self, name: str, fresh: set[Row], rows: set[Row]) -> set[Row]:
        """The first rows of each key that none has yet."""
        keys = self._kept(name).keys
        taken = {(key, tuple(row[c] for c in key)) for row in rows for key in keys}
        found = set()
        for row in sorted(
            fresh, key=lambda r: [self._order(v, t) for v, t in zip(r, self.evaluation.types[name], strict=True)]
        ):
            own = {(key, tuple(row[c] for c in key)) for key in keys}
            if not own & taken:
                taken |= own
                found.add(row)
        return found

    def _joined(self, name: str, fresh: set[Row], rows: set[Row]) -> tuple[set[Row], set[Row]]:
        """The joins of the fresh rows with those that stand and have the same keys, and these."""
        joins = self._kept(name).joins
        keys = {self._key(row, joins) for row in fresh}
        touched = {row for row in rows if self._key(row, joins) in keys}
        found: dict[Row, Row] = {}
        for row in fresh | touched:
            held = found.get(self._key(row, joins), row)
            values = ((self._join(joins[c], held[c], row[c]) if c in joins else row[c]) for c in range(len(row)))
            found[self._key(row, joins)] = tuple(values)
        return set(found.values()), touched

    def _key(self, row: Row, joins: dict[int, Term]) -> Row:
        return tuple(v for c, v in enumerate(row) if c not in joins)

    def _join(self, template: Term, left: Any, right: Any) -> Any:
        assert isinstance(template, Call) and template.args == (Wildcard(), Wildcard())
        term = replace(template, args=(Variable("left"), Variable("right")))
        return self.evaluation.value(term, "number", {"left": left, "right": right}, {"left", "right"})

    def _order(self, value: Any, type_name: str | None) -> Any:
        match value:
            case None:
                return (0,)
            case Branch(name, args):
                adt, types = self.evaluation.branches[name]
                names = sorted(n for n, (other, _) in self.evaluation.branches.items() if other == adt)
                return (_depth(value), names.index(name), *(self._order(v, t) for v, t in zip(args, types, strict=True)))
            case tuple():
                types = self.evaluation.fields(type_name, len(value))
                return (_depth(value), *(self._order(v, t) for v, t in zip(value, types, strict=True)))
            case str():
                return (0, self.first.index(value), b"") if value in self.first else (1, 0, value.encode())
            case float():
                (bits,) = struct.unpack("<q", struct.pack("<d", value))
                return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF
            case _:
                return value

    def _log(self, iteration: int) -> None:
        for log, name in self.logs.items():
            self.evaluation.rows[log] |= {(*row, iteration) for row in self.delta[name]}


def _depth(value: Any) -> int:
    """How deep records are one in the other."""
    match value:
        case Branch(_, fields) | tuple(fields):
            return 1 + max(map(_depth, fields), default=0)
        case _:
            return 0


def _with_delta(goals: list[Goal], at: int) -> Iterator[Goal]:
    for number, goal in enumerate(goals):
        yield Atom(goal.name + DELTA, goal.args) if number == at and isinstance(goal, Atom) else goal


def _first_symbols(clauses: Iterable[Clause]) -> list[str]:
    """The strings of facts, relation by relation."""
    found: dict[str, list[str]] = {}
    for clause in clauses:
        if clause.body is None:
            args = clause.heads[0].args
            found.setdefault(clause.heads[0].name, []).extend(a.value for a in args if isinstance(a, String))
    return list(dict.fromkeys(text for texts in found.values() for text in texts))
