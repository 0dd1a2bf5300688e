"""The search for proofs: for a row, the rule and the bindings that give it first.

In a recursive stratum a row of rank r follows from rows of smaller ranks, so no proof runs in a circle, and the one that is
found is the shortest there is in iterations. Rows outside of it are complete before. A proof whose own ranks do not lead to
facts (a lattice whose values were capped) is found in the history of its stratum, run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dlog.codec import Row
from dlog.dataclass import dataclass
from dlog.engine.compile.timed.events import PAIRS
from dlog.engine.ir.aggregates import dominance_of
from dlog.engine.ir.printing import Printer
from dlog.engine.ir.rules import (
    Aggregate,
    Atom,
    Compare,
    Generator,
    Kind,
    Literal,
    Negation,
    Rule,
    Stratum,
    Type,
    Unpack,
    Variable,
)
from dlog.engine.ir.traversal import term_variables
from dlog.grammar.diagnostics import InternalError
from dlog.pipeline import stage
from dlog.proofs import wording
from dlog.proofs.aggregates import matches, mentioned
from dlog.proofs.forms import Form, forms_of
from dlog.proofs.iterations import derive_iterated
from dlog.proofs.model import Absent, Aggregated, Holds, Key, Premise, Proof, Step
from dlog.proofs.ranks import derive_lattice, derive_ranks
from dlog.proofs.record_types import record_type
from dlog.proofs.snapshot import Snapshot, stored
from dlog.proofs.solve import EVERYTHING, Below, Solver, agree
from dlog.proofs.stored import Stored
from dlog.proofs.terms import Frame, Terms


@dataclass(frozen=True, slots=True)
class Derivation:
    """A derivation: bindings (one row) of a form; the least `cost` is the best."""

    cost: tuple[int, ...]
    form: Form
    frame: Frame
    solver: Solver


class Search:
    """Proofs about one snapshot. `limit` is how many matches of an aggregate become premises."""

    def __init__(self, snapshot: Snapshot, limit: int) -> None:
        self.snapshot = snapshot
        self.program = snapshot.program
        self.limit = limit
        self._proofs: dict[Key, Proof] = {}
        self._tables: dict[str, Stored] = {}
        self._replayed: dict[str, Stored] = {}
        self._forms: dict[int, tuple[Form, ...]] = {}
        self._strata = {name: s for s in self.program.strata for name in s.relations}

    # -------------------------------------------------------------------------------------------------------------- proofs

    def proof(self, relation: str, row: tuple[int, ...], replayed: bool = False) -> Proof:
        """The proof of a row of words, the same object each time."""
        key = relation, row, replayed
        if key not in self._proofs:
            self._proofs[key] = Proof(self, key, self.decoded(relation, row))
        return self._proofs[key]

    def step(self, proof: Proof) -> Step:
        """The derivation of a proof's row."""
        with self.snapshot.lock, stage("proofs"):
            relation, row, replayed = proof.key
            if self.is_fact(relation, row):
                return Step(None, {}, ())
            found = self._derivation(relation, row, replayed)
            if found is None and not replayed and self._is_recursive(relation):
                replayed = True
                found = self._derivation(relation, row, replayed)
            if found is None:
                raise InternalError("proofs", f"no rule gives {wording.row_text(relation, proof.row)}")
            return self._as_step(found, replayed)

    def is_present(self, relation: str, row: tuple[int, ...]) -> bool:
        return self.rows(relation).find(row) is not None

    def is_fact(self, relation: str, row: tuple[int, ...]) -> bool:
        stratum = self._strata.get(relation)
        if stratum is None or not stratum.rules:
            return True
        logs = any(relation in kept.logs for kept in self.program.retentions.values())  # by what no rule says
        return logs or self.snapshot.facts[relation].find(row) is not None

    def _derivation(self, relation: str, row: tuple[int, ...], replayed: bool) -> Derivation | None:
        best: Derivation | None = None
        below = self._below(relation, row, replayed)
        for rule in self._strata[relation].rules:
            if rule.head.relation == relation:
                for form in self.forms(rule):
                    found = self._first(form, row, below, replayed)
                    if found is not None and (best is None or found.cost < best.cost):
                        best = found
        return best

    def _below(self, relation: str, row: tuple[int, ...], replayed: bool) -> Below:
        """The rows of its own stratum that a row may follow from."""
        if not self._is_recursive(relation):
            return EVERYTHING
        table = self._early(relation, replayed)
        place = table.find(row)
        rank = 0 if place is None or table.ranks is None else int(table.ranks[place])
        return Below(frozenset(self._strata[relation].relations), rank, inside=relation not in self.program.alternating)

    def _first(self, form: Form, row: tuple[int, ...], below: Below, replayed: bool) -> Derivation | None:
        """The best of the first piece of solutions: any derivation from rows of smaller ranks is a shortest one."""
        solver = self.solver(form, below, replayed)
        frame = form.frame(row, solver.terms)
        if frame is None:
            return None
        for piece in solver.solutions(form.body, frame):
            latest, total = self._costs(form, piece, below, replayed)
            columns = [piece.values[v] for v in sorted(piece.values, reverse=True)]
            best = int(np.lexsort((*columns, total, latest))[0])
            cost = int(latest[best]), int(total[best]), len(form.body)
            return Derivation(cost, form, piece.take(np.array([best])), solver)
        return None

    def _costs(self, form: Form, piece: Frame, below: Below, replayed: bool) -> tuple[np.ndarray, np.ndarray]:
        """The largest rank of the rows that each solution takes from its own stratum, and the sum of them."""
        latest, total = np.full(piece.rows, -1, np.int64), np.zeros(piece.rows, np.int64)
        for atom in form.body:
            if isinstance(atom, Atom) and atom.relation in below.relations:
                ranks = self._early(atom.relation, replayed).ranks
                if ranks is not None:
                    picked = ranks[piece.picks[id(atom)]].astype(np.int64)
                    latest, total = np.maximum(latest, picked), total + picked
        return latest, total

    # ------------------------------------------------------------------------------------------------------------ premises

    def _as_step(self, found: Derivation, replayed: bool) -> Step:
        rule, frame = found.form.rule, found.frame
        names = self.names(found.form, frame)
        premises: list[Premise] = []
        for literal in rule.body:
            if literal is found.form.through:
                assert isinstance(literal, Aggregate)
                inside = tuple(self._premises(found, found.form.inside, frame, names, replayed))
                value = self.value(found.form, literal.result.id, frame)
                premises.append(Aggregated(wording.aggregate_text(literal, self.program.source), value, None, inside))
            else:
                premises += self._premises(found, (literal,), frame, names, replayed)
        return Step(rule.text, self.bindings(found.form, frame), tuple(premises))

    def _premises(
        self, found: Derivation, body: Iterable[Literal], frame: Frame, names: list[str], replayed: bool
    ) -> Iterator[Premise]:
        """The premises of literals under the bindings of a frame of one row."""
        for literal in body:
            match literal:
                case Atom(relation=relation) if relation in self.program.timed:
                    yield from self._in_time(found, literal, int(frame.picks[id(literal)][0]))
                case Atom(relation=relation):
                    own = relation in found.solver.below.relations
                    place = int(frame.picks[id(literal)][0])
                    yield self.proof(relation, found.solver.relations(relation).row(place), own and replayed)
                case Negation(atom=atom):
                    yield Absent(atom.relation, Printer(names).atom(atom))
                case Compare(left=left) if not (isinstance(left, Variable) and is_fresh(found.form.rule, left)):
                    if Printer(names).term(left) != Printer(names).term(literal.right):
                        yield Holds(Printer(names).compare(literal))
                case Aggregate():
                    yield self._aggregated(found, literal, frame, replayed)
                case Compare() | Unpack() | Generator():
                    pass

    def _in_time(self, found: Derivation, atom: Atom, place: int) -> Iterator[Premise]:
        """The premises of a row that rounds have fed: what it is of, and when."""
        timed, row = self.program.timed[atom.relation], found.solver.relations(atom.relation).row(place)
        if timed.how == "shown":
            yield from self.proof(timed.source, row).premises
            yield Holds(wording.bounds_text(*row[-2:]))
            return
        decoded, event = self.decoded(atom.relation, row), self.program.timed[timed.event].source.removesuffix(PAIRS)
        width = self.program.relations[event].arity
        met = zip(atom.args[width:-2], decoded[width:-2], strict=True)
        names = [(found.form.rule.variables[a.id], value) for a, value in met if isinstance(a, Variable)]
        yield Holds(wording.event_text(event, decoded[:width], decoded[-1], names))

    def _aggregated(self, found: Derivation, aggregate: Aggregate, frame: Frame, replayed: bool) -> Aggregated:
        """The aggregate with the premises of its first matches, of `min` and `max` those of one that has the value."""
        outer = Frame(1, {v.id: frame.values[v.id] for v in aggregate.outer})
        solver = replace(found.solver.inside, every=True)
        all_of = matches(solver, aggregate, outer)
        chosen = all_of.is_counted
        if dominance_of(aggregate.op) is not None:
            value = np.broadcast_to(frame.values[aggregate.result.id], all_of.targets.shape)
            chosen = chosen[agree(all_of.targets, np.ascontiguousarray(value), aggregate.kind)][:1]
        premises: list[Premise] = []
        for place in chosen[: self.limit].tolist():
            number, row = _at(all_of.frames, place)
            names, body = self.names(found.form, row), aggregate.alternatives[number]
            for premise in self._premises(found, body, row, names, replayed):
                if isinstance(premise, Proof | Aggregated) and premise not in premises:
                    premises.append(premise)
        for premise in self._missing(found, aggregate, solver, outer, replayed):
            if premise not in premises:
                premises.append(premise)
        value = self.value(found.form, aggregate.result.id, frame)
        text = wording.aggregate_text(aggregate, self.program.source)
        return Aggregated(text, value, len(all_of.groups), tuple(premises))

    def _missing(
        self, found: Derivation, aggregate: Aggregate, solver: Solver, outer: Frame, replayed: bool
    ) -> Iterator[Premise]:
        """The first rows of the own stratum for which an aggregate has the fewer matches."""
        body = aggregate.alternatives[0]
        own = [x for x in body if isinstance(x, Negation) and x.atom.relation in solver.below.relations]
        others = tuple(x for x in body if x not in own)
        for negation in own:
            every = matches(solver, replace(aggregate, alternatives=((*others, negation.atom),)), outer)
            for place in every.is_counted[: self.limit].tolist():
                _, row = _at(every.frames, place)
                yield from self._premises(found, (negation.atom,), row, self.names(found.form, row), replayed)

    # ----------------------------------------------------------------------------------------------------------- relations

    def rows(self, relation: str) -> Stored:
        """A relation as it is."""
        if relation not in self._tables:
            ranked = self.snapshot.ranked.get(relation)
            self._tables[relation] = stored(self.snapshot.table(relation)) if ranked is None else ranked
        return self._tables[relation]

    def solver(self, form: Form, below: Below, replayed: bool) -> Solver:
        own = below.relations

        def relations(name: str) -> Stored:
            return self._early(name, replayed) if name in own else self.rows(name)

        return Solver(relations, Terms(self.snapshot.codec, form.kinds), below)

    def forms(self, rule: Rule) -> tuple[Form, ...]:
        if id(rule) not in self._forms:
            own = frozenset(self._strata[rule.head.relation].relations)
            self._forms[id(rule)] = forms_of(rule, own - self.program.alternating)
        return self._forms[id(rule)]

    def _early(self, relation: str, replayed: bool) -> Stored:
        """A relation of a recursive stratum with the ranks of its rows."""
        if not replayed and relation in self.snapshot.ranked:
            return self.snapshot.ranked[relation]
        if relation not in self._replayed:
            self._replayed |= self._run_again(self._strata[relation])
        return self._replayed[relation]

    def _run_again(self, stratum: Stratum) -> dict[str, Stored]:
        codec = self.snapshot.codec
        lattice = self.program.lattices.get(stratum.relations[0])
        if lattice is not None:
            kinds = self.program.relations[lattice.relation].kinds
            return derive_lattice(stratum, lattice, self.rows, kinds, codec)
        alternating = not self.program.alternating.isdisjoint(stratum.relations)
        if not alternating and not self.program.iterated.isdisjoint(stratum.relations):
            return derive_iterated(stratum, self.program, self.rows, self.snapshot.facts, codec)
        tables = {name: self.rows(name) for name in stratum.relations}
        facts = {name: self.snapshot.facts[name] for name in tables}
        return derive_ranks(stratum, self.rows, facts, codec, tables, alternating)

    def _is_recursive(self, relation: str) -> bool:
        return self._strata[relation].recursive

    # -------------------------------------------------------------------------------------------------------------- values

    def encoded(self, relation: str, row: Row) -> tuple[int, ...]:
        """A row of Python values as words."""
        table = self.snapshot.codec.table(self.program.relations[relation], [row])
        return stored(table).row(0)

    def decoded(self, relation: str, row: tuple[int, ...]) -> Row:
        attributes = self.program.relations[relation].attributes
        return tuple(self._decoded(type, word) for (_, type), word in zip(attributes, row, strict=True))

    def names(self, form: Form, frame: Frame, place: int = 0) -> list[str]:
        """For each variable its value as a literal, or its name where it has none."""
        found = []
        for number in range(len(form.kinds)):
            if number in frame.values:
                found.append(wording.literal_of(self.value(form, number, frame, place)))
            else:
                found.append(form.rule.variables[number] if number < len(form.rule.variables) else "_")
        return found

    def bindings(self, form: Form, frame: Frame, place: int = 0) -> dict[str, Any]:
        """The values of the variables that the rule names, outside of its aggregates."""
        rule = form.rule
        inside = {v for x in rule.body if isinstance(x, Aggregate) and x is not form.through for v in _own_variables(x)}
        named = [(n, name) for n, name in enumerate(rule.variables) if n in frame.values and n not in inside]
        return {name: self.value(form, n, frame, place) for n, name in named if name[0] not in "_@"}

    def value(self, form: Form, variable: int, frame: Frame, place: int = 0) -> Any:
        """The value of a variable; a record of which nothing tells the type is shown by its number."""
        word = int(frame.values[variable][place])
        kind = form.kinds[variable]
        name = record_type(form, variable, self.program) if kind in (Kind.RECORD, Kind.NUMBER) else None
        if kind is not Kind.RECORD and (name is None or not self.program.types[name].is_calendar):
            return self._decoded(Type(kind.value, kind), word)
        if name is not None:
            return self._decoded(self.program.types[name], word)
        return None if word == 0 else f"record {word}"

    def _decoded(self, type: Type, word: int) -> Any:
        column = np.array([word], np.int64)
        match type.kind:
            case Kind.UNSIGNED:
                column = column.view(np.uint64)
            case Kind.FLOAT:
                column = column.view(np.float64)
            case Kind.SYMBOL | Kind.RECORD:
                column = column.astype(np.int32)
            case Kind.NUMBER:
                pass
        return self.snapshot.codec.to_python(type, column)[0]


def is_fresh(rule: Rule, variable: Variable) -> bool:
    """Whether a variable was made in place of a computed argument, or of what rounds feed."""
    return variable.id >= len(rule.variables) or rule.variables[variable.id][0] in "_@"


def _own_variables(aggregate: Aggregate) -> set[int]:
    """The variables that only the aggregate knows."""
    outer = {v.id for v in aggregate.outer}
    found: set[int] = set(term_variables(aggregate.target))
    for body in aggregate.alternatives:
        found |= mentioned(body)
    return found - outer


def _at(frames: Iterable[tuple[int, Frame]], place: int) -> tuple[int, Frame]:
    """One of the rows of frames one after the other."""
    for number, frame in frames:
        if place < frame.rows:
            return number, frame.take(np.array([place]))
        place -= frame.rows
    raise InternalError("proofs", "a match is gone")
