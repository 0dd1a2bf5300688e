"""class_sides: a rule that joins over classes asks for what each class has, not for pairs of values.

    q(x, w) :- p(x, y), same{class}(y, c), same{class}(z, c), p(z, w).
    ->
    q{side}(c, x) :- p(x, y), same{class}(y, c).
    q{side}'(c, w) :- same{class}(z, c), p(z, w).
    q(x, w) :- q{side}(c, x), q{side}'(c, w).

Without the variables of classes a body falls into parts that have none in common. Of a part that has values the head does not,
a rule of its own keeps what the others and the head need: then a class of n values is walked in n steps, where pairs would take
n * n. That pays where several parts meet in a class; where constants say which one, there are no pairs. Parts of the same form
share a relation, as those of a congruence do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from dlog.dataclass import dataclass
from dlog.engine.ir.functors import may_stop
from dlog.engine.ir.printing import explicit_rule
from dlog.engine.ir.rules import (
    Aggregate,
    Atom,
    Compare,
    Generator,
    Head,
    Literal,
    Negation,
    Program,
    Relation,
    Rule,
    Type,
    Unpack,
    Variable,
)
from dlog.engine.ir.traversal import literal_variables, term_variables
from dlog.engine.optimize.rewriting import Body, Rules


@dataclass(slots=True)
class Sides:
    """The relations of parts of rules, and their rules. `classes` are the names of the relations of classes."""

    program: Program
    classes: frozenset[str]
    relations: dict[str, Relation] = field(default_factory=dict)
    rules: Rules = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def split(self, rule: Rule) -> Rule:
        """The rule with parts of its body in relations of their own, where that pays."""
        labels = _labels(rule.body, self.classes)
        if not labels or rule.head.relation in self.program.lattices:
            return rule
        needed = {v for term in rule.head.args for v in term_variables(term)}
        parts = self._without_witnesses(_parts(rule.body, labels), needed)
        meeting = {c for c in labels if sum(part.meets(c) for part in parts) > 1}
        body: list[Literal] = []
        for part in parts:
            others = {v for other in parts if other is not part for v in other.variables}
            kept = [v for v in dict.fromkeys(part.order) if v in needed | others]
            if part.separable(meeting, self.classes) and not part.own <= set(kept):
                body.append(self._side(rule, part, kept))
            else:
                body += part.literals
        return rule if tuple(body) == rule.body else replace(rule, body=tuple(body))

    def _without_witnesses(self, parts: list[_Part], needed: set[int]) -> list[_Part]:
        """The parts but those that say that a class has a value, whichever, where others have one of it."""
        for part in list(parts):
            match part.literals:
                case (Atom(relation=name, args=(Variable(id=value), Variable(id=label))),) if name in self.classes:
                    others = [other for other in parts if other is not part]
                    if value not in needed and any(label in other.bound_classes(self.classes) for other in others):
                        parts = others
        return parts

    def _side(self, rule: Rule, part: _Part, kept: Sequence[int]) -> Atom:
        """The atom of the relation that has these variables of a part."""
        args = tuple(Variable(v) for v in kept)
        form = _form(replace(rule, head=Head("", args), body=part.literals))
        name = self._names.get(form)
        if name is None:
            name = self._names[form] = self._name(rule.head.relation)
            kinds = [rule.kinds[v] for v in kept]
            attributes = tuple((f"c{i}", Type(kind.value, kind)) for i, kind in enumerate(kinds))
            self.relations[name] = Relation(name, attributes, rule.span)
            self.rules[name] = [replace(rule, head=Head(name, args), body=part.literals, text=f"{rule.text}  [by class]")]
        return Atom(name, args, rule.span)

    def _name(self, head: str) -> str:
        name = f"{head}{{side}}"
        while name in self.program.relations or name in self.relations:
            name += "'"
        return name


@dataclass(frozen=True, slots=True)
class _Part:
    """Literals that hang together by variables that stand for no class: its `own`. `variables` has the others too."""

    literals: Body
    own: frozenset[int]

    @property
    def order(self) -> Iterator[int]:
        return (v for literal in self.literals for v in literal_variables(literal))

    @property
    def variables(self) -> frozenset[int]:
        return frozenset(self.order)

    def meets(self, label: int) -> bool:
        return bool(self.own) and label in self.variables

    def separable(self, meeting: set[int], classes: frozenset[str]) -> bool:
        """Whether it can be evaluated alone, and has a class in which it meets others."""
        labels = self.variables - self.own
        return bool(labels & meeting) and labels <= self.bound_classes(classes) and all(map(_total, self.literals))

    def bound_classes(self, classes: frozenset[str]) -> frozenset[int]:
        """The classes that its atoms read."""
        return _labels(self.literals, classes)


def _labels(body: Body, classes: frozenset[str]) -> frozenset[int]:
    """The variables for classes that a body binds."""
    found = (x.args[1] for x in body if isinstance(x, Atom) and x.relation in classes)
    return frozenset(a.id for a in found if isinstance(a, Variable))


def _parts(body: Body, labels: frozenset[int]) -> list[_Part]:
    """The parts, in the order of their first literals; one that has no variable but for classes is a part by itself."""
    found: list[_Part] = []
    for literal in body:
        own = frozenset(literal_variables(literal)) - labels
        met = [part for part in found if part.own & own]
        merged = _Part((*(x for part in met for x in part.literals), literal), own.union(*(part.own for part in met)))
        at = found.index(met[0]) if met else len(found)
        found = [part for part in found if part not in met]
        found.insert(at, merged)
    return found


def _total(literal: Literal) -> bool:
    """Whether it may be evaluated for values that the rest of its body keeps away."""
    match literal:
        case Compare(left=left, right=right):
            return not may_stop(left) and not may_stop(right)
        case Atom() | Negation() | Unpack():
            return True
        case Aggregate() | Generator():
            return False


def _form(rule: Rule) -> str:
    """The rule as text that does not depend on the names and numbers of variables."""
    order: dict[int, str] = {}
    for literal in rule.body:
        for v in literal_variables(literal):
            order.setdefault(v, f"v{len(order)}:{rule.kinds[v].value}")
    names = tuple(order.get(v, "") for v in range(len(rule.variables)))
    return explicit_rule(replace(rule, variables=names))
