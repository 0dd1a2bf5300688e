"""The forms of clauses that were parsed by their shape: what decides their rules is looked up among the parts of their text,
and no node is made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from dlog.engine.compile.normal.forms import Form, Key, LiteralKey, is_plain
from dlog.grammar import syntax
from dlog.grammar.alike_clauses import AlikeClause, ClauseShape, placed
from dlog.grammar.source import Span


class ShapeForm(Form):
    """The form of a shape's own clause, with the places of what other clauses may have others for: each with the number of the
    part that it comes from."""

    def __init__(self, shape: ClauseShape) -> None:
        self.relation_places: list[tuple[int, int]] = []
        self.variable_places: list[tuple[int, int]] = []
        self.literal_places: list[tuple[int, type, int]] = []
        self._leaves = leaves = shape.leaves
        super().__init__(shape.sample, defaultdict(int))
        self.others = [(at, leaves[said]) for at, said in enumerate(self.words) if type(said) is str and said in leaves]
        """Other names, and numbers that are not counted as literals."""
        self.places = [shape.place(span) for span in self.spans]

    def _node(self, node: Any) -> None:
        at = len(self.words)
        if type(node) is syntax.Variable:
            self.variable_places.append((at, self._leaves[node.name]))
        elif type(node) is syntax.Atom:
            self.relation_places.append((at + 1, self._leaves[node.name]))
        super()._node(node)

    def _literal(self, kind: type, text: str) -> None:
        self.literal_places.append((len(self.words) + 1, kind, self._leaves[text]))
        super()._literal(kind, text)


class AlikeForm:
    """The form of a clause, as `Form` has it."""

    def __init__(self, like: ShapeForm, clause: AlikeClause, columns: Mapping[str, int]) -> None:
        self._like, self._clause, self._columns = like, clause, columns
        parts, said = clause.parts, like.words.copy()
        self.relations: dict[str, int] = {}
        self.variables: dict[str, int] = {}
        self.literals: dict[LiteralKey, int] = {}
        relations, variables, literals = self.relations, self.variables, self.literals
        for at, part in like.relation_places:
            name = parts[part]
            said[at], said[at + 1] = relations.setdefault(name, len(relations)), columns[name]
        for at, part in like.variable_places:
            said[at] = variables.setdefault(parts[part], len(variables))
        for at, part in like.others:
            said[at] = parts[part]
        for at, kind, part in like.literal_places:
            text = parts[part][1:-1] if kind is syntax.String else parts[part]
            plain = kind is syntax.String or is_plain(text)
            said[at] = literals.setdefault((kind, text), len(literals)) if plain else text
        if like.decisive:
            said[-1], self.literals = tuple(literals), {}
        self.key: Key = tuple(said)

    @property
    def spans(self) -> list[Span]:
        """Those of all nodes."""
        return Form(self._clause, self._columns).spans

    def some_spans(self, numbers: Iterable[int]) -> list[Span]:
        """Those with these numbers."""
        at, places = self._clause.at, self._like.places
        return [placed(places[number], at) for number in numbers]
