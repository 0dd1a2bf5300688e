"""Loops as recursion.

A loop comes to what rules that read their own relation derive, if its body is monotone - the more rows go in, the more come
out - and each iteration has all that the one before had: then both end at the least collection that the body makes of itself.
So a body ends in `distinct`, adds the collection from which it starts, and takes nothing away; or it ends in `min` (or `max`),
and its values rise with those that go in."""

from __future__ import annotations

from collections.abc import Sequence

from dlog.as_rules.bodies import Body, Stored, is_set
from dlog.as_rules.collections import Collections
from dlog.as_rules.graph import bare, summands
from dlog.as_rules.program import literal_variables
from dlog.as_rules.refusals import refused
from dlog.as_rules.terms import rises_with, variables
from dlog.dataflow.base import Base
from dlog.dataflow.collection import Variable
from dlog.grammar.syntax import Variable as Name

_START = "add what it starts from: `.concat(start.enter(inner.scope))`, or the collection itself"


class Compiler(Collections):
    """The bodies of collections, those of loops included."""

    def _translate(self, collection: Base) -> list[Body]:
        loops = self.graph.loops.get(id(collection), [])
        mine = [v for v in loops if v in self.graph.variables(collection, v.scope)]
        if mine and not isinstance(collection, Variable):
            return self._read(collection, self._loop(collection, mine))
        return super()._translate(collection)

    def _variable(self, variable: Variable) -> list[Body]:
        """A variable is what it is defined to be, as recursion reads it."""
        if variable.meaning is None:
            raise refused("Variable", "it has no definition", "give it one: `set`")
        meaning = bare(variable.meaning)
        if isinstance(meaning, Variable):
            raise refused("Variable", "it is defined by a variable alone", _START)
        if variable not in self.graph.variables(meaning, variable.scope):
            return self.bodies(meaning)
        if id(meaning) not in self._relations:
            self.bodies(meaning)
        return [self.fresh.read(self._relations[id(meaning)])]

    def _loop(self, collection: Base, loops: Sequence[Variable]) -> Stored:
        """The relation of a collection that is defined by itself."""
        operator = collection.definition.operator
        if operator in ("min", "max"):
            return self._best_loop(collection, loops)
        if operator != "distinct":
            return self._plain_loop(collection, loops)
        (part,) = collection.definition.parts
        if self._best_in_loop(part):
            raise refused("distinct", "of what `min` or `max` makes in the loop", "use `min` or `max` in a loop of its own")
        stored = self.named(collection, "loop")
        stored.keys = (stored.places,)
        self._relations[id(collection)] = stored
        bodies = self._with_starts(part, loops)
        return self.fill_set(stored, bodies)

    def _plain_loop(self, collection: Base, loops: Sequence[Variable]) -> Stored:
        """Of a definition that has each row once without `distinct`: only if it starts from nothing."""
        operator = collection.definition.operator
        if any(v.start is not None for v in loops):
            raise refused("iterate", f"its body ends in `{operator}`", "end it in `distinct`, `min` or `max`")
        stored = self.named(collection, "loop")
        stored.keys = (stored.places,)
        self._relations[id(collection)] = stored
        bodies = super()._translate(collection)
        if not is_set(bodies, stored.names) or not all(body.positive for body in bodies):
            raise refused("Variable", f"its definition ends in `{operator}`", "end it in `distinct`, `min` or `max`")
        return self.fill_set(stored, bodies)

    def _best_loop(self, collection: Base, loops: Sequence[Variable]) -> Stored:
        part, keys, column = collection.definition.parts[0], *collection.definition.arguments
        operator = collection.definition.operator
        if not self.graph.variables(part, part.scope) <= set(loops):
            raise refused(operator, "in a loop, of what other variables make", "give each a loop of its own")
        stored = self.best_of(collection, keys, column)
        self._relations[id(collection)] = stored
        bodies = [body.with_columns({n: body.columns[n] for n in stored.names}) for body in self._with_starts(part, loops)]
        for body in bodies:
            self._check_rising(body, stored, column, operator)
        return self.fill_set(stored, bodies)

    def _with_starts(self, part: Base, loops: Sequence[Variable]) -> list[Body]:
        """What a loop's body makes, and what it starts from, which must be in that."""
        found = list(self.there(part))
        starts = {v: [id(_undistinct(each)) for each in summands(v.start)] for v in loops if v.start is not None}
        inside = {id(_undistinct(each)) for each in summands(part)}
        for _ in starts:  # a variable that is added brings what it starts from, which may be another variable
            inside |= {each for v, start in starts.items() if id(v) in inside for each in start}
        for v, start in starts.items():
            if id(v) not in inside and not inside.issuperset(start):
                raise refused("iterate", "its body may lose what it starts from", _START)
            assert v.start is not None
            found += self.there(v.start)
        return found

    def _check_rising(self, body: Body, stored: Stored, column: str, operator: str) -> None:
        """Refuses a body whose best value does not come from the best values that go in."""
        assert stored.least is not None
        given = {read.args[stored.least] for read in body.reads if read.stored is stored}
        names = {term.name for term in given if isinstance(term, Name)}
        terms = [term for name, term in body.columns.items() if name != column]
        terms += [arg for r in body.reads for k, arg in enumerate(r.args) if not (r.stored is stored and k == stored.least)]
        used = {name for term in terms for name in variables(term)}
        used |= {name for literal in body.literals[len(body.reads) :] for name in literal_variables(literal)}
        if len(names) < len(given) or names & used or not rises_with(body.columns[column], names):
            why = f"in a loop, of a value that is not `{column}` of before, or something added to it or taken from it"
            raise refused(operator, why, "compute others, and compare, outside of the loop")


def _undistinct(collection: Base) -> Base:
    found = bare(collection)
    while found.definition.operator == "distinct":
        found = bare(found.definition.parts[0])
    return found
