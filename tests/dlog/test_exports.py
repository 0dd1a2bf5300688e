"""Everything with rows that the API hands out becomes a table of any library, and shows its first rows."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import dlog
from dlog.codec import Codec
from dlog.tabular import Tabular
from tests.dlog.command import ROOT
from tests.dlog.command import dlog as command

PROGRAM = """.decl edge(x: symbol, y: number)
.decl path(x: symbol, y: number)
path(x, y) :- edge(x, y).
"""
EDGES = [("a", 1), ("b", 2)]


def of_run() -> Tabular:
    return dlog.run(PROGRAM, {"edge": EDGES})["path"]  # type: ignore[return-value]


def session() -> dlog.Session:
    s = dlog.session(PROGRAM)
    s.insert("edge", EDGES)
    s.commit()
    return s


def graph() -> dlog.Graph:
    return dlog.graph([("a", "b"), ("b", "c")])


EVERY: dict[str, tuple[Callable[[], Tabular], list[tuple[Any, ...]]]] = {
    "run": (of_run, EDGES),
    "head": (lambda: dlog.run(PROGRAM, {"edge": EDGES[:1]})["path"].head(), EDGES[:1]),
    "session": (lambda: session()["path"], EDGES),
    "past": (lambda: session().at()["path"], EDGES),
    "answers": (lambda: session().query("?- path(X, Y), Y > 1."), [("b", 2)]),
    "changes": (lambda: session().changes("path"), [("a", 1, 1, 1), ("b", 2, 1, 1)]),
    "graph": (lambda: graph().bfs("a"), [("a", 0), ("b", 1), ("c", 2)]),
    "motifs": (lambda: graph().find("(x)-[]->(y)"), [({"id": "a"}, {"id": "b"}), ({"id": "b"}, {"id": "c"})]),
    "live": (lambda: graph().live().bfs("a"), [("a", 0), ("b", 1), ("c", 2)]),
}


@pytest.mark.parametrize("name", EVERY)
def test_any_library_takes_it(name: str) -> None:
    make, expected = EVERY[name]
    it = make()
    ordered = sorted(expected, key=str)
    assert sorted(map(tuple, pl.DataFrame(it).rows()), key=str) == ordered
    assert sorted((tuple(row.values()) for row in pa.table(it).to_pylist()), key=str) == ordered
    assert sorted(duckdb.sql("from it").fetchall(), key=str) == ordered
    assert it.to_arrow().equals(pa.table(it))
    assert it.to_polars().equals(pl.DataFrame(it))
    assert list(it.to_pandas().columns) == it.to_arrow().column_names == list(it.to_numpy())
    assert len(it) == len(expected)


@pytest.mark.parametrize("name", EVERY)
def test_it_shows_its_first_rows(name: str) -> None:
    make, expected = EVERY[name]
    it = make()
    title, names, line, *rows = repr(it).splitlines()
    assert title.startswith("<dlog.") and title.endswith(">")
    assert names.split() == it.to_arrow().column_names and set(line) == {"-", " "}
    assert len(rows) == len(expected)
    assert it._repr_html_().count("<tr>") == len(expected) + 1


def test_what_is_shown_of_a_relation() -> None:
    rows = [("<b>", 1), ("two\nlines", 22), ("a" * 70, 333)]
    shown = dlog.run(PROGRAM, {"edge": rows})["edge"]
    assert repr(shown) == (
        "<dlog.Relation edge(x, y), 3 rows>\n"
        f"x{' ' * 59}    y\n"
        f"{'-' * 60}  ---\n"
        f"<b>{' ' * 57}    1\n"
        f"two\\nlines{' ' * 50}   22\n"
        f"{'a' * 57}...  333"
    )
    html = shown._repr_html_()
    assert "<td>&lt;b&gt;</td><td>1</td>" in html and "<b>" not in html
    assert html.startswith("<p>dlog.Relation edge(x, y), 3 rows</p><table")


def test_no_more_than_the_first_rows_is_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    real = Codec.to_arrow

    def counted(self: Codec, type: Any, column: Any) -> Any:
        lengths.append(len(column))
        return real(self, type, column)

    monkeypatch.setattr(Codec, "to_arrow", counted)
    numbers = {"x": [str(i) for i in range(5000)], "y": np.arange(5000)}
    result = dlog.run(PROGRAM, {"edge": numbers})
    assert repr(result["path"]).splitlines()[-1] == "... 4,990 more"
    assert "5,000 rows" in repr(result["path"])
    s = dlog.session(PROGRAM, {"edge": numbers})
    for it in (result, s["path"], s.changes("path"), s.query("?- path(X, Y)."), s):
        assert "... 4,9" in repr(it) or "5000" in repr(it)
    assert lengths and max(lengths) == 10


def test_rows_without_columns_and_no_rows_have_a_title_alone() -> None:
    result = dlog.run(".decl yes()\nyes().\n.decl no(x: number)\n")
    assert repr(result["yes"]) == "<dlog.Relation yes(), 1 row>"
    assert repr(result["no"]) == "<dlog.Relation no(x), 0 rows>"
    assert result["no"]._repr_html_() == "<p>dlog.Relation no(x), 0 rows</p>"


@pytest.mark.slow
def test_deep_records_and_many_columns_are_cut() -> None:
    deep = ".type L = [head: number, tail: L]\n.decl l(n: number, at: L)\nl(0, nil).\nl(n + 1, [n, r]) :- l(n, r), n < 5000.\n"
    shown = repr(dlog.run(deep + ".decl last(at: L)\nlast(r) :- l(5000, r).\n")["last"])
    assert shown.splitlines()[-1] == "[4999, [4998, [4997, [4996, [4995, [4994, [4993, [4992, [..."
    wide = ".decl w(" + ", ".join(f"c{i}: number" for i in range(30)) + ")\nw(" + ", ".join(map(str, range(30))) + ").\n"
    names, _, row = repr(dlog.run(wide)["w"]).splitlines()[1:]
    assert names.split() == [*(f"c{i}" for i in range(20)), "..."]
    assert row.split() == [*map(str, range(20)), "..."]


def test_results_and_sessions_list_their_relations() -> None:
    assert repr(dlog.run(PROGRAM, {"edge": EDGES})) == (
        "<dlog.Result, 2 relations>\n"
        "relation    rows  first rows\n"
        "----------  ----  --------------\n"
        "edge(x, y)     2  (a, 1), (b, 2)\n"
        "path(x, y)     2  (a, 1), (b, 2)"
    )
    s = session()
    assert repr(s).splitlines()[0] == "<dlog.Session at round 1, 2 relations>"
    assert repr(s).splitlines()[-1] == "path(x, y)     2"
    view = s.at()
    assert repr(view) == "<dlog.View of round 1, 2 relations>\nrelation\n----------\nedge(x, y)\npath(x, y)"
    view.close()
    s.close()
    assert (repr(view), repr(s)) == ("<dlog.View of round 1, closed>", "<dlog.Session, closed>")


def test_changes_say_what_came_and_went() -> None:
    s = session()
    s.remove("edge", ("a", 1))
    assert repr(s.commit().changes("path")) == (
        "<dlog.Changes of path(x, y): +0 -1>\nx  y  diff  round\n-  -  ----  -----\na  1    -1      2"
    )


def test_proofs_are_drawn_as_far_as_a_screen_goes() -> None:
    s = dlog.session(
        ".decl edge(x: number, y: number)\n.decl path(x: number, y: number)\npath(x, y) :- edge(x, y).\n"
        "path(x, z) :- path(x, y), edge(y, z).\n",
        {"edge": [(i, i + 1) for i in range(100)]},
    )
    assert repr(s.why("path", (0, 2))) == s.why("path", (0, 2)).text()
    long = s.why("path", (0, 100))
    assert repr(long).splitlines() == [*long.text().splitlines()[:20], "..."]
    assert long._repr_html_().startswith("<pre>path(0, 100)  by path(x, z) :- path(x, y), edge(y, z).\n|--")
    assert repr(s.why_not("path", (5, 1))) == str(s.why_not("path", (5, 1)))


def test_relations_that_are_not_there_are_key_errors_with_a_suggestion() -> None:
    result, s = dlog.run(PROGRAM, {"edge": EDGES}), session()
    for it in (result, s, s.at()):
        with pytest.raises(KeyError) as caught:
            it["pth"]
        assert isinstance(caught.value, dlog.DlogError)
        assert str(caught.value) == "error: unknown relation `pth`\n  = did you mean `path`?"
        assert "pth" not in it and "path" in it
    assert result.get("pth") is None
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.slow
def test_the_text_of_an_error_is_what_the_command_line_prints(tmp_path: Path) -> None:
    (tmp_path / "wrong.dl").write_text(PROGRAM + ".output path\npath(x, 1 / (y - 1)) :- edge(x, y).\nedge(\"a\", 1).\n")
    with pytest.raises(dlog.DlogError) as caught:
        dlog.run(tmp_path / "wrong.dl")
    printed = command("run", str(tmp_path / "wrong.dl"), cwd=tmp_path).err
    assert str(caught.value) + "\n" == printed
    assert str(caught.value).splitlines()[:2] == ["error: division by zero", f" --> {tmp_path}/wrong.dl:5:1"]
    (tmp_path / "edge.facts").write_text("a\t1\nb\tx\n")
    with pytest.raises(dlog.DlogError, match=r"edge\.facts:2:3"):
        dlog.run(PROGRAM + ".input edge\n", tmp_path)


def test_a_relation_goes_into_another_run_by_the_names_of_its_columns() -> None:
    made = dlog.run(".decl turned(y: number, x: symbol)\nturned(1, \"a\").\n")["turned"]
    assert set(dlog.run(PROGRAM, {"edge": made})["path"]) == {("a", 1)}
    s = dlog.session(PROGRAM, {"edge": made})
    s.insert("edge", dlog.run(".decl other(a: symbol, b: number)\nother(\"b\", 2).\n")["other"])
    s.commit()
    assert set(s["path"]) == {("a", 1), ("b", 2)}
    records = ".type R = [n: number, r: R]\n.decl l(a: number, b: R)\n"
    lists = dlog.run(".type R = [n: number, r: R]\n.decl m(b: R, a: number)\nm([1, [2, nil]], 3).\nm(nil, 4).\n")["m"]
    assert set(dlog.run(records, {"l": lists})["l"]) == {(3, (1, (2, None))), (4, None)}


@pytest.mark.parametrize("library", ["polars", "pyarrow", "duckdb"])
def test_names_that_contradict_the_order_are_a_mistake(library: str) -> None:
    table = pa.table({"y": [1], "node": ["a"]})
    rows = {"polars": pl.DataFrame, "pyarrow": pa.table, "duckdb": duckdb.from_arrow}[library](table)
    for give in (lambda: dlog.run(PROGRAM, {"edge": rows}), lambda: session().insert("edge", rows)):
        with pytest.raises(dlog.DlogError) as caught:
            give()
        assert str(caught.value) == (
            "error: rows of `edge`: a column is called `y`, but is not in its place, and others are called like no attribute\n"
            "  = no column is called `x`\n  = the columns are y, node"
        )
    wide = pa.table({"y": [1], "note": [None], "x": ["a"]})
    assert list(dlog.run(PROGRAM, {"edge": wide})["path"]) == [("a", 1)]


def test_a_relation_has_the_edges_of_a_graph() -> None:
    edges = ".decl edge(x: symbol, y: symbol)\nedge(\"a\", \"b\"). edge(\"b\", \"c\").\n"
    weighted = ".decl road(dst: number, src: number, far: number)\nroad(1, 2, 9).\n"
    assert sorted(dlog.graph(dlog.run(edges)["edge"]).bfs("a")) == [("a", 0), ("b", 1), ("c", 2)]
    graph = dlog.graph(dlog.run(weighted)["road"])
    assert list(graph.bfs(2)) == [(1, 1), (2, 0)]
    assert graph.edges.column_names == ["src", "dst", "far"]


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "dlog" / "py.typed").is_file()
