"""Collections as bodies: what each operator makes of those of its parts.

Linear operators and joins stay bodies, so that a chain of them is one rule, which is planned as a whole. Where a collection
must be known as a whole - `distinct`, `count`, `min`, a negated one - it becomes a relation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dlog.as_rules import terms as T
from dlog.as_rules.bodies import Body, Stored, all_rows_of, is_set, joined, once_each
from dlog.as_rules.expressions import Translator
from dlog.as_rules.functors import Functors
from dlog.as_rules.graph import Graph, bare
from dlog.as_rules.grouping import Grouping
from dlog.as_rules.linear import LinearOperators, weighted
from dlog.as_rules.program import Program
from dlog.as_rules.ranking import Order, Ranking
from dlog.as_rules.refusals import refused
from dlog.dataflow.base import Base
from dlog.dataflow.expressions import Expression
from dlog.dataflow.flow import Input
from dlog.dataflow.reductions import COUNTS
from dlog.grammar.syntax import Atom, Constraint, Not, Variable

LINEAR = frozenset(
    {"map", "rename", "filter", "negate", "repeat_row", "explode", "generate_series", "unpack_changes"}
    | {"tumbling_window", "sliding_window"}
)
MOST_BODIES, MOST_IN_LOOP = 16, 128
"""Bodies that a collection may have before it becomes a relation; in a loop it cannot, unless it is a set."""
MOST_JOINED = 3
"""Bodies that each side of a join may have for it to be one rule for each pair."""
MOST_ATOMS = 16
"""Atoms that a body may have before a join of it becomes a relation."""
_LOOPED = "give it what does not change in the loop, or take it out of the loop: `leave`"


class Collections(Grouping):
    """The bodies of collections; `inputs` are relations already, `names` are those that some collections are to have as
    relations."""

    def __init__(self, program: Program, graph: Graph, inputs: Mapping[int, Stored], names: Mapping[int, str]) -> None:
        super().__init__(program)
        self.graph, self._inputs, self._names = graph, inputs, names
        self.functors = Functors(program)
        self._linear = LinearOperators(self.fresh, self.functors)
        self._bodies_by_id: dict[int, list[Body]] = {}
        self._relations: dict[int, Stored] = {}

    def bodies(self, collection: Base) -> list[Body]:
        """The bodies whose sum a collection is. Parts come first, so that long chains are no deep recursion, but those of loops
        after them, for they read them."""
        found = bare(collection)
        waiting, entered = [found], set[int]()
        while waiting:
            each = waiting[-1]
            parts = [part for part in map(bare, each.definition.parts) if id(part) not in self._bodies_by_id]
            if id(each) not in self._bodies_by_id and id(each) not in entered and id(each) not in self.graph.loops:
                entered.add(id(each))
                waiting += parts
                continue
            waiting.pop()
            if id(each) not in self._bodies_by_id:
                self._bodies_by_id[id(each)] = self._store_if_shared(each, self._translate(each))
        return self._bodies_by_id[id(found)]

    def relation(self, collection: Base) -> Stored:
        """A collection as a relation."""
        found = bare(collection)
        if id(found) not in self._relations:
            bodies = self.bodies(found)
            if id(found) not in self._relations:
                self._relations[id(found)] = self._related(found, bodies)
        return self._relations[id(found)]

    def named(self, collection: Base, default: str, weighted: bool = False) -> Stored:
        """A new relation for a collection, which has the name of an output if it is one."""
        name = self._names.get(id(collection))
        return self.program.relation(name or default, collection.schema, named=name is not None, weighted=weighted)

    # -------------------------------------------------------------------------------------------------------------- inside

    def _translate(self, collection: Base) -> list[Body]:
        if isinstance(collection, Input):
            return [self.fresh.read(self._inputs[id(collection)])]
        definition = collection.definition
        if definition.operator in LINEAR:
            (part,) = definition.parts
            operator = getattr(self._linear, definition.operator)
            found = [made for body in self.bodies(part) for made in operator(body, part.schema, *definition.arguments)]
            return self._few(collection, found)
        make = getattr(self, f"_{definition.operator}", None)
        if definition.operator not in OPERATORS or make is None:
            raise refused(definition.operator)
        return make(collection, *definition.parts, *definition.arguments)  # type: ignore[no-any-return]

    def _store_if_shared(self, collection: Base, bodies: list[Body]) -> list[Body]:
        """The bodies, or, where a collection is read several times and its rows are told apart by their columns, a relation."""
        shared = self.graph.readers[id(collection)] > 1 and sum(len(body.reads) for body in bodies) > 1
        simple = not collection.schema.diffs and once_each(bodies, collection.schema.names)
        if not (shared and simple) or self._best_in_loop(collection):
            return bodies
        self._relations[id(collection)] = stored = self._related(collection, bodies)
        return [self.fresh.read(stored)]

    def _related(self, collection: Base, bodies: list[Body]) -> Stored:
        """A relation for bodies."""
        plain = all_rows_of(bodies, collection.schema.names)
        if plain is not None:
            return plain
        if not once_each(bodies, collection.schema.names):
            self.check_outside(collection, collection.definition.operator, "how often rows are there", "add `distinct`")
        if self._best_in_loop(collection):
            raise refused(collection.definition.operator, "of what `min` or `max` makes in the loop", _LOOPED)
        name = self._names.get(id(collection))
        return self.stored(name or collection.definition.operator, collection.schema, bodies, named=name is not None)

    def _few(self, collection: Base, bodies: list[Body]) -> list[Body]:
        """The bodies, or a relation where they are too many."""
        most = MOST_IN_LOOP if self.graph.variables(collection, collection.scope) else MOST_BODIES
        if len(bodies) <= most and all(len(body.reads) <= MOST_ATOMS for body in bodies):
            return bodies
        if collection.schema.diffs:
            raise refused(collection.definition.operator, "too many cases", "add up parts of the sum: `count`")
        self._relations[id(collection)] = stored = self._related(collection, bodies)
        return [self.fresh.read(stored)]

    def check_outside(self, collection: Base, operator: str, what: str, instead: str = _LOOPED) -> None:
        """Refuses what cannot be known before the loop that it is in has ended."""
        if self.graph.variables(collection, collection.scope):
            raise refused(operator, f"in a loop, {what} cannot be known before it ends", instead)

    def _best_in_loop(self, collection: Base) -> bool:
        """Whether a collection is made of the best values of a loop while it goes on."""
        around = self.graph.variables(collection, collection.scope)
        return any(v.meaning is not None and bare(v.meaning).definition.operator in ("min", "max") for v in around)

    def there(self, collection: Base) -> list[Body]:
        """Bodies for the rows that are there at least once, each any number of times."""
        bodies = self.bodies(collection)
        if all(body.positive for body in bodies):
            return [replace(body, weight=()) for body in bodies]
        self.check_outside(collection, collection.definition.operator, "whether rows are there that others take away")
        (body,) = [self.fresh.read(self.relation(collection))]
        some = [] if body.positive else [Constraint(">", weight, T.ZERO) for weight in body.weight]
        return [replace(body.where(some), weight=(), positive=True)]

    # --------------------------------------------------------------------------------------------------------------- sums

    def _concat(self, collection: Base, *parts: Base) -> list[Body]:
        return self._few(collection, [body for part in parts for body in self.fresh.again(self.bodies(part))])

    def _minus(self, collection: Base, left: Base, right: Base) -> list[Body]:
        taken = [body.times(T.MINUS_ONE, False) for body in self.fresh.again(self.bodies(right))]
        return self._few(collection, [*self.fresh.again(self.bodies(left)), *taken])

    # -------------------------------------------------------------------------------------------------------------- joins

    def _join(
        self, collection: Base, left: Base, right: Base, left_keys: Sequence[str], right_keys: Sequence[str]
    ) -> list[Body]:
        return self._few(collection, self._joined(collection.schema.names, left, right, left_keys, right_keys))

    def _joined(
        self, names: Sequence[str], left: Base, right: Base, left_keys: Sequence[str], right_keys: Sequence[str]
    ) -> list[Body]:
        """The bodies of a join, whose columns - the key, the others of the left side, of the right side - have these names."""
        mine, theirs = self._key_bodies(left, left_keys), self._key_bodies(right, right_keys)
        sources = [*left_keys, *left.schema.others(left_keys)]
        others = right.schema.others(right_keys)
        found, theirs = [], self.fresh.again(theirs)
        for a in self.fresh.again(mine):
            for b in theirs:
                terms = [*(a.columns[name] for name in sources), *(b.columns[name] for name in others)]
                pairs = [(a.columns[x], b.columns[y]) for x, y in zip(left_keys, right_keys, strict=True)]
                both = joined(a, b, dict(zip(names, terms, strict=True)), pairs)
                found += [] if both is None else [both]
        return found

    def _key_bodies(self, collection: Base, keys: Sequence[str]) -> list[Body]:
        """Bodies by whose keys others can be joined: a few, for each of one side meets each of the other; and without floats
        that are computed, which would be compared as numbers."""
        bodies = self.bodies(collection)
        floats = [key for key in keys if collection.schema.kind(key) is float]
        many = len(bodies) > MOST_JOINED and not (collection.schema.diffs or self.graph.variables(collection, collection.scope))
        if all(isinstance(body.columns[key], Variable) for key in floats for body in bodies) and not many:
            return bodies
        if collection.schema.diffs:
            raise refused("join", "of floats that are computed", "add up first: `count`")
        return [self.fresh.read(self.relation(collection))]

    def _antijoin(
        self, collection: Base, left: Base, keys: Base, left_keys: Sequence[str], right_keys: Sequence[str]
    ) -> list[Body]:
        self.check_outside(keys, "antijoin", "what is not there")
        if is_set(self.bodies(keys), right_keys):
            others = self.relation(keys)
            place = dict(zip(right_keys, left_keys, strict=True))
            return [
                body.where([Not(Atom(others.name, tuple(body.columns[place[name]] for name in others.names)))])
                for body in self.bodies(left)
            ]
        met = self._joined([*left_keys, *left.schema.others(left_keys)], left, keys, left_keys, right_keys)
        taken = [body.times(T.MINUS_ONE, False) for body in met]
        return self._few(collection, [*self.fresh.again(self.bodies(left)), *taken])

    # --------------------------------------------------------------------------------------------------------- reductions

    def _distinct(self, collection: Base, part: Base) -> list[Body]:
        if is_set(self.bodies(part), part.schema.names):
            return self.bodies(part)
        bodies = self.there(part)
        if is_set(bodies, part.schema.names):
            return bodies
        if self._best_in_loop(part):
            raise refused("distinct", "of what `min` or `max` makes in the loop", _LOOPED)
        return self._read(collection, self.fill_set(self.named(collection, "distinct"), bodies))

    def _threshold(self, collection: Base, part: Base, function: Any) -> list[Body]:
        if not isinstance(function, Expression):
            raise refused("threshold", "its function is Python's")
        self.check_outside(part, "threshold", "how often rows are there")
        body = self.fresh.read(self.relation(part))
        times = body.weight[0] if body.weight else T.ONE
        body = replace(body, weight=(), positive=True)
        counted = Translator(COUNTS, {"count": times}, self.functors)
        if function.kind(COUNTS) is bool:
            return [body.where(conditions) for conditions in counted.where(function)]
        cases = counted.column(function)
        return [found for case in cases for found in weighted(body.where(case.where), case.term)]

    def _count(self, collection: Base, part: Base, *names: str) -> list[Body]:
        self.check_outside(part, "count", "how many there are")
        stored = self.named(collection, "count")
        keys = len(part.schema.names)
        stored.keys = (tuple(range(keys)),)
        return self._read(collection, self.fill_sums(stored, keys, self.bodies(part)))

    def _min(self, collection: Base, part: Base, keys: Sequence[str], column: str) -> list[Body]:
        return self._best(collection, part, keys, column)

    def _max(self, collection: Base, part: Base, keys: Sequence[str], column: str) -> list[Body]:
        return self._best(collection, part, keys, column)

    def _best(self, collection: Base, part: Base, keys: Sequence[str], column: str) -> list[Body]:
        operator = collection.definition.operator
        self.check_outside(part, operator, "the best value")
        bodies = [body.with_columns({n: body.columns[n] for n in (*keys, column)}) for body in self.there(part)]
        if is_set(bodies, keys):
            return bodies
        stored = self.best_of(collection, keys, column)
        return self._read(collection, self.fill_set(stored, bodies))

    def best_of(self, collection: Base, keys: Sequence[str], column: str) -> Stored:
        """A relation that keeps the best value of each key."""
        operator = collection.definition.operator
        stored = self.named(collection, operator)
        stored.keys, stored.least = (collection.schema.places(keys),), collection.schema.place(column)
        self.program.keep_best(stored, operator == "max")
        return stored

    def _top_k(
        self, collection: Base, part: Base, count: int, keys: Sequence[str], names: Sequence[str], descending: Sequence[bool]
    ) -> list[Body]:
        self.check_outside(part, "top_k", "the first rows")
        others = [name for name in part.schema.others(keys) if name not in names]
        texts = [name for name in others if part.schema.kind(name) is str]
        if texts:
            note = f'name it in the order: `top_k(..., order=[..., "{texts[0]}"])`'
            raise refused("top_k", f"ties would be told by when texts in `{texts[0]}` first came", note)
        source = self.relation(part)
        stored = self.named(collection, "top_k", weighted=source.weighted)
        stored.keys = source.keys
        order = [*map(Order, names, descending), *(Order(name, False) for name in others)]
        Ranking(self.program, self.fresh).fill(stored, source, keys, order, count)
        return self._read(collection, stored)

    def _read(self, collection: Base, stored: Stored) -> list[Body]:
        self._relations[id(collection)] = stored
        return [self.fresh.read(stored)]


OPERATORS = frozenset(
    {"concat", "minus", "join", "antijoin", "distinct", "threshold", "count", "min", "max", "top_k", "variable"}
)
