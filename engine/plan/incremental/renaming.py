"""Plans with other names: what makes a value, a path for example, again for other relations, constants and places in the
text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any, TypeAlias

from dlog.dataclass import immutable
from dlog.engine.ir.rules import Constant
from dlog.engine.plan.incremental.shapes import Names
from dlog.grammar.source import Span


@immutable
class Named:
    """The names of a stratum, or of one of its rules, by their numbers."""

    relations: tuple[str, ...]
    constants: tuple[Constant, ...]
    spans: tuple[Span, ...]


NO_NAMES = Named((), (), ())


def named_by(names: Names) -> Named:
    return Named(tuple(names.relations), tuple(names.constants), tuple(names.spans))


Build: TypeAlias = Callable[[Named], Any]


class Builders:
    """Functions that make the same value with other names."""

    def __init__(self, source: object, names: Names) -> None:
        """`source` is what the values were made from."""
        self._names = names
        self._source = source

    @cached_property
    def _constants(self) -> dict[int, int]:
        """The program's own constants: those that the planner makes are no names."""
        return {id(c): self._names.constants[c] for c in constants_in(self._source)}

    def of(self, value: object) -> Build | None:
        """The builder of a value with other names; None where it has no names."""
        match value:
            case Constant():
                number = self._constants.get(id(value))
                return None if number is None else lambda named: named.constants[number]
            case Span():
                place = self._names.spans.get(value)
                return None if place is None else lambda named: named.spans[place]
            case tuple():
                return _tuple(value, [self.of(v) for v in value])
            case _ if is_dataclass(value):
                return self._object(value)
            case _:
                return None

    def _object(self, value: Any) -> Build | None:
        made, values = type(value), [getattr(value, f.name) for f in fields(value)]
        builds = [self._field(f.name, v) for f, v in zip(fields(value), values, strict=True)]
        changed = [(i, b) for i, b in enumerate(builds) if b is not None]
        if not changed:
            return None

        def build(named: Named) -> Any:
            now = values.copy()
            for i, b in changed:
                now[i] = b(named)
            return made(*now)

        return build

    def _field(self, name: str, value: Any) -> Build | None:
        match name:
            case "relation":
                return self._relation(value)
            case "relations" | "variables" if isinstance(value, tuple):
                return _tuple(value, [self._relation(v) for v in value])
            case "derived":
                return _tuple(value, [self.derived(d) for d in value])
            case _:
                return self.of(value)

    def derived(self, value: tuple[Any, ...]) -> Build | None:
        """The builder of a tuple that begins with a relation."""
        return _tuple(value, [self._relation(value[0]), *map(self.of, value[1:])])

    def _relation(self, name: Any) -> Build | None:
        number = self._names.relations.get(name)
        return None if number is None else lambda named: named.relations[number]


def _tuple(values: tuple[Any, ...], builds: Sequence[Build | None]) -> Build | None:
    if not any(builds):
        return None
    parts = tuple(zip(values, builds, strict=True))
    return lambda named: tuple([v if b is None else b(named) for v, b in parts])


def constants_in(part: object) -> Iterable[Constant]:
    """All constants within a part of a rule."""
    if isinstance(part, Constant):
        yield part
    elif isinstance(part, tuple):
        for p in part:
            yield from constants_in(p)
    elif is_dataclass(part) and not isinstance(part, Span):
        for f in fields(part):
            yield from constants_in(getattr(part, f.name))
