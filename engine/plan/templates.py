"""Plans that are made once for all strata of one shape.

Planning is a function of a stratum's shape, of its names, and of the figures that it asks for one after the other. Where these
are what they were for another stratum, the plan is that one's with the names changed: programs of many rules have few shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Protocol, TypeAlias, cast

from dlog.engine.plan.nodes import Scope
from dlog.engine.plan.rounds import build_rounds_scope
from dlog.engine.plan.shapes import Names, Shape, Shapes
from dlog.engine.plan.statistics import Statistics
from dlog.engine.program.rules import Constant, Program, Stratum
from dlog.grammar.source import Span

MOST = 8
"""Of so many plans for strata of one shape the figures are compared."""

LARGEST = 32
"""A stratum of more rules is like no other."""

Told: TypeAlias = tuple[str, str, Sequence[int], float | None]
"""A figure (`rows`, `distinct` or `pairs`), of which relation and columns, and what it was."""


class Telling(Statistics, Protocol):
    """Statistics that know what they have told, in the order in which they were asked."""

    def second_moment(self, relation: str, columns: tuple[int, ...]) -> float | None: ...
    def told(self) -> list[Told]: ...


@dataclass(frozen=True, slots=True)
class _Named:
    """The names of a stratum by their numbers."""

    relations: tuple[str, ...]
    constants: tuple[Constant, ...]
    spans: tuple[Span, ...]


Build: TypeAlias = Callable[[_Named], Any]


class Templates:
    """The plans over rounds of a program's strata."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._shapes = Shapes(program)
        self._made: dict[Shape, list[_Template]] = {}

    def scope(self, stratum: Stratum, statistics: Telling) -> Scope:
        """The plan that maintains one stratum; raises `NotIncremental` where there is none."""
        if len(stratum.rules) > LARGEST:
            return build_rounds_scope(stratum, self.program, statistics)
        shape, names = self._shapes.of(stratum)
        named = _Named(tuple(names.relations), tuple(names.constants), tuple(names.spans))
        templates = self._made.setdefault(shape, [])
        for template in templates:
            if template.fits(named, statistics):
                return template.filled(named, stratum)
        scope = build_rounds_scope(stratum, self.program, statistics)
        told = statistics.told()
        if len(templates) < MOST and all(relation in names.relations for _, relation, _, _ in told):
            templates.append(_Template(stratum, scope, names, told))
        return scope


class _Template:
    """The plan of one stratum for others of its shape."""

    def __init__(self, stratum: Stratum, scope: Scope, names: Names, told: Iterable[Told]) -> None:
        self._asked = [(what, names.relations[name], tuple(columns), found) for what, name, columns, found in told]
        self._stratum, self._scope, self._names = stratum, scope, names
        self._build: Build | None = None

    def fits(self, named: _Named, statistics: Telling) -> bool:
        """Whether the planner would be told the same. It would ask for no more than is asked for here."""
        for what, number, columns, before in self._asked:
            relation = named.relations[number]
            match what:
                case "rows":
                    found: float | None = statistics.rows(relation)
                case "distinct":
                    found = statistics.distinct(relation, columns)
                case _:
                    found = statistics.second_moment(relation, columns)
            if found != before:
                return False
        return True

    def filled(self, named: _Named, stratum: Stratum) -> Scope:
        if self._build is None:
            self._build = _Builders(self._stratum, self._names).of(replace(self._scope, rules=()))
        scope = self._scope if self._build is None else cast("Scope", self._build(named))
        return replace(scope, rules=tuple([r.text for r in stratum.rules]))


class _Builders:
    """What makes the same value with other names."""

    def __init__(self, stratum: Stratum, names: Names) -> None:
        self._names = names
        self._constants = {id(c): names.constants[c] for rule in stratum.rules for c in _constants(rule)}
        """The program's own constants: those that the planner makes are no names."""

    def of(self, value: object) -> Build | None:
        """None where the value has no names."""
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
        return None

    def _object(self, value: Any) -> Build | None:
        made, values = type(value), [getattr(value, f.name) for f in fields(value)]
        builds = [self._field(f.name, v) for f, v in zip(fields(value), values, strict=True)]
        changed = [(i, b) for i, b in enumerate(builds) if b is not None]
        if not changed:
            return None

        def build(named: _Named) -> Any:
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
                return _tuple(value, [_tuple(d, [self._relation(d[0]), *map(self.of, d[1:])]) for d in value])
        return self.of(value)

    def _relation(self, name: Any) -> Build | None:
        number = self._names.relations.get(name)
        return None if number is None else lambda named: named.relations[number]


def _tuple(values: tuple[Any, ...], builds: Sequence[Build | None]) -> Build | None:
    if not any(builds):
        return None
    parts = tuple(zip(values, builds, strict=True))
    return lambda named: tuple([v if b is None else b(named) for v, b in parts])


def _constants(part: object) -> Iterable[Constant]:
    """All constants within a part of a rule."""
    if isinstance(part, Constant):
        yield part
    elif isinstance(part, tuple):
        for p in part:
            yield from _constants(p)
    elif is_dataclass(part) and not isinstance(part, Span):
        for f in fields(part):
            yield from _constants(getattr(part, f.name))
