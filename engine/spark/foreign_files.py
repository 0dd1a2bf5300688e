"""Files that somebody else has made: what they have Spark and PySpark run is kept from these.

Into the Parquet files that it writes Spark puts the types of their columns, and believes what is there of any file. It can name
classes: of Java, of which Spark before 4.3 makes objects, and of Python, which PySpark imports. It can say by an SQL expression
what a column has that is not in the file, and before the first row is read Spark evaluates that, with functions that load
classes and fetch addresses. So the types of Parquet files are those of their columns, whatever else they say; and a DataFrame
that was made otherwise is looked at. Besides, a folder that a stream has written lists its files, which may be others' then.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from dlog.grammar.diagnostics import Diagnostic, DlogError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEFAULT = "EXISTS_DEFAULT"
"""Where a column's metadata say by an expression what it has in files that lack it."""
MERGING = "mergeSchema"
"""Of a reader; of a session with Spark's prefix. The types are those of all files together then, else those of one."""
_VALUES = re.compile(r"'[^']*'|(?<![\w.])[0-9][0-9.]*(?:[eE][+-]?[0-9]+)?(?:BD|[LSYDF])?\b", re.IGNORECASE)
_WORDS = frozenset(
    [
        *("NULL", "TRUE", "FALSE", "CAST", "AS", "X", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"),
        *("INTERVAL", "YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "TO", "ARRAY", "MAP", "STRUCT", "NAMED_STRUCT"),
        *("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "STRING", "CHAR", "VARCHAR"),
        *("BINARY", "BOOLEAN"),
    ]
)
"""What stands in a default beside values; Spark itself writes no others, as it has computed them."""


def is_parquet(format: str) -> bool:
    """Whether a source of this name reads Parquet files as Spark does."""
    name = format.lower()
    return name == "parquet" or (name.startswith("org.apache.spark.sql.") and "parquet" in name)


def parquet_reader(spark: SparkSession, format: str, path: str, options: Mapping[str, str]) -> Any:
    """A reader of Parquet files that takes their columns as they are stored, by names and types; partitions come from the
    folders' names. Raises what Spark does, and DlogError."""
    from pyspark.sql.types import StructType

    def reader() -> Any:
        return spark.read.options(**options).format(format)

    listed = reader().schema(StructType([])).load(path)
    refuse_files_elsewhere(listed)
    names = sorted(str(name) for name in cast("Any", listed)._jdf.inputFiles())
    files = [name for name in names if not name.rpartition("/")[2].startswith(("_", "."))] or names
    if not files:
        return reader()  # which says what is not there
    merges = {k.lower(): v for k, v in options.items()}.get(MERGING.lower()) or spark.conf.get(f"spark.sql.parquet.{MERGING}")
    chosen = reader()
    chosen._jreader.schema(_stored(spark, files if str(merges).lower() == "true" else files[:1], options))
    return chosen


def _stored(spark: SparkSession, files: Sequence[str], options: Mapping[str, str]) -> Any:
    """The columns of all of these files, as Spark's type of a row. Raises what Spark does."""
    context: Any = spark.sparkContext
    jvm, state = context._jvm, cast("Any", spark)._jsparkSession.sessionState()
    settings = state.newHadoopConfWithOptions(jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(dict(options)))
    converter = jvm.org.apache.spark.sql.execution.datasources.parquet.ParquetToSparkSchemaConverter(state.conf())
    found = None
    for file in files:
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(file))
        skip = jvm.org.apache.parquet.format.converter.ParquetMetadataConverter.SKIP_ROW_GROUPS
        how = jvm.org.apache.parquet.HadoopReadOptions.builder(settings, path).withMetadataFilter(skip).build()
        opened = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(path, settings)
        footer = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(opened, how)
        try:
            row = converter.convert(footer.getFileMetaData().getSchema())
        finally:
            footer.close()
        found = row if found is None else found.merge(row, state.conf().caseSensitiveAnalysis())
    return found


# ---------------------------------------------------------------------------------------------- what was read in another way


def without_foreign_types(name: str, attributes: Collection[str], data: DataFrame) -> DataFrame:
    """The DataFrame for a relation without the columns of types that are written in Python: to say what they are, PySpark would
    import the modules that a file names, and in some versions unpickle what it holds. Raises DlogError where an attribute has
    the name of one, where Spark would evaluate what a file says, and where a folder lists files of others."""
    schema = json.loads(cast("Any", data)._jdf.schema().json())
    own = [field["name"] for field in schema["fields"] if _is_of_python(field["type"])]
    needed = {attribute.lower() for attribute in attributes}
    for column in own:
        if column.lower() in needed:
            what = f"the column {column} has a type that is written in Python, and reading it runs what it names"
            raise _mistake(name, what)
    for leaf in _leaves(data):
        if not _is_of_catalog(leaf):
            _refuse_defaults(name, leaf)
    refuse_files_elsewhere(data)
    return data.drop(*own) if own else data


def _is_of_python(type: object) -> bool:
    """Whether a type, as Spark says it in JSON, is one of Python's or has one in it."""
    if isinstance(type, list):
        return any(map(_is_of_python, type))
    return isinstance(type, dict) and (bool(type.get("pyClass")) or any(map(_is_of_python, type.values())))


def _refuse_defaults(name: str, leaf: Any) -> None:
    told = str(leaf.schema().json())
    for field in json.loads(told)["fields"] if DEFAULT in told else ():
        said = field["metadata"].get(DEFAULT, "NULL")
        if not is_value(str(said)):
            what = f"a file says how the column {field['name']} is to be computed where it lacks it: {reprlib.repr(said)}"
            raise _mistake(name, what, "Spark would run that before it reads a row; by path= alone the column is not there")


def is_value(text: str) -> bool:
    """Whether an SQL expression is a value that is written out."""
    if re.search(r"""[\\"`]|--|/\*""", text):
        return False
    left = _VALUES.sub(" ", text)
    return re.fullmatch(r"[\w\s(),+-]*", left) is not None and set(re.findall(r"\w+", left.upper())) <= _WORDS


def refuse_files_elsewhere(data: DataFrame) -> None:
    """Raises DlogError for a folder whose list of files, as a stream of Spark's leaves it, has others than its own."""
    for leaf in _leaves(data):
        relation = leaf.relation() if _class_of(leaf) == "LogicalRelation" else None
        location = relation.location() if relation is not None and _class_of(relation) == "HadoopFsRelation" else None
        if location is not None and _class_of(location) == "MetadataLogFileIndex":
            root = f"{location.rootPaths().apply(0).toUri()}/"
            for file in map(str, location.inputFiles()):
                if not file.startswith(root) or "/../" in file:
                    what = f"the list of files in {root}_spark_metadata has one that is elsewhere: {file}"
                    raise DlogError(Diagnostic("bad-input", what))


def _leaves(data: DataFrame) -> Iterator[Any]:
    """Where the rows of a DataFrame come from, as its plan has it."""
    plan = cast("Any", data)._jdf.queryExecution().analyzed()
    below = plan.subqueriesAll()
    for part in (plan, *(below.apply(number) for number in range(below.size()))):
        found = part.collectLeaves()
        yield from (found.apply(number) for number in range(found.size()))


def _is_of_catalog(leaf: Any) -> bool:
    """Whether a leaf is a table of a catalog: what is known of it is the user's, as are its files."""
    match _class_of(leaf):
        case "LogicalRelation":
            return bool(leaf.catalogTable().isDefined())
        case "DataSourceV2Relation":
            return bool(leaf.catalog().isDefined())
        case name:
            return name == "HiveTableRelation"


def _class_of(thing: Any) -> str:
    return str(thing.getClass().getSimpleName())


def _mistake(name: str, message: str, *notes: str) -> DlogError:
    return DlogError(Diagnostic("bad-input", f"input of {name}: {message}", notes=notes))
