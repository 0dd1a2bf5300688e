"""`.input` and `.output` with IO=spark: tables, files and queries that Spark reads, and what it writes.

    .input  edge(IO=spark, table="db.edges")
    .input  edge(IO=spark, path="s3a://bucket/edges", format=parquet)
    .input  edge(IO=spark, query="select src, dst from events where kind = 'link'")
    .output path(IO=spark, path="out/path", format=parquet, mode=overwrite)
    .output path(IO=spark, table="db.path", mode=append)
    .output path(IO=spark, view=path)

Other parameters are options of the reader or writer (`header="true"`, `url="jdbc:..."`). Columns are found by name where the
source has them all, else by place; `columns="src:dst"` names them. Values of CSV files are cast, those of other sources are
not: their types must do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from dlog.engine.formats.parameters import directive_error
from dlog.engine.ir.rules import Constant, Io, Kind, Program, Relation, Type
from dlog.engine.ir.traversal import occurrences
from dlog.engine.spark.error_translation import failures, reason_of
from dlog.engine.spark.foreign_files import is_parquet, parquet_reader, without_foreign_types
from dlog.engine.spark.foreign_places import refuse_code, refuse_links
from dlog.engine.spark.inputs import check_types, columns_of, quoted
from dlog.engine.spark.tagged_rows import sql_type
from dlog.grammar.diagnostics import Diagnostic, DlogError, Label

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MODES = ("overwrite", "append", "errorifexists", "ignore")
_PARTITIONS = "spark.sql.sources.partitionOverwriteMode"
_OWN = {"io", "table", "path", "filename", "name", "query", "format", "mode", "view", "columns", "partitionby"}


def is_spark(io: Io) -> bool:
    return io.get("IO", "file").lower() == "spark"


def read(spark: SparkSession, io: Io, program: Program) -> DataFrame:
    """The rows an `.input` names, pruned to the relation's columns and to rows that some rule can use. Raises DlogError."""
    relation = program.relations[io.relation]
    try:
        data = without_foreign_types(relation.name, relation.names, _source(spark, io, program))
        columns = _columns(io, relation, data)
        if not _is_text(io):
            check_types(relation, data, columns)
    except DlogError as error:
        raise at_directive(error, io, program) from error
    pairs = zip(columns, relation.attributes, strict=True)
    named = data.select(*(_value(data, column, type, io).alias(name) for column, (name, type) in pairs))
    return wanted_rows(named, relation, program)


def at_directive(error: DlogError, io: Io, program: Program) -> DlogError:
    """The same mistakes, with the directive as their place."""
    label = Label(io.span)
    return DlogError([replace(d, labels=(label,), source=program.source) if not d.labels else d for d in error.diagnostics])


def at_input(error: DlogError, name: str, program: Program) -> DlogError:
    """Mistakes in the rows of a relation, at its `.input` where Spark reads it."""
    found = [io for io in program.io if io.relation == name and io.action == "input" and is_spark(io)]
    return at_directive(error, found[0], program) if found else error


def _is_text(io: Io) -> bool:
    """Whether the source knows no types."""
    return io.get("format").lower() == "csv" and "inferschema" not in {key.lower() for key, _ in io.params}


def _value(data: DataFrame, column: str, type: Type, io: Io) -> Column:
    value = data[quoted(column)]
    return value.cast(sql_type(type)) if _is_text(io) else value


def _columns(io: Io, relation: Relation, data: DataFrame) -> list[str]:
    named = io.get("columns")
    if not named:
        return columns_of(relation, data)
    names = named.split(":")
    known = {c.lower(): c for c in data.columns}
    for name in names:
        if name.lower() not in known:
            raise _unknown_column(relation, name, list(data.columns))
    if len(names) != relation.arity:
        message = f"columns={named!r} does not name one column per attribute of `{relation.name}` ({relation.arity})"
        raise DlogError(Diagnostic("bad-parameter", message))
    return [known[name.lower()] for name in names]


def _unknown_column(relation: Relation, name: str, columns: list[str]) -> DlogError:
    close = get_close_matches(name, columns, 1)
    notes = (f"did you mean `{close[0]}`?",) if close else (f"it has {', '.join(columns)}",)
    return DlogError(Diagnostic("unknown-column", f"input of {relation.name}: there is no column `{name}`", notes=notes))


def _source(spark: SparkSession, io: Io, program: Program) -> DataFrame:
    ways = [key for key in ("table", "query", "path", "filename") if io.get(key)]
    if len(ways) > 1 or (not ways and not io.get("format")):
        message = "IO=spark reads a table=, a path=, a query= or a format= with its options: name one"
        raise directive_error(io, program, "bad-parameter", message)
    refuse_code(io, program)
    try:
        if io.get("table"):
            return spark.read.options(**options(io)).table(io.get("table"))
        if io.get("query"):
            return spark.sql(io.get("query"))
        format = io.get("format") or str(spark.conf.get("spark.sql.sources.default"))
        path = io.get("path") or io.get("filename")
        if path and is_parquet(format):
            return parquet_reader(spark, format, path, options(io)).load(path)
        reader = spark.read.options(**options(io)).format(format)
        return reader.load(path) if path else reader.load()
    except failures() as error:
        raise directive_error(io, program, "unreadable-source", reason_of(error), *_hints(spark, io)) from error


def options(io: Io) -> dict[str, str]:
    """The parameters that are Spark's."""
    return {key: value for key, value in io.params if key.lower() not in _OWN}


def _hints(spark: SparkSession, io: Io) -> list[str]:
    """The table that may have been meant."""
    if not io.get("table"):
        return []
    database, _, name = io.get("table").rpartition(".")
    try:
        known = [t.name for t in (spark.catalog.listTables(database) if database else spark.catalog.listTables())]
    except Exception:
        return []
    close = get_close_matches(name, known, 1)
    return [f"did you mean `{close[0]}`?"] if close else []


def unreadable(program: Program, frames: Mapping[str, DataFrame]) -> list[DlogError]:
    """Reads each source on its own: the mistakes of those that Spark fails to read."""
    found = []
    for io in program.io:
        if io.action == "input" and is_spark(io) and io.relation in frames:
            try:
                frames[io.relation].write.format("noop").mode("overwrite").save()
            except failures() as error:
                mistake = directive_error(io, program, "unreadable-source", reason_of(error))
                mistake.__cause__ = error
                found.append(mistake)
    return found


def wanted_rows(data: DataFrame, relation: Relation, program: Program) -> DataFrame:
    """The rows with a constant that each use of the relation asks for: a filter that Spark pushes into the source."""
    from pyspark.sql import functions as F

    for column, values in constants(relation, program).items():
        name, type = relation.attributes[column]
        data = data.where(F.col(quoted(name)).isNull() | F.col(quoted(name)).isin(*[_literal(v, type) for v in values]))
    return data


def _literal(value: object, type: Type) -> Any:
    from pyspark.sql import functions as F

    return F.lit(value).cast(sql_type(type))


def constants(relation: Relation, program: Program) -> Mapping[int, list[object]]:
    """Per column the constants that rules ask for, where all of them ask for one and nobody is shown the relation."""
    if any(io.relation == relation.name and io.action != "input" for io in program.io):
        return {}
    bodies = (rule.body for stratum in program.strata for rule in stratum.rules)
    uses = [x.atom for body in bodies for x in occurrences(body) if x.atom.relation == relation.name]
    found: dict[int, list[object]] = {}
    for column, (_, type) in enumerate(relation.attributes):
        values = [a.args[column].value for a in uses if isinstance(a.args[column], Constant)]  # type: ignore[union-attr]
        if uses and len(values) == len(uses) and type.kind in (Kind.NUMBER, Kind.SYMBOL) and not type.is_calendar:
            found[column] = list(dict.fromkeys(values))
    return found


def write(spark: SparkSession, io: Io, program: Program, data: DataFrame) -> None:
    """Does what an `.output` with IO=spark says. Raises DlogError."""
    mode = io.get("mode", "overwrite").lower()
    if mode not in MODES:
        close = get_close_matches(mode, MODES, 1)
        notes = (f"did you mean `{close[0]}`?",) if close else ()
        raise directive_error(io, program, "bad-parameter", f"mode={mode!r} is not one of {', '.join(MODES)}", *notes)
    path = io.get("path") or io.get("filename")
    if not (io.get("view") or io.get("table") or path):
        raise directive_error(io, program, "bad-parameter", "IO=spark writes a table=, a path= or a view=: name one")
    refuse_code(io, program)
    try:
        if io.get("view"):
            data.createOrReplaceTempView(io.get("view"))
            return
        writer = data.write.mode(mode).options(**options(io))
        if io.get("format"):
            writer = writer.format(io.get("format"))
        if io.get("partitionBy"):
            writer = writer.partitionBy(*io.get("partitionBy").split(":"))
        if io.get("table"):
            writer.saveAsTable(io.get("table"))
        else:
            if mode == "append" or _replaces_partitions(spark, io, mode):
                refuse_links(spark, io, program, path)
            writer.save(path)
    except failures() as error:
        raise directive_error(io, program, "unwritable-target", reason_of(error)) from error


def _replaces_partitions(spark: SparkSession, io: Io, mode: str) -> bool:
    """Whether files of a folder stay that Spark writes to: those of partitions that have no new rows."""
    given = next((value for key, value in io.params if key.lower() == _PARTITIONS.rpartition(".")[2].lower()), "")
    return mode == "overwrite" and (given or str(spark.conf.get(_PARTITIONS))).lower() == "dynamic"
