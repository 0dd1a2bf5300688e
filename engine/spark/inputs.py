"""DataFrames as the inputs of a program: which column is which attribute, and whether its type will do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from dlog.engine.program.rules import Kind, Program, Relation
from dlog.engine.spark.slots import SQL_TYPES, TAG, Slots
from dlog.grammar.diagnostics import Diagnostic, DlogError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

NO_INPUT = -1
"""The tag of a row that is of no relation."""
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_ACCEPTED = {
    Kind.NUMBER: (*_INTEGERS, "decimal"),
    Kind.UNSIGNED: (*_INTEGERS, "decimal"),
    Kind.FLOAT: (*_INTEGERS, "float", "double", "decimal"),
    Kind.SYMBOL: ("string", "char", "varchar"),
    Kind.RECORD: ("string",),
}


def columns_of(relation: Relation, data: DataFrame) -> list[str]:
    """The DataFrame's column for each attribute: by name where it has them all, else by place. Raises DlogError."""
    by_name = {c.lower(): c for c in data.columns}
    wanted = [name.lower() for name, _ in relation.attributes]
    if all(name in by_name for name in wanted):
        return [by_name[name] for name in wanted]
    if len(data.columns) == relation.arity:
        return list(data.columns)
    has = f"the DataFrame has {len(data.columns)} columns: {', '.join(data.columns)}"
    needs = f"`{relation.name}` has {relation.arity}: {', '.join(n for n, _ in relation.attributes)}"
    raise _mistake(relation, "the columns do not fit", f"{has}; {needs}", "name them alike, or select as many as it has")


def check_types(relation: Relation, data: DataFrame, columns: Sequence[str]) -> None:
    """Raises DlogError where a column cannot become its attribute."""
    types = dict(data.dtypes)
    for (name, type), column in zip(relation.attributes, columns, strict=True):
        found = types[column]
        accepted = _ACCEPTED[type.kind]
        exact = not found.startswith("decimal") or type.kind is Kind.FLOAT or found.endswith(",0)")
        if found.split("(")[0] not in accepted or not exact:
            what = f"column {column} is {found}, but {name} is {type.name}"
            raise _mistake(relation, what, f"cast it: F.col('{column}').cast('{SQL_TYPES[type.kind]}')")


def _mistake(relation: Relation, message: str, *notes: str) -> DlogError:
    return DlogError(Diagnostic("bad-input", f"input of {relation.name}: {message}", notes=notes))


def in_slots(spark: SparkSession, program: Program, given: Mapping[str, DataFrame], slots: Slots, workers: int) -> DataFrame:
    """All inputs as one DataFrame of as many partitions as there are workers, rows spread evenly, and a row with the tag
    `NO_INPUT`. Raises DlogError."""
    parts = []
    for number, (name, data) in enumerate(given.items()):
        relation = program.relations[name]
        columns = columns_of(relation, data)
        check_types(relation, data, columns)
        parts.append(data.select(*_placed(number, slots, columns)))
    # Of a DataFrame that it can tell to be empty Spark makes no partition, and there would be no worker.
    parts.append(spark.range(1).select(*_placed(NO_INPUT, slots, ())))
    whole: DataFrame = reduce(lambda a, b: a.unionAll(b), parts)
    return whole.repartition(workers, *whole.columns)


def _placed(number: int, slots: Slots, columns: Sequence[str]) -> list[Column]:
    from pyspark.sql import functions as F

    taken = dict(zip(slots.columns[number], columns, strict=True)) if number != NO_INPUT else {}
    placed = [F.lit(number).cast("int").alias(TAG)]
    for slot, sql in zip(slots.names, slots.types, strict=True):
        value = F.col(f"`{taken[slot]}`") if slot in taken else F.lit(None)
        placed.append(value.cast(sql).alias(slot))
    return placed
