"""classes: an equivalence relation is kept as the classes of its values, and never as pairs.

    .decl same(x: t, y: t) eqrel                      same(x, y) :- born(x, y).
    same(x, y) :- born(x, y).                  ->     same{class}(x, c) :- c = min n : { ... }.
    q(y) :- same("a", y).                             q(y) :- same{class}("a", c), same{class}(y, c).
    p(x, y) :- e(x, y), !same(x, y).                  p(x, y) :- e(x, y), !same{class}(x, _).
                                                      p(x, y) :- e(x, y), same{class}(x, c), !same{class}(y, c).

What is left under the name of the relation are the pairs that its rules derive and others give: its classes are the connected
components of these. Rules that only say what follows from the classes, as those of its declaration do, are gone.

The class of a value is the least number of any value in it (`ord`), so that there is one row per value. While a stratum that
also makes pairs runs, a value may have several rows, of classes that have become one: all that is read is whether two values
have a class in common, and that stays true. Relations whose rows are counted within their own recursion therefore keep their
pairs, as those do whose size has a limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import product
from typing import TypeAlias

from dlog.dataclass import dataclass
from dlog.engine.compile.strata.dependencies import dependencies
from dlog.engine.ir.rules import (
    Aggregate,
    Arg,
    Atom,
    Compare,
    Constant,
    Functor,
    Generator,
    Head,
    Kind,
    Literal,
    Negation,
    Program,
    Relation,
    Rule,
    Stratum,
    Term,
    Type,
    Variable,
)
from dlog.engine.optimize.class_sides import Sides
from dlog.engine.optimize.prune import prune
from dlog.engine.optimize.rewriting import Body, rules_by_relation, with_rules

Value: TypeAlias = Variable | Constant

_NUMBER = Type("number", Kind.NUMBER)


def with_classes(program: Program, observed: frozenset[str]) -> Program:
    """The program with `classes` for its equivalence relations, as far as observed relations depend on them."""
    program = prune(program, observed)
    names = _suitable(program)
    if not names:
        return program
    made = {name: _class_relation(program, name) for name in names}
    classes = {name: relation.name for name, relation in made.items()}
    sides = Sides(program, frozenset(classes.values()))
    rules = {
        name: [
            sides.split(new)
            for rule in found
            if not _follows(rule, classes)
            for new in _Reading(program, classes, rule).rules()
        ]
        for name, found in rules_by_relation(program).items()
    }
    for name, relation in made.items():
        rules[relation.name] = [_class_rule(program.relations[name], relation)]
    more = {relation.name: relation for relation in made.values()} | sides.relations
    return with_rules(replace(program, classes=classes), rules | sides.rules, more)


# --------------------------------------------------------------------------------------------------------------- choosing


def _suitable(program: Program) -> list[str]:
    """The equivalence relations that can be read by classes, in the order of evaluation."""
    limited = {io.relation for io in program.io if io.action == "limitsize"}
    asked = {
        literal.atom.relation
        for name in program.lattices
        for rule in program.rules[name]
        for literal in rule.body
        if isinstance(literal, Negation)
    }
    return [
        name
        for stratum in program.strata
        for name in stratum.relations
        if name in program.eqrels and name not in limited | asked and not _counts(stratum, program)
    ]


def _counts(stratum: Stratum, program: Program) -> bool:
    """Whether aggregates in a cycle of relations read others of it, or what it keeps depends on its iterations."""
    own = set(stratum.relations)
    return bool(own & (program.lattices.keys() | program.iterated)) or any(
        d.on in own and d.how != "positive" for rule in stratum.rules for d in dependencies(rule)
    )


def _class_relation(program: Program, name: str) -> Relation:
    made = f"{name}{{class}}"
    while made in program.relations:
        made += "'"
    relation = program.relations[name]
    return Relation(made, (relation.attributes[0], ("class", _NUMBER)), relation.span)


def _class_rule(pairs: Relation, classes: Relation) -> Rule:
    """c(x, l) :- l = min n : { r(x, _), n = ord(x) ; r(_, x), n = ord(x) ; r(x, y), c(y, n) ; r(y, x), c(y, n) }."""
    kind, span = pairs.kinds[0], pairs.span
    x, least, n, y = (Variable(i) for i in range(4))
    own = Compare("=", n, _number(x, kind), Kind.NUMBER, span)
    alternatives: tuple[tuple[Literal, ...], ...] = (
        (Atom(pairs.name, (x, None), span), own),
        (Atom(pairs.name, (None, x), span), own),
        (Atom(pairs.name, (x, y), span), Atom(classes.name, (y, n), span)),
        (Atom(pairs.name, (y, x), span), Atom(classes.name, (y, n), span)),
    )
    body = (Aggregate(least, "min", n, alternatives, (x,), Kind.NUMBER, span),)
    kinds = (kind, Kind.NUMBER, Kind.NUMBER, kind)
    text = f"{classes.name}(x, class) :- the classes of {pairs.name}"
    return Rule(Head(classes.name, (x, least), span), body, ("x", "class", "n", "y"), kinds, text, span)


def _number(value: Variable, kind: Kind) -> Term:
    match kind:
        case Kind.NUMBER:
            return value
        case Kind.UNSIGNED:
            return Functor("utoi", (value,), kind, Kind.NUMBER)
        case Kind.FLOAT | Kind.SYMBOL | Kind.RECORD:
            return Functor("ord", (value,), kind, Kind.NUMBER)


# ---------------------------------------------------------------------------------------------------------------- reading


@dataclass(slots=True)
class _Component:
    """Values that positive atoms of one relation and body say are equivalent, the variable of their class if there is one, and
    whether they have been read."""

    relation: str
    values: list[Value]
    label: Variable | None = None
    is_read: bool = False


def _components(body: Iterable[Literal], classes: Mapping[str, str]) -> list[_Component]:
    """In the order of the text."""
    found: list[_Component] = []
    for atom in body:
        if not isinstance(atom, Atom) or atom.relation not in classes:
            continue
        values = list(dict.fromkeys(a for a in atom.args if a is not None))
        met = [c for c in found if c.relation == atom.relation and not set(values).isdisjoint(c.values)]
        if met:
            first, *others = met
            first.values = list(dict.fromkeys([*first.values, *(v for c in others for v in c.values), *values]))
            found = [c for c in found if c not in others]
        elif values:
            found.append(_Component(atom.relation, values))
    return found


def _follows(rule: Rule, classes: Mapping[str, str]) -> bool:
    """Whether a rule of an equivalence relation gives only pairs that follow from those it reads."""
    head = rule.head
    if head.relation not in classes:
        return False
    components = (c.values for c in _components(rule.body, classes) if c.relation == head.relation)
    return any(set(head.args) <= set(values) for values in components)


@dataclass(slots=True)
class _Reading:
    """Rewrites one rule, whose variables become more."""

    program: Program
    classes: Mapping[str, str]
    rule: Rule
    variables: list[str] = field(init=False)
    kinds: list[Kind] = field(init=False)

    def __post_init__(self) -> None:
        self.variables, self.kinds = list(self.rule.variables), list(self.rule.kinds)

    def rules(self) -> list[Rule]:
        """The rules in the place of one: several, where it negates equivalence."""
        bodies = self._bodies(self.rule.body)
        if bodies == [self.rule.body]:
            return [self.rule]
        variables, kinds = tuple(self.variables), tuple(self.kinds)
        return [replace(self.rule, body=body, variables=variables, kinds=kinds) for body in bodies]

    def _bodies(self, body: Body) -> list[Body]:
        components = _components(body, self.classes)
        negated = {id(x): self._negated(x, components) for x in body if isinstance(x, Negation)}  # first: they ask for classes
        ways: list[Sequence[Body]] = []
        for literal in body:
            match literal:
                case Atom(relation=name) if name in self.classes:
                    ways.append([tuple(self._atoms(literal, components))])
                case Negation():
                    ways.append(negated[id(literal)])
                case Aggregate():
                    ways.append([(self._aggregate(literal),)])
                case _:
                    ways.append([(literal,)])
        return [tuple(x for part in chosen for x in part) for chosen in product(*ways)]

    def _atoms(self, atom: Atom, components: Sequence[_Component]) -> Iterator[Atom]:
        """What is read where an atom stands: all values of its component, where it is the first of that."""
        name, first = self.classes[atom.relation], next((a for a in atom.args if a is not None), None)
        if first is None:
            yield Atom(name, (None, None), atom.span)
            return
        component = self._component(atom.relation, first, components)
        if component is None or component.is_read:
            return
        component.is_read = True
        if len(component.values) > 1:
            self._label(component)
        for value in component.values:
            yield Atom(name, (value, component.label), atom.span)

    def _negated(self, literal: Negation, components: Sequence[_Component]) -> Sequence[Body]:
        """The alternatives that a negation becomes: the first value is in no class, or the second in another one."""
        atom, span = literal.atom, literal.span
        if atom.relation not in self.classes:
            return [(literal,)]
        name, (left, right) = self.classes[atom.relation], atom.args
        if left is None or right is None or left == right:
            value = right if left is None else left
            return [(Negation(Atom(name, (value, None), atom.span), span),)]
        for value, other in ((left, right), (right, left)):
            component = self._component(atom.relation, value, components)
            if component is not None:
                return [(Negation(Atom(name, (other, self._label(component)), atom.span), span),)]
        label = self._fresh("class", Kind.NUMBER)
        unknown = Negation(Atom(name, (left, None), atom.span), span)
        return [(unknown,), (Atom(name, (left, label), span), Negation(Atom(name, (right, label), atom.span), span))]

    def _aggregate(self, aggregate: Aggregate) -> Aggregate:
        bodies = [self._with_named_rows(inner) for inner in aggregate.alternatives]
        return replace(aggregate, alternatives=tuple(new for inner in bodies for new in self._bodies(inner)))

    def _with_named_rows(self, body: Body) -> Body:
        """The body of an aggregate with variables for what is anonymous in its only atom, where each row counts: there will be
        more atoms, or alternatives, of which bindings count."""
        atoms = [x for x in body if isinstance(x, Atom)]
        read = {x.relation for x in atoms} | {x.atom.relation for x in body if isinstance(x, Negation)}
        if len(atoms) != 1 or read.isdisjoint(self.classes) or any(isinstance(x, Aggregate | Generator) for x in body):
            return body
        (atom,) = atoms
        named = [a for a in atom.args if isinstance(a, Variable)]
        if len(set(named)) < len(named):
            return body
        kinds = self.program.relations[atom.relation].kinds
        args: tuple[Arg, ...] = tuple(self._fresh("_", k) if a is None else a for a, k in zip(atom.args, kinds, strict=True))
        return tuple(replace(x, args=args) if x is atom else x for x in body)

    def _component(self, relation: str, value: Value, components: Sequence[_Component]) -> _Component | None:
        return next((c for c in components if c.relation == relation and value in c.values), None)

    def _label(self, component: _Component) -> Variable:
        if component.label is None:
            component.label = self._fresh("class", Kind.NUMBER)
        return component.label

    def _fresh(self, name: str, kind: Kind) -> Variable:
        self.variables.append(name if name not in self.variables else f"{name}{len(self.variables)}")
        self.kinds.append(kind)
        return Variable(len(self.kinds) - 1)
