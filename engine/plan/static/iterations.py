"""The steps of a stratum that is evaluated iteration by iteration, where relations do not keep all of their rows
(`rules.Retention`).

An iteration derives from the rows of the last one (the delta) and all that stand, both as they were when it began, and then
settles what is fresh: rows that are dominated by fresh rows or by rows that stand are rejected, all at once; rows that stand
and that an accepted one dominates leave; of rows that agree on a key of a choice domain the first stays. There the rules come
one after the other, and each derives all of its rows but those whose keys are taken. So an iteration depends on sets of rows
alone, not on their order, on plans, or on threads. Rows from outside and rules without recursion come before the first
iteration. Source: the semi-naive evaluation of subsumption in Souffle.

Each step has relations of its own: `r%new` (derived), `r%fresh` (and not among the rows), `r%chosen` (by the rules so far),
`r%bad` (dominated, of these), `r%delta` (accepted), `r%gone` (dominated, of the rows that stand), `r%kept`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

from dlog.dataclass import dataclass
from dlog.engine.ir.nodes import Scope
from dlog.engine.ir.rules import (
    Atom,
    Compare,
    Constant,
    Kind,
    Literal,
    Negation,
    Program,
    Relation,
    Retention,
    Rule,
    Stratum,
    Term,
    Type,
    Variable,
)
from dlog.engine.plan.explain import explain
from dlog.engine.plan.static.build import build_scope
from dlog.engine.plan.statistics import Statistics

MARK: Final = "%"
PARTS: Final = ("given", "new", "fresh", "chosen", "bad", "delta", "gone", "kept", "touched", "joined")
PAIRED: Final = ("left", "right")
"""Parts with one more column, the first: the number of a pair of rows to be joined."""
Numbered = tuple[Rule, int]
"""A rule, and which one of the stratum it comes from."""


def part(relation: str, of: str) -> str:
    return f"{relation}{MARK}{of}"


@dataclass(frozen=True)
class Steps:
    """The rules of each step of a stratum."""

    stratum: Stratum
    program: Program

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """The relations of the stratum that rules derive: those of `debug_delta` follow."""
        logs = {log for name in self.stratum.relations for log in self.retention(name).logs}
        return tuple(name for name in self.stratum.relations if name not in logs)

    @cached_property
    def extended(self) -> Program:
        """The program with the relations that the steps make."""
        relations = dict(self.program.relations)
        for name in self.relations:
            relations |= {part(name, p): replace(relations[name], name=part(name, p)) for p in PARTS}
            pair = ("pair", Type(Kind.NUMBER.value, Kind.NUMBER))
            relations |= {part(name, p): Relation(part(name, p), (pair, *relations[name].attributes)) for p in PAIRED}
        return replace(self.program, relations=relations, strata=(), retentions={}, lattices={})

    def retention(self, name: str) -> Retention:
        return self.program.retentions.get(name, Retention())

    @cached_property
    def choosing(self) -> tuple[str, ...]:
        """The relations with a choice domain."""
        return tuple(name for name in self.relations if self.retention(name).keys)

    def derive(self, recursive: bool) -> list[Numbered]:
        """The rules that fill `r%new` all together."""
        together = [name for name in self.relations if name not in self.choosing]
        found = [] if recursive else [(self._copy(name, "new", part(name, "given")), 0) for name in together]
        return found + [one for number in range(len(self.stratum.rules)) for one in self._versions(number, recursive, together)]

    def turns(self, recursive: bool) -> Iterator[tuple[str, int, list[Numbered]]]:
        """The relations with a choice domain, rule by rule: which one it is, and what fills `r%new`."""
        for number, rule in enumerate(self.stratum.rules):
            if versions := self._versions(number, recursive, self.choosing):
                yield rule.head.relation, number, versions

    def _versions(self, number: int, recursive: bool, heads: Collection[str]) -> list[Numbered]:
        """A rule of some relations: a recursive one once for each atom that reads a delta."""
        rule = self.stratum.rules[number]
        places = [n for n, x in enumerate(rule.body) if isinstance(x, Atom) and x.relation in self.relations]
        if rule.head.relation not in heads or recursive != bool(places) or _says_nothing(rule):
            return []
        head = replace(rule.head, relation=part(rule.head.relation, "new"))
        bodies = [_reading(rule.body, place, "delta") for place in places] if recursive else [rule.body]
        return [(replace(rule, head=head, body=body), number) for body in bodies]

    def beside(self, name: str, rules: Iterable[Numbered], standing: Sequence[str]) -> list[Numbered]:
        """The rules of a turn without what has a key of a row that stands. What happens at each match still does."""
        return [(self._beside(name, rule, standing), number) for rule, number in rules]

    def _beside(self, name: str, rule: Rule, standing: Sequence[str]) -> Rule:
        named = _with_named_head(rule, self.program.relations[name].kinds)
        return replace(named, body=(*named.body, *self._untaken(name, named.head.args, standing)))

    def _untaken(self, name: str, row: Sequence[Term], standing: Sequence[str]) -> Iterator[Negation]:
        for relation in standing:
            for key in self.retention(name).keys or (tuple(range(len(row))),):
                args = (term if c in key else None for c, term in enumerate(row))
                yield Negation(Atom(relation, tuple(args)))  # type: ignore[arg-type]

    def fresh(self, name: str, standing: Sequence[str]) -> list[Numbered]:
        """What is new and may come beside the rows that stand."""
        row = self._row(name)
        return [(self._rule(name, "fresh", Atom(part(name, "new"), row), *self._untaken(name, row, standing)), 0)]

    def rejected(self, name: str) -> list[Numbered]:
        """The fresh rows that others dominate."""
        among = [self._dominated(name, rule, "bad", "fresh", "fresh") for rule in self.retention(name).dominated]
        return [*among, *(self._dominated(name, rule, "bad", "fresh", "") for rule in self.retention(name).dominated)]

    def accepted(self, name: str) -> list[Numbered]:
        row = self._row(name)
        return [(self._rule(name, "delta", Atom(part(name, "fresh"), row), Negation(Atom(part(name, "bad"), row))), 0)]

    def leaving(self, name: str) -> list[Numbered]:
        """The rows that accepted ones dominate."""
        return [self._dominated(name, rule, "gone", "", "delta") for rule in self.retention(name).dominated]

    def overtaken(self, name: str) -> list[Numbered]:
        """The rows that others dominate now that the stratum has grown, where subsumption asks for that."""
        asking = [r for r in self.retention(name).dominated if any(_mentions(x, self.relations) for x in r.body[2:])]
        return [self._dominated(name, rule, "gone", "", "") for rule in asking]

    # Relations with columns of lattices: rows that stand and have the key of a fresh one are touched; these and the fresh ones
    # are joined in pairs; what then differs from what stood is the delta.

    def touched(self, name: str) -> list[Numbered]:
        row, lattices = self._row(name), self.lattice_columns(name)
        key = tuple(None if c in lattices else v for c, v in enumerate(row))
        return [(self._rule(name, "touched", Atom(name, row), Atom(part(name, "fresh"), key)), 0)]

    def joined(self, name: str) -> list[Numbered]:
        join = self.retention(name).join
        assert join is not None
        pair = Variable(len(join.kinds))
        left, right = (a for a in join.body if isinstance(a, Atom))
        rows = [Atom(part(name, p), (pair, *a.args)) for a, p in ((left, "left"), (right, "right"))]
        others = (x for x in join.body if x not in (left, right))
        head = replace(join.head, relation=part(name, "joined"))
        names, kinds = (*join.variables, "pair"), (*join.kinds, Kind.NUMBER)
        return [(replace(join, head=head, body=(*rows, *others), variables=names, kinds=kinds), 0)]

    def grown(self, name: str) -> list[Numbered]:
        row = self._row(name)
        return [(self._rule(name, "delta", Atom(part(name, "joined"), row), Negation(Atom(name, row))), 0)]

    def replaced(self, name: str) -> list[Numbered]:
        row = self._row(name)
        return [(self._rule(name, "gone", Atom(part(name, "touched"), row), Negation(Atom(part(name, "joined"), row))), 0)]

    def lattice_columns(self, name: str) -> frozenset[int]:
        join = self.retention(name).join
        assert join is not None
        left, right = (a for a in join.body if isinstance(a, Atom))
        return frozenset(c for c, (a, b) in enumerate(zip(left.args, right.args, strict=True)) if a != b)

    def remaining(self, name: str, of: str = "") -> list[Numbered]:
        row = self._row(name)
        read = Atom(part(name, of) if of else name, row)
        return [(self._rule(name, "kept", read, Negation(Atom(part(name, "gone"), row))), 0)]

    def _dominated(self, name: str, rule: Rule, into: str, less: str, greater: str) -> Numbered:
        left, right, *rest = rule.body
        assert isinstance(left, Atom) and isinstance(right, Atom)
        rows = [replace(a, relation=part(name, p) if p else name) for a, p in ((left, less), (right, greater))]
        return replace(rule, head=replace(rule.head, relation=part(name, into)), body=(*rows, *rest)), 0

    def _row(self, name: str) -> tuple[Variable, ...]:
        return tuple(Variable(n) for n in range(self.program.relations[name].arity))

    def _copy(self, name: str, into: str, of: str) -> Rule:
        return self._rule(name, into, Atom(of, self._row(name)))

    def _rule(self, name: str, into: str, *body: Literal) -> Rule:
        relation: Relation = self.program.relations[name]
        names = tuple(n for n, _ in relation.attributes)
        head = replace(self.stratum.rules[0].head, relation=part(name, into), args=self._row(name))
        return Rule(head, body, names, relation.kinds, f"{part(name, into)}({', '.join(names)})")


def _says_nothing(rule: Rule) -> bool:
    return rule.body == (Atom(rule.head.relation, tuple(rule.head.args)),)  # type: ignore[arg-type]


def _with_named_head(rule: Rule, kinds: Sequence[Kind]) -> Rule:
    """The rule with variables for what its head computes."""
    args, body, names, own = list(rule.head.args), list(rule.body), list(rule.variables), list(rule.kinds)
    for c, term in enumerate(args):
        if not isinstance(term, Variable | Constant):
            args[c] = Variable(len(names))
            body.append(Compare("=", args[c], term, kinds[c]))
            names.append(f"_{len(names)}")
            own.append(kinds[c])
    return replace(rule, head=replace(rule.head, args=tuple(args)), body=tuple(body), variables=tuple(names), kinds=tuple(own))


def _reading(body: tuple[Literal, ...], place: int, of: str) -> tuple[Literal, ...]:
    atom = body[place]
    assert isinstance(atom, Atom)
    return (*body[:place], replace(atom, relation=part(atom.relation, of)), *body[place + 1 :])


def _mentions(literal: Literal, names: Iterable[str]) -> bool:
    return isinstance(literal, Atom) and literal.relation in names


# ---------------------------------------------------------------------------------------------------------------- as text


def explain_iterated(stratum: Stratum, program: Program, statistics: Statistics) -> str:
    """What relations keep, and the plans of what enters and of the loop."""
    steps = Steps(stratum, program)
    lines = [f"stratum {', '.join(stratum.relations)}, iteration by iteration"]
    for name in steps.relations:
        lines += [f"  {line}" for line in _keeping(name, steps)]
    for title, recursive in (("enter", False), ("loop", True)):
        rules = [*steps.derive(recursive), *(one for _, _, versions in steps.turns(recursive) for one in versions)]
        if rules:
            made = Stratum(tuple(part(n, "new") for n in steps.relations), tuple(rule for rule, _ in rules), False)
            whole = replace(steps.extended, strata=(made,))
            scope: Scope = build_scope(made, whole, statistics)
            lines += [line.replace("  enter:", f"  {title}:", 1) for line in explain(scope, whole).splitlines()[1:]]
    return "\n".join(lines) + "\n"


def _keeping(name: str, steps: Steps) -> Iterator[str]:
    kept, attributes = steps.retention(name), steps.program.relations[name].attributes
    if kept.dominated:
        yield f"{name} keeps the rows that no other dominates"
        yield from (f"  {text}" for text in dict.fromkeys(" ".join(rule.text.split()) for rule in kept.dominated))
    for key in kept.keys:
        yield f"{name} keeps the first row for each {', '.join(attributes[c][0] for c in key)}"
    if kept.join is not None:
        joined = ", ".join(attributes[c][0] for c in sorted(steps.lattice_columns(name)))
        yield f"{name} keeps one row for each key, with the joins of {joined}"
    for log in kept.logs:
        yield f"{log} has the rows of {name} with the iterations at which they came"
