"""`.input` and `.output` with IO=spark: what is read and written, what readers are asked for, mistakes at their places."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import dlog
from dlog.engine.spark import sources
from dlog.grammar.diagnostics import DlogError, render
from dlog.pipeline import compile_program, optimized
from tests.dlog.command import dlog as command

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ON_SPARK = pytest.mark.spark
RULES = """.decl edge(x: number, y: number)
.decl path(x: number, y: number)
.input edge({source})
.output path({target})
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
ROWS = [(1, 2), (2, 3), (3, 4)]
CLOSED = [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]


@pytest.fixture
def edges(spark: SparkSession) -> DataFrame:
    """Edges with a kind and a weight beside, in another order of columns."""
    return spark.createDataFrame([(float(x), y, "road", x) for x, y in ROWS], "weight double, y int, kind string, x long")


def closed(source: str) -> list[tuple[int, int]]:
    return sorted(dlog.run(RULES.format(source=f"IO=spark, {source}", target=""), engine="spark")["path"])


def written(spark: SparkSession, target: str, output: Path, **more: str) -> None:
    text = RULES.format(source='IO=spark, query="select * from values (1, 2), (2, 3), (3, 4)"', target=f"IO=spark, {target}")
    dlog.run(text, engine="spark", spark=spark, output=output, **more)  # type: ignore[arg-type]


def rows(data: DataFrame) -> list[tuple[int, int]]:
    return sorted((row.x, row.y) for row in data.collect())


# ----------------------------------------------------------------------------------------------------------------- reading


@ON_SPARK
@pytest.mark.parametrize("format", ["parquet", "orc", "json", "csv"])
def test_files_of_every_format(edges: DataFrame, tmp_path: Path, format: str) -> None:
    edges.write.format(format).option("header", "true").save(str(tmp_path / "edges"))
    options = ', header="true"' if format == "csv" else ""
    assert closed(f'path="{tmp_path}/edges", format={format}{options}') == CLOSED


@ON_SPARK
def test_tables_views_and_queries(spark: SparkSession, edges: DataFrame) -> None:
    edges.createOrReplaceTempView("roads")
    assert closed("table=roads") == CLOSED
    assert closed("query=\"select y, x from roads where kind = 'road' and x < 3\"") == [(1, 2), (1, 3), (2, 3)]
    assert closed('table=roads, columns="y:x"') == sorted((y, x) for x, y in CLOSED)


@ON_SPARK
def test_csv_without_names_goes_by_place_and_its_values_are_cast(edges: DataFrame, tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("1;2\n2;3\n3;4\n")
    assert closed(f'path="{tmp_path}/edges.csv", format=csv, sep=";"') == CLOSED


@ON_SPARK
def test_a_relation_with_several_inputs_has_the_rows_of_all(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame(ROWS[:1], "x long, y long").createOrReplaceTempView("some")
    spark.createDataFrame(ROWS[1:2], "x long, y long").createOrReplaceTempView("others")
    (tmp_path / "edge.facts").write_text("3\t4\n")
    text = RULES.format(source="IO=spark, table=some", target="") + ".input edge(IO=spark, table=others)\n.input edge\n"
    assert sorted(dlog.run(text, str(tmp_path), engine="spark")["path"]) == CLOSED


@ON_SPARK
def test_only_the_columns_and_rows_that_rules_use_are_read(spark: SparkSession, edges: DataFrame, tmp_path: Path) -> None:
    edges.write.parquet(str(tmp_path / "edges"))
    text = f""".decl edge(kind: symbol, x: number)
    .input edge(IO=spark, path="{tmp_path}/edges", format=parquet)
    .decl start(x: number)
    .output start
    start(x) :- edge("road", x).
    """
    program = optimized(compile_program(text))
    [directive] = [io for io in program.io if io.action == "input"]
    with redirect_stdout(io.StringIO()) as plan:
        sources.read(spark, directive, program).explain()
    assert "ReadSchema: struct<kind:string,x:bigint>" in plan.getvalue()
    [pushed] = [line for line in plan.getvalue().splitlines() if "PushedFilters" in line]
    assert "EqualTo(kind,road)" in pushed or "In(kind, [road])" in pushed
    assert sorted(dlog.run(text, engine="spark")["start"]) == [(1,), (2,), (3,)]


# ----------------------------------------------------------------------------------------------------------------- writing


@ON_SPARK
def test_outputs_are_files_tables_and_views(spark: SparkSession, tmp_path: Path) -> None:
    for format in ("parquet", "json"):
        written(spark, f'path="{tmp_path}/{format}", format={format}', tmp_path)
        assert rows(spark.read.format(format).load(str(tmp_path / format))) == CLOSED
    written(spark, "view=closed", tmp_path)
    assert rows(spark.table("closed")) == CLOSED
    written(spark, f'path="{tmp_path}/cut", partitionBy=x', tmp_path)
    assert sorted(p.name for p in (tmp_path / "cut").glob("x=*")) == ["x=1", "x=2", "x=3"]


@ON_SPARK
def test_modes(spark: SparkSession, tmp_path: Path) -> None:
    target = f'path="{tmp_path}/out"'
    for mode, height in (("errorifexists", 6), ("append", 12), ("ignore", 12), ("overwrite", 6)):
        written(spark, f"{target}, mode={mode}", tmp_path)
        assert spark.read.parquet(str(tmp_path / "out")).count() == height
    with pytest.raises(DlogError) as caught:
        written(spark, f"{target}, mode=errorifexists", tmp_path)
    shown = render(caught.value.diagnostics[0])
    assert "already exists" in shown
    assert ".output path(IO=spark" in shown
    assert "org.apache" not in shown


# ---------------------------------------------------------------------------------------------------------------- mistakes


@ON_SPARK
@pytest.mark.parametrize("mode", ["append", "overwrite, partitionOverwriteMode=dynamic, partitionBy=x"], ids=["more", "other"])
@pytest.mark.parametrize("link", ["_SUCCESS", "._SUCCESS.crc", "_temporary/0", "x=1", ""], ids=str)
def test_rows_are_not_added_to_where_links_lead(spark: SparkSession, tmp_path: Path, link: str, mode: str) -> None:
    """A folder can be an archive's."""
    target, place = tmp_path / "out", tmp_path / "out" / link
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "letter").write_text("dear")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(tmp_path / "own" / ("letter" if "SUCCESS" in link else ""))
    with pytest.raises(DlogError, match="is a link, and what Spark writes would go where it leads"):
        written(spark, f'path="{target}", format=csv, mode={mode}', tmp_path)
    assert [(p.name, p.read_text()) for p in (tmp_path / "own").iterdir()] == [("letter", "dear")]


@ON_SPARK
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('format=jdbc, url="jdbc:derby:made;create=true", dbtable=edge', "functions of its own"),
        ('format=JDBC, URL="jdbc:derby:memory:made;create=true", dbtable=edge', "functions of its own"),
        ('format=statestore, path="state"', "which files are written"),
    ],
)
def test_sources_that_bring_code_of_their_own_are_not_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DlogError, match=said):
        closed(source)
    if "jdbc" in source.lower():
        with pytest.raises(DlogError, match=said):
            written(spark, f"{source}, path=nowhere", tmp_path)
    assert list(tmp_path.iterdir()) == []


@ON_SPARK
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("table=rods", ["`rods` cannot be found", "did you mean `roads`?"]),
        ('table="nowhere.roads"', ["cannot be found"]),
        ('path="{folder}/missing"', ["Path does not exist: file:{folder}/missing"]),
        ('path="{folder}/broken", format=parquet', ["{folder}/broken"]),
        ('path="{folder}", format=parket', ["parket"]),
        ('query="select x, from roads"', ["Trailing comma detected in SELECT clause"]),
        ('query="select x, w from roads"', ["`w` cannot be resolved"]),
        ('table=roads, columns="x:why"', ["there is no column `why`"]),
        ('table=roads, columns="x"', ["does not name one column per attribute of `edge` (2)"]),
        ("query=\"select x, kind as y from roads\"", ["column y is string, but y is number", "cast it"]),
        ("query=\"select x, 1.5 as y from roads\"", ["column y is decimal(2,1), but y is number"]),
        ("query=\"select x from roads\"", ["the columns do not fit", "has 1 columns: x"]),
        ("query=\"select x, nullif(y, 2) as y from roads\"", ["input of edge, y: the column has nulls"]),
        ("query=\"select x, x div (x - x) as y from roads\"", ["Division by zero"]),
        ('path="{folder}/words.csv", format=csv', ["three"]),
        ("table=roads, query=\"select 1, 2\"", ["name one"]),
        ("IO=spark", ["name one"]),
    ],
)  # fmt: skip
def test_mistakes_in_inputs_are_shown_at_the_directive(edges: DataFrame, tmp_path: Path, source: str, said: list[str]) -> None:
    edges.createOrReplaceTempView("roads")
    (tmp_path / "broken").write_text("this is no Parquet file")
    (tmp_path / "words.csv").write_text("1,2\n2,three\n")
    with pytest.raises(DlogError) as caught:
        closed(source.replace("{folder}", str(tmp_path)))
    [mistake] = caught.value.diagnostics
    shown = render(mistake)
    for words in said:
        assert words.replace("{folder}", str(tmp_path)) in shown
    assert "3 | .input edge(IO=spark" in shown
    assert "^^^" in shown
    assert "org.apache" not in shown and "\tat " not in shown
    assert len(shown) < 1000


@ON_SPARK
def test_a_file_that_breaks_while_it_is_read_is_told_at_its_input(edges: DataFrame, tmp_path: Path) -> None:
    """One of two sources: its footer is whole, its data are not."""
    edges.createOrReplaceTempView("roads")
    edges.coalesce(1).write.parquet(str(tmp_path / "edges"))
    [file] = (tmp_path / "edges").glob("*.parquet")
    content = bytearray(file.read_bytes())
    content[4:300] = bytes(296)
    file.write_bytes(content)
    for checksum in (tmp_path / "edges").glob(".*.crc"):
        checksum.unlink()
    text = RULES.format(source="IO=spark, table=roads", target="")
    text += f'.decl more(x: number, y: number)\n.input more(IO=spark, path="{tmp_path}/edges")\nedge(x, y) :- more(x, y).\n'
    with pytest.raises(DlogError) as caught:
        dlog.run(text, engine="spark")
    [mistake] = caught.value.diagnostics
    shown = render(mistake)
    assert ".input more(IO=spark" in shown
    assert file.name in shown
    assert caught.value.__cause__ is not None


@ON_SPARK
def test_debug_shows_what_spark_said(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from dlog.__main__ import run_command

    (tmp_path / "p.dl").write_text(RULES.format(source="IO=spark, table=absent", target=""))
    words = ["run", str(tmp_path / "p.dl"), "-F", str(tmp_path), "-D", str(tmp_path), "--engine", "spark"]
    assert run_command(words) == 1
    plain = capsys.readouterr().err
    assert plain.startswith("error: The table or view `absent` cannot be found\n")
    assert run_command([*words, "--debug"]) == 1
    debugged = capsys.readouterr().err
    assert debugged.endswith(plain)
    assert "Traceback" in debugged and "AnalysisException" in debugged


@ON_SPARK
def test_all_inputs_that_cannot_be_read_are_told_together(spark: SparkSession) -> None:
    text = RULES.format(source="IO=spark, table=absent1", target="") + ".input path(IO=spark, table=absent2)\n"
    with pytest.raises(DlogError) as caught:
        dlog.run(text, engine="spark")
    assert [d.code for d in caught.value.diagnostics] == ["unreadable-source"] * 2


@ON_SPARK
@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("view=v, mode=overwrit", ["mode='overwrit' is not one of", "did you mean `overwrite`?"]),
        ("mode=append", ["name one"]),
        ('path="{folder}/x", format=parket', ["parket"]),
        ('path="{folder}/x", partitionBy=z', ["z"]),
        ('table="nowhere.t"', ["nowhere"]),
    ],
)
def test_mistakes_in_outputs_are_shown_at_the_directive(
    spark: SparkSession, tmp_path: Path, target: str, said: list[str]
) -> None:
    with pytest.raises(DlogError) as caught:
        written(spark, target.replace("{folder}", str(tmp_path)), tmp_path)
    shown = render(caught.value.diagnostics[0])
    assert all(words in shown for words in said)
    assert "4 | .output path(IO=spark" in shown
    assert "org.apache" not in shown


@pytest.mark.slow
def test_the_embedded_engine_names_the_one_that_reads_from_spark(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(RULES.format(source="IO=spark, table=roads", target=""))
    finished = command("run", "p.dl", cwd=tmp_path)
    assert finished.code == 1
    assert "error: IO=spark needs the Spark engine" in finished.err
    assert "3 | .input edge(IO=spark, table=roads)" in finished.err
    assert "--engine spark" in finished.err
