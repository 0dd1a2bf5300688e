"""The nine workloads, each with its program, its data and the answer every engine must give."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import inputs

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True, slots=True)
class Workload:
    """`rows` are the sizes of the derived relations, `values` the numbers in derived relations of one row and column;
    `program_of` names the workload whose program this one runs on other data."""

    name: str
    title: str
    recipe: inputs.Recipe
    rows: dict[str, int]
    values: dict[str, int] = field(default_factory=dict)
    program_of: str = ""

    @property
    def answer(self) -> dict[str, int]:
        return self.rows | self.values

    @property
    def derived(self) -> int:
        return sum(self.rows.values())

    def program(self, dialect: str = "") -> Path:
        """The program file; `dialect` names an engine that says the same in other words where it has to."""
        name = self.program_of or self.name
        own = PROGRAMS / f"{name}.{dialect}.dl"
        return own if dialect and own.exists() else PROGRAMS / f"{name}.dl"

    def facts(self) -> Path:
        return inputs.prepare(self.name, self.recipe)


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("W1", "closure, random graph", inputs.closure, {"path": 3_541_956}),
        Workload("W2", "closure, path", inputs.path_closure, {"path": 1_999_000}),
        Workload("W3", "same generation", inputs.same_generation, {"sg": 3_824_775}),
        Workload("W4", "reachability", inputs.reachability, {"reach": 992_985}),
        Workload("W5", "components", inputs.components, {"cc": 500_000, "component": 9_429}),
        Workload("W6", "weighted distances", inputs.distances, {"dist": 198_615}, {"total": 52_186_604}),
        Workload("W7", "triangles", inputs.triangles, {"triangle": 909_931}),
        Workload("W8", "points-to", inputs.points_to, {"points_to": 1_238_344}),
        Workload(
            "W9",
            "pointer analysis",
            inputs.pointer_analysis,
            {"value_flow": 317_297, "memory_alias": 64_695, "value_alias": 857_952},
        ),
    )
}
