"""Plans that are made once for all strata of one shape.

Planning is a function of a stratum's shape, of its names, and of the figures that it asks for one after the other. Where these
are what they were for another stratum, the plan is that one's with the names changed: programs of many rules have few shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias, cast

from dlog.engine.ir.nodes import Scope
from dlog.engine.ir.rules import Program, Stratum
from dlog.engine.plan.incremental.build import plan_of_rounds
from dlog.engine.plan.incremental.renaming import Build, Builders, Named, named_by
from dlog.engine.plan.incremental.shapes import Names, Shape, Shapes
from dlog.engine.plan.statistics import Statistics

MAX_COMPARED_PLANS = 8
"""Plans for strata of one shape whose statistics are compared: trades comparing against planning."""

MAX_TEMPLATE_RULES = 32
"""Rules of the largest stratum that is compared with others: larger ones are taken to be like no other."""

StatisticEntry: TypeAlias = tuple[str, str, Sequence[int], float | None]
"""A statistic (`rows`, `distinct` or `pairs`), its relation and columns, and its value."""


class Recording(Statistics, Protocol):
    """Statistics that record what they were asked, in order, and their answers."""

    def second_moment(self, relation: str, columns: tuple[int, ...]) -> float | None: ...
    def entries(self) -> list[StatisticEntry]: ...


class Templates:
    """The plans over rounds of a program's strata."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._shapes = Shapes(program)
        self._made: dict[Shape, list[_Template]] = {}

    def scope(self, stratum: Stratum, statistics: Recording) -> Scope:
        """The plan that maintains one stratum; raises `NotIncremental` where there is none."""
        if len(stratum.rules) > MAX_TEMPLATE_RULES:
            return plan_of_rounds(stratum, self.program, statistics)
        shape, names = self._shapes.of(stratum)
        named = named_by(names)
        templates = self._made.setdefault(shape, [])
        for template in templates:
            if template.fits(named, statistics):
                return template.filled(named, stratum)
        scope = plan_of_rounds(stratum, self.program, statistics)
        told = statistics.entries()
        if len(templates) < MAX_COMPARED_PLANS and all(relation in names.relations for _, relation, _, _ in told):
            templates.append(_Template(stratum, scope, names, told))
        return scope


class _Template:
    """The plan of one stratum for others of its shape."""

    def __init__(self, stratum: Stratum, scope: Scope, names: Names, told: Iterable[StatisticEntry]) -> None:
        self._asked = [(what, names.relations[name], tuple(columns), found) for what, name, columns, found in told]
        self._stratum, self._scope, self._names = stratum, scope, names
        self._build: Build | None = None

    def fits(self, named: Named, statistics: Recording) -> bool:
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

    def filled(self, named: Named, stratum: Stratum) -> Scope:
        if self._build is None:
            self._build = Builders(self._stratum.rules, self._names).of(replace(self._scope, rules=()))
        scope = self._scope if self._build is None else cast("Scope", self._build(named))
        return replace(scope, rules=tuple([r.text for r in stratum.rules]))
