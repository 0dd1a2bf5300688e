"""Structured Streaming as the source of a session's rounds: a micro-batch is a round, whatever happens in between.

    with dlog.session("program.dl", state="state") as s:
        query = dlog.stream(s, {"edge": spark.readStream.table("edges")}, checkpoint="checkpoint", changes="changes")
        query.awaitTermination()

A batch's number is the mark of its round. The round and its mark go into the session's state together, and the changes of the
outputs to files that are named after the round; so a batch that Spark delivers again after a crash is known, and its files are
written over. If a crash came between a round and its files, they are made from what the relations are now and what all
earlier files say they were. Nothing is lost and nothing is doubled, as long as checkpoint, state and changes are kept together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlog.arguments import bad_argument
from dlog.engine.ir.rules import Kind, Relation
from dlog.engine.rounds_engine import MAX_RELAYED_ROWS
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.relation import unknown_relation
from dlog.sessions import Round, Session
from dlog.sessions.follow.changes import mark_names
from dlog.unfinished import remove_left, replacing

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter
    from pyspark.sql.streaming.query import StreamingQuery

DIFF = "diff"
"""The column, if there is one, that says whether a row comes (> 0) or goes (< 0)."""
TAG = "relation"

OnRound = Callable[[int, Round], None]


def stream(
    session: Session,
    sources: Mapping[str, DataFrame],
    *,
    checkpoint: str | Path,
    changes: str | Path | None = None,
    outputs: tuple[str, ...] | None = None,
    on_round: OnRound | None = None,
    **trigger: Any,
) -> StreamingQuery:
    """Starts a streaming query that feeds a session.

    Parameters
    ----------
    sources
        A streaming DataFrame for each relation: columns named as its attributes (or as many), and `diff` where rows go too.
        Several are read as one stream, so that each batch has what came of all of them.
    checkpoint
        Where Spark keeps how far it has read.
    changes
        A folder for the changes of the outputs: per relation and round one Parquet file with the relation's columns, then
        `diff` and `round`. Read it as `spark.read.parquet(f"{changes}/path")`.
    outputs
        The relations whose changes are written; by default those that the program puts out.
    on_round
        Called after each round with the batch's number and the round.
    trigger
        As `DataStreamWriter.trigger` takes it: `availableNow=True`, `processingTime="1 second"`.

    Raises
    ------
    DlogError
        A source does not fit its relation, or the session was fed from another checkpoint. What is wrong with a batch stops
        the query: `query.exception()`.
    """
    if not sources:
        raise DlogError(Diagnostic("bad-argument", "a stream needs a source for at least one relation"))
    names = outputs if outputs is not None else _outputs(session)
    for name in names:
        if name not in session.program.relations:
            raise unknown_relation(name, session.program.relations)
    bare = [n for n in names if not session.program.relations[n].arity]
    if changes is not None and bare:
        message = f"not supported yet: a stream of the changes of `{bare[0]}`, which has no columns"
        raise DlogError(Diagnostic("unsupported", message))
    prepared = [_prepared(session, number, name, data) for number, (name, data) in enumerate(sources.items())]
    whole: DataFrame = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), prepared)
    feed = _Feed(session, tuple(sources), names, None if changes is None else Path(changes), on_round)
    _check_begun(session, str(checkpoint), whole.sparkSession)
    feed.begin()
    return _started(whole.writeStream.foreachBatch(feed).option("checkpointLocation", str(checkpoint)), trigger)


def _check_begun(session: Session, checkpoint: str, spark: SparkSession) -> None:
    """A checkpoint that has not begun with the batch of the session's mark would come to it, and be taken for known."""
    mark = session.mark
    if mark is not None and mark >= 0 and _last_batch(checkpoint, spark) < mark:
        raise _another_checkpoint(mark)


def _last_batch(checkpoint: str, spark: SparkSession) -> int:
    """The last batch that has begun, -1 before the first one; of a checkpoint on whatever file system Spark knows."""
    from dlog.engine.spark.error_translation import failures, reason_of

    try:
        path = spark._jvm.org.apache.hadoop.fs.Path(checkpoint, "offsets")
        system = path.getFileSystem(spark._jsc.hadoopConfiguration())
        names = [found.getPath().getName() for found in system.listStatus(path)] if system.exists(path) else []
    except failures() as error:
        raise DlogError(Diagnostic("spark-failed", f"the stream's checkpoint cannot be read: {reason_of(error)}")) from error
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def _another_checkpoint(mark: int) -> DlogError:
    message = f"the session has batches up to {mark} of another stream: those of this checkpoint would be taken for known"
    notes = ("go on with the checkpoint that belongs to the session", "or have a new stream begin: session.commit(mark=-1)")
    return DlogError(Diagnostic("another-checkpoint", message, notes=notes))


def _started(writer: DataStreamWriter, trigger: Mapping[str, Any]) -> StreamingQuery:
    from dlog.engine.spark.error_translation import failures, reason_of

    try:
        return writer.trigger(**trigger).start() if trigger else writer.start()
    except TypeError as error:
        raise DlogError(Diagnostic("bad-argument", f"the stream's trigger: {error}")) from error
    except failures() as error:
        raise DlogError(Diagnostic("spark-failed", f"the stream does not start: {reason_of(error)}")) from error


def _outputs(session: Session) -> tuple[str, ...]:
    return tuple(sorted({io.relation for io in session.program.io if io.action == "output"}))


def _prepared(session: Session, number: int, name: str, data: DataFrame) -> DataFrame:
    """A source with its relation's number, its diffs, and its columns under names of their own."""
    from pyspark.sql import functions as F

    from dlog.engine.spark.foreign_files import without_foreign_types
    from dlog.engine.spark.inputs import as_type, check_types, columns_of

    relation = session.taking(name)
    if not getattr(data, "isStreaming", False):
        raise bad_argument(f"sources[{name!r}]", "a streaming DataFrame, as of spark.readStream", data)
    data = without_foreign_types(relation.name, relation.names, data)
    has_diff = DIFF in data.columns and DIFF not in [a for a, _ in relation.attributes]
    values = data.drop(DIFF) if has_diff else data
    columns = columns_of(relation, values)
    check_types(relation, values, columns)
    diff = _sign(relation, data) if has_diff else F.lit(1)
    named = [
        as_type(values, column, type).alias(f"{number}_{attribute}")
        for column, (attribute, type) in zip(columns, relation.attributes, strict=True)
    ]
    return data.select(F.lit(number).alias(TAG), diff.cast("int").alias(DIFF), *named).where(F.col(DIFF) != 0)


def _sign(relation: Relation, data: DataFrame) -> Column:
    """1 where a row comes, -1 where it goes, 0 where neither."""
    from pyspark.sql import functions as F

    type = dict(data.dtypes)[DIFF]
    if type not in ("tinyint", "smallint", "int", "bigint"):
        message = f"the column `{DIFF}` of the stream for {relation.name} is {type}"
        note = "it says by its sign whether a row comes or goes: an integer"
        raise DlogError(Diagnostic("bad-input", message, notes=(note,)))
    lacking = F.raise_error(F.lit(f"a row for {relation.name} has no {DIFF}"))
    return F.when(F.col(DIFF).isNull(), lacking.cast("int")).otherwise(F.signum(F.col(DIFF)).cast("int"))


class _Feed:
    """The callback of Spark for each batch."""

    def __init__(
        self,
        session: Session,
        sources: tuple[str, ...],
        outputs: tuple[str, ...],
        folder: Path | None,
        on_round: OnRound | None,
    ) -> None:
        self.session = session
        self.sources = sources
        self.outputs = outputs
        self.folder = folder
        self.on_round = on_round
        self._lock = threading.Lock()
        relations = [session.program.relations[name] for name in sources]
        self._as_frames = any(kind is Kind.RECORD for relation in relations for kind in relation.kinds)
        """Whether there are records, which are texts to Spark."""

    def __call__(self, batch: DataFrame, number: int) -> None:
        with self._lock:
            mark = self.session.mark
            if mark is not None and number < mark:  # Spark delivers none but the last one again
                raise _another_checkpoint(mark)
            if mark is not None and number <= mark:
                self._again(number, mark)
                return
            with self._persisted(batch) as rows:
                round = self._committed(rows, number)
            self._write(round)
            if self.on_round is not None:
                self.on_round(number, round)

    @contextmanager
    def _persisted(self, batch: DataFrame) -> Iterator[DataFrame]:
        """A batch that several look at is read once."""
        if not (self._as_frames or self.session.elsewhere):
            yield batch
            return
        held = batch.persist()
        try:
            yield held
        finally:
            held.unpersist()

    def _committed(self, rows: DataFrame, number: int) -> Round:
        try:
            if self._as_frames or (self.session.elsewhere and rows.count() > MAX_RELAYED_ROWS):
                self._stage_frames(rows)
            else:
                self._stage(rows.toArrow())
            return self.session.commit(mark=number)
        except BaseException:
            self.session.rollback()
            raise

    def _again(self, number: int, mark: int) -> None:
        """A batch that is in the session already. If it was the last one, its changes may not have been written."""
        if number == mark and self.folder is not None:
            for name in self.outputs:
                self._recover(self.folder / name, name)

    def _recover(self, folder: Path, name: str) -> None:
        """Writes the changes of the last round: the rows now against the sum of all changes before."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from dlog.engine.formats import parquet

        target = _file(folder, self.session.round)
        diff, round = mark_names(self.session.program.relations[name])
        held = self.session[name].to_arrow()
        parts = [held.append_column(diff, pa.array([1] * held.num_rows, pa.int64()))]
        for path in sorted(folder.glob("round-*.parquet")):
            if path.name < target.name:
                known = parquet.read(path).drop_columns(round)
                known.validate(full=True)  # Parquet's reader takes places in dictionaries that are not there
                parts.append(known.set_column(held.num_columns, diff, pc.negate(known[diff])))
        whole = pa.concat_tables(parts, promote_options="permissive")
        net = whole.group_by(held.column_names).aggregate([(diff, "sum")])
        net = net.filter(pc.not_equal(net[f"{diff}_sum"], 0)).select([*held.column_names, f"{diff}_sum"])
        net = net.rename_columns([*held.column_names, diff])
        _write_changes(net.append_column(round, pa.array([self.session.round] * net.num_rows, pa.int64())), target)

    def _stage_frames(self, rows: DataFrame) -> None:
        """Stages as `_stage` does; the session takes DataFrames, whose rows go from Spark's tasks to its workers, if it has
        any."""
        from pyspark.sql import functions as F

        from dlog.engine.spark.inputs import quoted

        for number, name in enumerate(self.sources):
            relation = self.session.program.relations[name]
            named = [F.col(quoted(f"{number}_{attribute}")).alias(attribute) for attribute, _ in relation.attributes]
            for diff, act in ((-1, self.session.remove), (1, self.session.insert)):
                part = rows.where((F.col(TAG) == number) & (F.col(DIFF) == diff)).select(*named)
                if not part.isEmpty():
                    act(name, part)

    def _stage(self, rows: pa.Table) -> None:
        """Stages what goes before what comes: a row that does both in one batch is there afterwards."""
        import pyarrow.compute as pc

        for number, name in enumerate(self.sources):
            relation = self.session.program.relations[name]
            mine = rows.filter(pc.equal(rows[TAG], number))
            for diff, act in ((-1, self.session.remove), (1, self.session.insert)):
                part = mine.filter(pc.equal(mine[DIFF], diff))
                if part.num_rows:
                    act(name, _table(relation, number, part))

    def _write(self, round: Round) -> None:
        for name in self.outputs if self.folder is not None else ():
            assert self.folder is not None
            _write_changes(round.changes(name).to_arrow(), _file(self.folder / name, int(round)))

    def begin(self) -> None:
        """Writes what the outputs hold before the first batch: the changes of all rounds until then. What writers that were
        killed have left beside these files goes."""
        for name in self.outputs if self.folder is not None else ():
            assert self.folder is not None
            remove_left((self.folder / name).glob(".round-*.parquet.*.part"))
            if self.session.round and not any((self.folder / name).glob("round-*.parquet")):
                self._recover(self.folder / name, name)


def _file(folder: Path, round: int) -> Path:
    return folder / f"round-{round:012}.parquet"


def _table(relation: Relation, number: int, part: pa.Table) -> Any:
    """The relation's rows of a batch, in the form that a session takes."""
    columns = [part[f"{number}_{name}"] for name, _ in relation.attributes]
    if not columns:
        return [()] * part.num_rows
    import pyarrow as pa

    return pa.table(columns, names=[name for name, _ in relation.attributes])


def _write_changes(changes: pa.Table, target: Path) -> None:
    """Writes a round's changes, whole or not at all; no changes, no file."""
    import pyarrow.parquet as pq

    target.parent.mkdir(parents=True, exist_ok=True)
    if not changes.num_rows:
        target.unlink(missing_ok=True)
        return
    with replacing(target) as file:
        pq.write_table(changes, file)
