"""The typed program as text, for `dlog plan`, golden tests and whoever debugs a rule. Close to the language, but every implicit
step shows: fresh variables, unpacked records, kinds of overloaded functors, outer variables of aggregates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dlog.engine.compile.check import Checked
from dlog.engine.ir.aggregates import aggregate_of
from dlog.engine.ir.printing import Printer, explicit_rule
from dlog.engine.ir.rules import Kind, Program, Relation, Stratum

_SHOWN_FACTS: Final = 10


def show(program: Program) -> str:
    """The program with its strata."""
    lines = list(_declarations(program))
    for number, stratum in enumerate(program.strata, 1):
        lines += ["", *_stratum(number, stratum, program)]
    return "\n".join(lines) + "\n"


def show_checked(checked: Checked) -> str:
    """The program before stratification."""
    return "\n".join([*_declarations(checked), "", *(explicit_rule(r) for r in checked.rules)]) + "\n"


def _declarations(program: Program | Checked) -> Iterator[str]:
    for relation in program.relations.values():
        yield _relation(relation)
    for io in program.io:
        params = f"({', '.join(f'{k}={v}' for k, v in io.params)})" if io.params else ""
        yield f".{io.action} {io.relation}{params}"
    for name, rows in program.facts.items():
        for row in rows[:_SHOWN_FACTS]:
            yield f"{Printer((), explicit=True).call(name, row)}."
        if len(rows) > _SHOWN_FACTS:
            yield f"... {len(rows) - _SHOWN_FACTS} more facts of {name}"


def _relation(relation: Relation) -> str:
    columns = ", ".join(f"{n}: {_type_name(t.name, t.kind)}" for n, t in relation.attributes)
    return f".decl {relation.name}({columns})"


def _type_name(name: str, kind: Kind) -> str:
    return name if name == kind.value else f"{name} ({kind.value})"


def _stratum(number: int, stratum: Stratum, program: Program) -> Iterator[str]:
    lattices = [program.lattices[r] for r in stratum.relations if r in program.lattices]
    how = " recursive" if stratum.recursive else ""
    how += "".join(f" ({aggregate_of(x.dominance)} over column {x.column} of {x.relation})" for x in lattices)
    yield f"stratum {number}: {', '.join(stratum.relations)}{how}"
    for rule in stratum.rules:
        yield f"  {explicit_rule(rule)}"
