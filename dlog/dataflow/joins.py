"""Joins of collections."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Self

from dlog.arguments import bad_argument, text, truth
from dlog.dataflow.base import Base, Definition, Term, key_pairs, select_columns
from dlog.dataflow.expressions import Expression
from dlog.dataflow.names import no_attribute
from dlog.dataflow.schema import Schema, check_names, plain
from dlog.engine.operators.half_join import Extend, HalfJoin, Relation, propose, settle
from dlog.engine.operators.join import Join
from dlog.engine.operators.operator import Operator
from dlog.grammar.diagnostics import Diagnostic, DlogError


class Joins(Base):
    """Joins are bilinear: times join, diffs multiply."""

    def join(self, other: Base, on: Any = None, suffix: str = "_right") -> Self:
        """All pairs of rows with the same key: the key, the other columns of this side, then those of the other one, with a
        suffix where a name is taken. `on` names the key's columns; a dict where they are called differently, by default those
        that both have."""
        self._check_together(other)
        left_keys, right_keys = key_pairs(self.schema, other.schema, on)
        if self.schema.diffs and other.schema.diffs:
            raise DlogError(Diagnostic("diffs-no-integers", "diffs can be multiplied if those of one side are integers"))
        left, right = self._arranged(left_keys), other._arranged(right_keys)
        self.graph.check_open()
        operator = Join(self.graph.scheduler, self.scope.inner, left, right)
        schema, order = joined_layout(self.schema, other.schema, left_keys, right_keys, suffix)
        term = Term(operator)
        if order != tuple(range(len(order))):
            term = term.then("select", partial(select_columns, order))
        return self._collection(self.scope, schema, (term,), Definition("join", (self, other), (left_keys, right_keys)))

    def join_map(self, other: Base, *columns: str | Expression, on: Any = None, suffix: str = "_right", **named: Any) -> Self:
        """A join, of which only these columns and expressions are made."""
        return self.join(other, on, suffix).map(*columns, **named)

    def semijoin(self, other: Base, on: Any = None) -> Self:
        """The rows whose key the other collection has, as often as it has that."""
        return self._semijoin(*self._keys_of(other, on))

    def antijoin(self, other: Base, on: Any = None) -> Self:
        """The rows without those of `semijoin`: where no key is there twice, those whose key the other collection lacks."""
        keys, pairs = self._keys_of(other, on)
        return self._minus(self._semijoin(keys, pairs))._defined("antijoin", (self, keys), tuple(pairs), tuple(pairs.values()))

    def _keys_of(self, other: Base, on: Any) -> tuple[Base, dict[str, str]]:
        """The keys of another collection, each as often as it has them, and its columns by those of this one."""
        self._check_together(other)
        left_keys, right_keys = key_pairs(self.schema, other.schema, on)
        plain(other.schema, "`semijoin`")
        keys = other if set(other.schema.names) == set(right_keys) else other.map(*right_keys)
        return keys, dict(zip(left_keys, right_keys, strict=True))

    def _semijoin(self, keys: Base, pairs: dict[str, str]) -> Self:
        return self.join(keys, pairs)._ordered(self.schema.names)

    def propose(self) -> Proposals:
        """Its changes, to be joined with what was there before them: the delta query of one relation."""
        hidden = tuple(f"#time{k}" for k in range(self.scope.inner.depth))
        carried = self.schema.with_columns((*self.schema.names, *hidden), (*self.schema.kinds, *(int,) * len(hidden)))
        plain(self.schema, "`propose`")
        return Proposals(self._changed("propose", propose, carried), self.schema)


def joined_layout(
    left: Schema, right: Schema, left_keys: tuple[str, ...], right_keys: tuple[str, ...], suffix: str
) -> tuple[Schema, tuple[int, ...]]:
    """The schema of a join, and where its columns are in what the operator emits, which has those that say what a part of a
    diff is at the end of its side."""
    mine, theirs = left.others(left_keys), right.others(right_keys)
    taken = (*left_keys, *mine)
    text("suffix", suffix, "a text that is put behind names")
    renamed = [name + suffix if name in taken else name for name in theirs]
    names = (*taken, *renamed)
    check_names(names, "`suffix=` makes other names of the columns that both sides have")
    kinds = (*(left.kind(name) for name in taken), *(right.kind(name) for name in theirs))
    hidden = tuple(range(len(taken), len(taken) + left.hidden))
    visible = tuple(k for k in range(len(names) + left.hidden) if k not in hidden)
    behind = range(len(names) + left.hidden, len(names) + left.hidden + right.hidden)
    return Schema(names, kinds, left.diffs or right.diffs), (*visible, *hidden, *behind)


def joined_schema(left: Schema, right: Schema, left_keys: tuple[str, ...], right_keys: tuple[str, ...], suffix: str) -> Schema:
    """The key, the other columns of the left side, then those of the right one."""
    return joined_layout(left, right, left_keys, right_keys, suffix)[0]


class Proposals:
    """Changes of a collection on their way through the other relations of a delta query, in the last columns the times at which
    what they have met becomes true."""

    def __init__(self, changes: Joins, schema: Schema) -> None:
        self._changes, self.schema = changes, schema

    def __repr__(self) -> str:
        return f"dlog.dataflow.Proposals ({self.schema})"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise no_attribute("proposals have", name, "proposals.collect()", type(self.__dict__.get("_changes")))

    def half_join(self, other: Base, on: Any = None, *, ties: bool) -> Proposals:
        """With the rows of another relation that were there before each change. `ties` decides about those that change at the
        same time: of any two relations of a query, only the proposals of one may see those of the other."""
        truth("ties", ties)
        changes = self._changes
        changes._check_together(other)
        plain(other.schema, "`half_join`")
        left_keys, right_keys = key_pairs(self.schema, other.schema, on)
        ordered = changes._ordered((*left_keys, *changes.schema.others(left_keys)))
        relation = Relation(other._arranged(right_keys), tuple(range(len(left_keys))), ties)
        operator = ordered._operator(HalfJoin, relation)
        schema, _ = joined_layout(self.schema, other.schema, left_keys, right_keys, "_right")
        return self._next(operator, schema)

    def extend(self, name: str, *relations: tuple[Base, Any, bool]) -> Proposals:
        """With one more column, of the values that all of several relations have: each a collection, its key as in `on`, and
        `ties` as for `half_join`. A relation has the columns of its key and the new one. For every change the relation with
        the fewest rows proposes values, which the others validate: joins in this manner are worst-case optimal."""
        text("name", name, "the name of the new column")
        changes, bound = self._changes, []
        for relation in relations:
            if not isinstance(relation, tuple) or len(relation) != 3:
                meant = "tuples of a collection, its key and whether there are ties"
                raise bad_argument("relations", meant, relation, f'`extend("{name}", (edges, "x", True))`')
            other, on, ties = relation
            truth("ties", ties)
            changes._check_together(other)
            plain(other.schema, "`extend`")
            left_keys, right_keys = key_pairs(self.schema, other.schema, on)
            if other.schema.others(right_keys) != (name,):
                message = f"a relation that extends by `{name}` has its key and that column, not ({other.schema})"
                raise DlogError(Diagnostic("unlike-collections", message))
            bound.append(Relation(other._arranged((*right_keys, name)), self.schema.places(left_keys), ties))
        kinds = {other.schema.kind(name) for other, _, _ in relations}
        if len(kinds) != 1 or name in self.schema.names:
            raise bad_argument("relations", f"relations of one new column `{name}` of one kind", relations)
        schema = self.schema.with_columns((*self.schema.names, name), (*self.schema.kinds, *kinds))
        return self._next(changes._operator(Extend, bound), schema)

    def _next(self, operator: Operator, schema: Schema) -> Proposals:
        """What an operator makes of the proposals, with the times that they carry."""
        times = self._changes.schema.names[len(self.schema.names) :]
        carried = schema.with_columns((*schema.names, *times), (*schema.kinds, *(int,) * len(times)))
        definition = Definition("half_join", (self._changes,))
        return Proposals(self._changes._emitted(operator, carried, definition), schema)

    def collect(self) -> Any:
        """The collection of what has been found, at its times."""
        return self._changes._changed("settle", settle, self.schema)
