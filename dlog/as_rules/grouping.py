"""Rules that add up and choose: what relations of sums, of sets and of best values consist of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dlog.as_rules import terms as T
from dlog.as_rules.bodies import Body, Fresh, Stored, determined_variables, is_set, once_each, smallest_key
from dlog.as_rules.program import MULTIPLICITY, Program, Sum, distinct_names
from dlog.as_rules.terms import Term, is_literal
from dlog.dataflow.schema import Schema
from dlog.grammar.syntax import Atom, Constraint, Number, Or, Variable
from dlog.grammar.syntax import Body as Literal


class Grouping:
    """Relations that are filled from bodies."""

    def __init__(self, program: Program) -> None:
        self.program, self.fresh = program, Fresh()

    def fill_set(self, stored: Stored, bodies: Sequence[Body]) -> Stored:
        """Has a relation hold each row that a body has, once."""
        for body in bodies:
            head = _terms(body, stored.names)
            if body.literals != (Atom(stored.name, tuple(head)),):  # rows of its own are no news
                self.program.rule(stored, head, body.literals)
        if not stored.keys:
            exact = is_set(bodies, stored.names)
            stored.keys = (smallest_key(bodies, stored.names) if exact else stored.places,)
        return stored

    def stored(self, hint: str, schema: Schema, bodies: Sequence[Body], named: bool = False) -> Stored:
        """A relation of what bodies sum up to, without a column for how often rows are there where each is there once."""
        if is_set(bodies, schema.names):
            return self.fill_set(self.program.relation(hint, schema, named=named), bodies)
        positive = all(body.positive for body in bodies)
        stored = self.program.relation(hint, schema, named=named, weighted=True, positive=positive)
        self.fill_sums(stored, len(schema.names), bodies)
        stored.keys = (smallest_key(bodies, schema.names) if once_each(bodies, schema.names) else stored.places,)
        return stored

    # ---------------------------------------------------------------------------------------------------------------- sums

    def fill_sums(self, stored: Stored, keys: int, bodies: Sequence[Body]) -> Stored:
        """Has a relation hold keys, its first columns, and the sums of the weights of their matches. Bodies that have a key
        several times are added up, each by itself; then those of all bodies are."""
        names = stored.names[:keys]
        checked = not all(_surely_there(body) for body in bodies)
        if once_each(bodies, names):
            for body in bodies:
                weights = _weights(body)
                nonzero = [] if _surely_there(body) else _not_all_zero(weights)
                literals = [*body.literals, *(c for c in nonzero if c not in body.conditions)]
                self.program.rule(stored, [*_terms(body, names), *weights], literals)
        elif len(alike := _alike(bodies)) == 1:
            self._add_up(stored, names, alike[0], [], checked)
        else:
            self._add_all(stored, names, alike, checked)
        return stored

    def _add_all(self, stored: Stored, names: Sequence[str], alike: Sequence[Sequence[Body]], checked: bool) -> None:
        """By way of a relation of the sums of each body."""
        width = len(stored.attributes) - len(names)
        part, *differing = distinct_names(["part", *[MULTIPLICITY] * width], names)
        schema = Schema((*names, part, *differing), (*stored.kinds[: len(names)], int, *[int] * width))
        parts = self.program.relation(f"{stored.name}_part", schema)
        parts.keys = (tuple(range(len(names) + 1)),)
        for number, bodies in enumerate(alike):
            tag = T.number(number)
            if once_each(bodies, names):
                for body in bodies:
                    self.program.rule(parts, [*_terms(body, names), tag, *_weights(body)], body.literals)
            else:
                self._add_up(parts, names, bodies, [tag], False)
        whole = self.fresh.read(parts)
        weights = tuple(whole.columns[label] for label in differing)
        whole = replace(whole, weight=weights) if width == 1 else replace(whole, parts=weights)
        self._add_up(stored, names, [whole], [], checked)

    def _add_up(
        self, stored: Stored, names: Sequence[str], bodies: Sequence[Body], tags: Sequence[Term], checked: bool
    ) -> None:
        """A rule for the sums of the weights of bodies that are alike, by key."""
        plain = len(bodies) == 1 and _is_plain(bodies[0], names)
        body = bodies[0] if plain else self._rows(stored, names, bodies)
        keys, results, sums = _terms(body, names), [], []
        for weight in _weights(body):
            made, result = self._sum(body, keys, weight)
            sums.append(made)
            results.append(result)
        checks = _not_all_zero(results) if checked else []
        self.program.rule(stored, [*keys, *tags, *results], [read.atom for read in body.reads], sums, checks)

    def _sum(self, body: Body, keys: Sequence[Term], weight: Term) -> tuple[Sum, Term]:
        """The sum of a weight over the matches of a plain body that have a key, and the term for it."""
        (again,) = self.fresh.again([body.with_columns({"": weight})])
        values = {new: Variable(old) for old, new in zip(body.variables, again.variables, strict=True) if Variable(old) in keys}
        again = again.substituted(values)
        result = self.fresh.variable("n", int)
        if isinstance(weight, Number):
            return Sum(result, None, again.reads[0].atom), T.product((result, weight))
        return Sum(result, again.columns[""], again.reads[0].atom), result

    def _rows(self, stored: Stored, names: Sequence[str], bodies: Sequence[Body]) -> Body:
        """The matches of bodies that are alike as rows of a relation: key, what tells matches apart, those weights that
        differ."""
        first = bodies[0]
        identity = self._identity(first, _terms(first, names))
        weights = _weights(first)
        computed = [weight for weight in weights if not is_literal(weight)]
        labels = distinct_names([*(name.rpartition("~")[0] for name in identity), *[MULTIPLICITY] * len(computed)], names)
        kinds = [*stored.kinds[: len(names)], *(self.fresh.kinds[name] for name in identity), *[int] * len(computed)]
        rows = self.program.relation(f"{stored.name}_rows", Schema((*names, *labels), tuple(kinds)))
        rows.keys = (tuple(range(len(names) + len(identity))),)
        head = [*_terms(first, names), *(Variable(name) for name in identity), *computed]
        for body in bodies:
            self.program.rule(rows, head, body.literals)
        found = self.fresh.read(rows)
        values = iter(found.columns[label] for label in labels[len(identity) :])
        made = tuple(weight if is_literal(weight) else next(values) for weight in weights)
        return replace(found, parts=made) if first.parts else replace(found, weight=made)

    def _identity(self, body: Body, keys: Sequence[Term]) -> list[str]:
        """Variables that tell, with the key, which match a row is of."""
        found: list[str] = []
        for name in body.variables:
            if name not in determined_variables(body, [*keys, *(Variable(each) for each in found)]):
                found.append(name)
        return found


def _alike(bodies: Sequence[Body]) -> list[list[Body]]:
    """Bodies, those together that differ in their conditions alone, of which one holds for a match."""
    found: list[list[Body]] = []
    for body in bodies:
        for group in found:
            if replace(body, conditions=()) == replace(group[0], conditions=()):
                group.append(body)
                break
        else:
            found.append([body])
    return found


def _terms(body: Body, names: Sequence[str]) -> list[Term]:
    return [body.columns[name] for name in names]


def _weights(body: Body) -> list[Term]:
    """How often a match counts, in each component."""
    return [T.product((*body.weight, part)) for part in body.parts] if body.parts else [T.product(body.weight)]


def _surely_there(body: Body) -> bool:
    """Whether the sums of any matches are not all zero."""
    return body.positive and (not body.parts or any(isinstance(p, Number) and int(p.text) > 0 for p in body.parts))


def _not_all_zero(weights: Sequence[Term]) -> list[Literal]:
    found = tuple(Constraint("!=", weight, T.ZERO) for weight in weights)
    return [found[0] if len(found) == 1 else Or(found)]


def _is_plain(body: Body, names: Sequence[str]) -> bool:
    """Whether a body is one atom of different variables, among which its keys are."""
    if len(body.reads) != 1 or body.conditions or body.series:
        return False
    arguments, keys = [arg for arg in body.reads[0].args if isinstance(arg, Variable)], _terms(body, names)
    different = len(set(arguments)) == len(arguments) and len(set(keys)) == len(keys)
    return different and all(isinstance(key, Variable) for key in keys)
