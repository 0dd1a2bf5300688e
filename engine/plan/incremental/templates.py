"""Plans that are made once for all strata of one shape.

Planning is a function of a stratum's shape, of its names, and of the figures that it asks for one after the other. Where these
are what they were for another stratum, the plan is that one's with the names changed: programs of many rules have few shapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol, TypeAlias, cast

from dlog.engine.ir.nodes import Path, Scope
from dlog.engine.ir.rules import Program, Stratum
from dlog.engine.plan.incremental.build import plan_of_rounds
from dlog.engine.plan.incremental.renaming import NO_NAMES, Build, Builders, Named, named_by
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


class StratumPlan:
    """The plan of a stratum. What was taken from another stratum's is written out when somebody looks at it."""

    def __init__(
        self, scope: Scope, template: Template | None = None, named: Named = NO_NAMES, stratum: Stratum | None = None
    ) -> None:
        """`scope` is the plan or, of a template, that of the stratum it was made from."""
        self.like = scope
        """A plan that is this one but for names."""
        self.template = template
        self.named = named
        self._stratum = stratum
        self._scope = scope if template is None else None

    @property
    def scope(self) -> Scope:
        if self._scope is None:
            assert self.template is not None and self._stratum is not None
            self._scope = self.template.filled(self.named, self._stratum)
        return self._scope

    @property
    def outline(self) -> Scope:
        """The plan without paths, or with some."""
        return self._scope or self.template.outline(self.named)  # type: ignore[union-attr]

    def relation(self, name: str) -> str:
        """The name here of a relation of `like`."""
        return name if self.template is None else self.template.relation(name, self.named)

    def paths(self, part: int) -> tuple[Path, ...]:
        """The paths of a part of the plan: those of a stage, or of `ENTER` or `LOOP`."""
        return parts_of(self.scope)[part]

    def path(self, part: int, number: int) -> Path:
        return self.paths(part)[number]


ENTER, LOOP = -2, -1


def parts_of(scope: Scope) -> tuple[tuple[Path, ...], ...]:
    return (*scope.stages, scope.enter, scope.loop)


class Plans(MutableMapping[int, Scope]):
    """The plans of strata, by number."""

    def __init__(self) -> None:
        self._plans: dict[int, StratumPlan] = {}

    def add(self, number: int, plan: StratumPlan) -> None:
        self._plans[number] = plan

    def which(self, wanted: Callable[[Scope], bool]) -> list[int]:
        """The strata with plans that something says of which has nothing to do with names."""
        known: dict[int, bool] = {}
        found = []
        for number, plan in self._plans.items():
            like = id(plan.like)
            if like not in known:
                known[like] = wanted(plan.like)
            if known[like]:
                found.append(number)
        return found

    def __getitem__(self, number: int) -> Scope:
        return self._plans[number].scope

    def __setitem__(self, number: int, scope: Scope) -> None:
        self._plans[number] = StratumPlan(scope)

    def __delitem__(self, number: int) -> None:
        del self._plans[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._plans)

    def __len__(self) -> int:
        return len(self._plans)


class Templates:
    """The plans over rounds of a program's strata."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._shapes = Shapes(program)
        self._rules = Counter([len(stratum.rules) for stratum in program.strata])
        """How many strata there are of so many rules."""
        self._templates: dict[Shape, list[Template]] = {}

    def scope(self, stratum: Stratum, statistics: Recording) -> Scope:
        """The plan that maintains one stratum, written out."""
        return self.plan(stratum, statistics).scope

    def plan(self, stratum: Stratum, statistics: Recording) -> StratumPlan:
        """The plan that maintains one stratum; raises `NotIncremental` where there is none."""
        if len(stratum.rules) > MAX_TEMPLATE_RULES or self._rules[len(stratum.rules)] == 1:
            return StratumPlan(plan_of_rounds(stratum, self.program, statistics))
        shape, names = self._shapes.of(stratum)
        named = named_by(names)
        templates = self._templates.setdefault(shape, [])
        for template in templates:
            if template.fits(named, statistics):
                return StratumPlan(template.scope, template, named, stratum)
        scope = plan_of_rounds(stratum, self.program, statistics)
        told = statistics.entries()
        if len(templates) < MAX_COMPARED_PLANS and all(relation in names.relations for _, relation, _, _ in told):
            templates.append(Template(stratum, scope, names, told))
        return StratumPlan(scope)


class Template:
    """The plan of one stratum for others of its shape."""

    def __init__(self, stratum: Stratum, scope: Scope, names: Names, told: Iterable[StatisticEntry]) -> None:
        self.scope = scope
        self._statistics = [(what, names.relations[name], tuple(columns), found) for what, name, columns, found in told]
        self._builders = Builders(stratum.rules, names)
        self._relations = names.relations

    def fits(self, named: Named, statistics: Recording) -> bool:
        """Whether the planner would be told the same. It would ask for no more than is asked for here."""
        for what, number, columns, before in self._statistics:
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

    def relation(self, name: str, named: Named) -> str:
        """The name that a relation of the template has among others; the planner's own keep theirs."""
        number = self._relations.get(name)
        return name if number is None else named.relations[number]

    def filled(self, named: Named, stratum: Stratum) -> Scope:
        return replace(_written(self._build, self.scope, named), rules=tuple([r.text for r in stratum.rules]))

    def outline(self, named: Named) -> Scope:
        """The plan without its paths."""
        return _written(self._build_outline, self._outline, named)

    @cached_property
    def _build(self) -> Build | None:
        return self._builders.of(replace(self.scope, rules=()))

    @cached_property
    def _outline(self) -> Scope:
        return replace(self.scope, rules=(), stages=(), enter=(), loop=(), derived=())

    @cached_property
    def _build_outline(self) -> Build | None:
        return self._builders.of(self._outline)


def _written(build: Build | None, scope: Scope, named: Named) -> Scope:
    return scope if build is None else cast("Scope", build(named))
