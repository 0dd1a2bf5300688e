"""DataFrames as the inputs of a program: which column is which attribute, and whether its type will do."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from dlog.engine.formats.columns import Unclear, places
from dlog.engine.ir.rules import Domain, Kind, Program, Relation, Type
from dlog.engine.plan.exchange.places import choose_homes
from dlog.engine.spark.application import in_tasks, need_running
from dlog.engine.spark.cutting import NOTHING, SCHEMA, Cut
from dlog.engine.spark.error_translation import failures
from dlog.engine.spark.foreign_files import without_foreign_types
from dlog.engine.spark.tagged_rows import sql_type
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import Diagnostic, DlogError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from dlog.engine.spark.arrow import ArrowCodec

SMALL_INPUT_BYTES_PER_WORKER = 16 << 20
"""Of so much for each worker, by Spark's estimate, no more tasks are made than there are workers: a task of Python takes some
hundredths of a second, however few rows it has."""
LIGHT_BYTES = 1 << 30
"""What a batch that is not weighed may come to at most: Arrow's columns end at twice as much."""
BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
NO_BOUND = str(2**31 - 1)
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_ACCEPTED = {
    Kind.NUMBER: (*_INTEGERS, "decimal"),
    Kind.UNSIGNED: (*_INTEGERS, "decimal"),
    Kind.FLOAT: (*_INTEGERS, "float", "double", "decimal"),
    Kind.SYMBOL: ("string", "char", "varchar"),
    Kind.RECORD: ("string",),
}
_CALENDAR = {Domain.DATE: ("date",), Domain.TIMESTAMP: ("timestamp", "timestamp_ntz", "date")}


def columns_of(relation: Relation, data: DataFrame) -> list[str]:
    """The DataFrame's column for each attribute, as `dlog.engine.formats.columns` has it, but that names are alike in upper and
    lower case. Raises DlogError."""
    wanted = [name.lower() for name, _ in relation.attributes]
    if not wanted:
        return []  # what counts is whether there is a row
    _unlike(relation, data, [column for column in data.columns if column.lower() in wanted])
    try:
        found = places(wanted, [column.lower() for column in data.columns])
    except Unclear as error:
        raise _mistake(relation, error.message, *error.notes, f"the columns are {', '.join(data.columns)}") from None
    if found is not None:
        return _unlike(relation, data, [data.columns[place] for place in found])
    has = f"the DataFrame has {len(data.columns)} columns: {', '.join(data.columns)}"
    needs = f"`{relation.name}` has {relation.arity}: {', '.join(n for n, _ in relation.attributes)}"
    raise _mistake(relation, "the columns do not fit", f"{has}; {needs}", "name them alike, or select as many as it has")


def _unlike(relation: Relation, data: DataFrame, columns: list[str]) -> list[str]:
    """The columns, which no others of the DataFrame may have the names of: Spark would not know which is meant."""
    names = [c.lower() for c in data.columns]
    for column in columns:
        if names.count(column.lower()) > 1:
            what = f"{names.count(column.lower())} columns of the DataFrame have the name {column}"
            raise _mistake(relation, what, "name them apart: data.toDF('x', 'y', ...)")
    return columns


def quoted(column: str) -> str:
    """The name of a column as Spark parses it."""
    return "`" + column.replace("`", "``") + "`"


def check_types(relation: Relation, data: DataFrame, columns: Sequence[str]) -> None:
    """Raises DlogError where a column cannot become its attribute."""
    types = dict(data.dtypes)
    for (name, type), column in zip(relation.attributes, columns, strict=True):
        found = types[column]
        accepted = _CALENDAR.get(type.domain) or _ACCEPTED[type.kind]
        exact = not found.startswith("decimal") or type.kind is Kind.FLOAT or found.endswith(",0)")
        if found.split("(")[0] not in accepted or not exact:
            what = f"column {column} is {found}, but {name} is {type.name}"
            raise _mistake(relation, what, f"cast it: F.col('{column}').cast('{sql_type(type)}')")


def _mistake(relation: Relation, message: str, *notes: str) -> DlogError:
    return DlogError(Diagnostic("bad-input", f"input of {relation.name}: {message}", notes=notes))


class Arriving(NamedTuple):
    """All inputs as blocks (`cutting.SCHEMA`, a relation's number is its place among them), in as many partitions as there are
    workers, each block in its owner's. `light`: so few that Spark need not weigh its batches."""

    blocks: DataFrame
    light: bool


def in_blocks(
    spark: SparkSession, program: Program, given: Mapping[str, DataFrame], workers: int, trusting: bool = True
) -> Arriving:
    """`trusting`: inputs that are light by Spark's estimate are taken for it; a task that has too much says so, with the code
    `cutting.TOO_HEAVY`. Raises DlogError."""
    homes = choose_homes(program)
    frames = {name: as_declared(program.relations[name], data) for name, data in given.items()}
    sizes = {name: _bytes_of(frame) for name, frame in frames.items()}
    plain = all(has_plain_rows(program.relations[name]) for name in frames)
    light = (
        trusting
        and plain
        and sum(sizes.values()) <= SMALL_INPUT_BYTES_PER_WORKER * workers
        and not any(map(has_python, frames.values()))
    )
    most = LIGHT_BYTES // (workers * len(frames)) if light and frames else None
    # Of a DataFrame that it can tell to be empty Spark makes no partition, and there would be no worker.
    nothing = "0 lane", f"{NOTHING} relation", f"{NOTHING} owner", "cast(null as binary) block"
    parts = [spark.range(0, 1, 1, 1).selectExpr(*nothing)]
    for number, (name, data) in enumerate(frames.items()):
        cut = Cut(((number, homes[name]),), program.relations[name], program.types, workers, most)
        few = data.coalesce(workers) if sizes[name] <= SMALL_INPUT_BYTES_PER_WORKER * workers else data
        parts.append(in_tasks(few, cut, SCHEMA))
    return Arriving(reduce(lambda a, b: a.unionAll(b), parts).repartition(workers, "lane"), light)


def _bytes_of(data: DataFrame) -> int:
    """The bytes of a DataFrame by Spark's estimate; very many where it has none."""
    return int(str(data._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def has_python(data: DataFrame) -> bool:
    """Whether Python of the user's makes the rows, which may count on Spark's weighing."""
    return re.search("Python|InPandas|InArrow", str(data._jdf.queryExecution().optimizedPlan())) is not None


def has_plain_rows(relation: Relation) -> bool:
    """Whether all rows of a relation are of the same few bytes."""
    return all(kind in (Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT) for kind in relation.kinds)


@contextmanager
def unweighed(spark: SparkSession, light: bool = True) -> Iterator[None]:
    """For rows that are light: jobs of this thread send Python batches of as many rows as the session says, whatever bytes they
    have. Spark else adds up a batch's bytes after each row, which takes as long as writing it there. A session's own bound
    stays, and all do where Spark's threads are not ours one by one."""
    if not light or os.environ.get("PYSPARK_PIN_THREAD", "true").lower() != "true":
        yield
        return
    spark.sparkContext.setLocalProperty(BATCH_BYTES, NO_BOUND)
    try:
        yield
    finally:
        with suppress(*failures()):
            spark.sparkContext.setLocalProperty(BATCH_BYTES, None)


def as_declared(relation: Relation, data: DataFrame) -> DataFrame:
    """The columns of the attributes, in order, with Spark's types for theirs."""
    need_running(data.sparkSession)
    data = without_foreign_types(relation.name, relation.names, data)
    columns = columns_of(relation, data)
    check_types(relation, data, columns)
    pairs = zip(relation.attributes, columns, strict=True)
    return data.select(*(as_type(data, c, type).alias(name) for (name, type), c in pairs))


def as_type(data: DataFrame, column: str, type: Type) -> Column:
    """A column with Spark's type for one of the program's. A time of a zone becomes that of UTC."""
    from pyspark.sql import functions as F

    if type.domain is Domain.TIMESTAMP and dict(data.dtypes)[column] == "timestamp":
        return F.expr(f"timestampadd(MICROSECOND, unix_micros({quoted(column)}), timestamp_ntz'1970-01-01 00:00:00')")
    return F.col(quoted(column)).cast(sql_type(type))


def table_here(relation: Relation, data: DataFrame, codec: ArrowCodec) -> Table:
    """Rows in the relation's columns and types as a table of this process. Arrow forgets how many rows there are where there
    are no columns. Raises DlogError."""
    from dlog.engine.spark.error_translation import failures, reason_of

    try:
        return codec.read(relation, data.toArrow()) if relation.arity else Table((), (), data.count())
    except failures() as error:
        message = f"the rows for {relation.name} cannot be read: {reason_of(error)}"
        raise DlogError(Diagnostic("spark-failed", message)) from error
