"""Which texts of an input anybody keeps. Only these get numbers: those that nothing but functions of texts, predicates and
functions in Python read stay what they have come as (`held`) on the way from the input to the first operator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dlog.dataclass import dataclass
from dlog.dataflow.expressions import Expression
from dlog.dataflow.folds import Weight
from dlog.dataflow.kinds import Objects
from dlog.dataflow.schema import Schema
from dlog.engine.operators.delta import Delta

_TAKE_VALUES = frozenset({"map_batches", "flat_map", "join_function"})
"""Steps that read values, and pass no column on."""
_PASS = frozenset({"enter", "filter", "negate", "repeat_row"})
"""Steps that read values, and pass all columns on."""


@dataclass(frozen=True, slots=True, eq=False)
class InputTexts:
    """The columns of texts of an input that are there after some steps, by name, with their places in the input; and the places
    of those whose words some step has asked for."""

    here: Mapping[str, int]
    asked: frozenset[int] = frozenset()

    @staticmethod
    def of(schema: Schema) -> InputTexts:
        return InputTexts({name: place for place, name in enumerate(schema.names) if schema.kinds[place] is str})

    @property
    def kept(self) -> frozenset[int]:
        """The places of the columns that need numbers: somebody may compare their words."""
        return self.asked.union(self.here.values())

    def after(self, step: str, arguments: Sequence[Any]) -> InputTexts:
        """The same after one more linear step, by name, with its arguments. One that is not known here asks for all words."""
        match step, arguments:
            case _ if not self.here or step in _PASS:
                return self
            case _ if step in _TAKE_VALUES:
                return InputTexts({}, self.asked)
            case "map", (chosen, keep):
                return InputTexts(self._with(chosen) if keep else self._passed_on(chosen), self.asked)
            case "rename", (names,):
                back = {old: new for new, old in names.items()}
                return InputTexts({back.get(name, name): place for name, place in self.here.items()}, self.asked)
            case "explode", (chosen, weights) if not any(isinstance(weight, Weight) for weight in weights):
                return InputTexts(self._passed_on(chosen), self.asked)
            case _:
                return InputTexts({}, self.kept)

    def _passed_on(self, chosen: Iterable[tuple[str, Expression]]) -> dict[str, int]:
        """The columns that some expressions are, by name."""
        named = ((name, each.column_name) for name, each in chosen)
        return {name: self.here[column] for name, column in named if column is not None and column in self.here}

    def _with(self, chosen: Iterable[tuple[str, Expression]]) -> dict[str, int]:
        """The same besides those that are there, of which some are replaced."""
        given = dict(chosen)
        left = {name: place for name, place in self.here.items() if name not in given}
        return left | self._passed_on(given.items())


def numbered(objects: Objects, places: Iterable[int], delta: Delta) -> Delta:
    """Updates with numbers for the texts of some columns that have none yet."""
    held = [place for place in places if objects.is_held(delta.columns[place])]
    if not held:
        return delta
    columns = list(delta.columns)
    for place in held:
        columns[place] = objects.encode(objects.decode(columns[place]).tolist())
    return delta.with_columns(columns)
