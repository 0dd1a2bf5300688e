"""Engines that go on from what others kept, at any moment, as if nothing had been between."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.ir.rules import Program
from dlog.engine.kernels import layout as L
from dlog.engine.rounds_engine import Image, IncompatibleImage, RoundsEngine, StartingPoint
from dlog.engine.runtime.incremental import image
from dlog.engine.runtime.incremental.engines.choice import EmbeddedMaker, make_engine
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.runtime.incremental.engines.recompute import Recompute
from dlog.engine.state.images import map_image, write_image
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import DlogError
from dlog.pipeline import compile_program
from tests.examples import examples
from tests.rounds import Driver, Story, check, stories
from tests.strategies import counting_programs, graph_programs, random_programs

COUNTS = """.decl e(x: number, y: number)
.decl n(x: number, c: number)
n(x, c) :- e(x, _), c = count : { e(x, _) }.
"""
CLOSURE = """.decl e(x: number, y: number)
.decl p(x: number, y: number)
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), e(y, z).
"""
MANY = f"""{CLOSURE}.decl n(x: number, c: number)
.decl far(x: number, y: symbol)
.decl d(x: number, b: number)
.decl low(x: number, y: number)
n(x, c) :- p(x, _), c = count : {{ p(x, _) }}.
far(x, cat("to ", to_string(y))) :- p(x, y), !e(x, y).
d(x, b) :- e(x, _), b = min c : {{ e(x, c) ; d(y, v), e(x, y), c = v + 1 }}.
low(x, y) :- e(x, _), y = min z : {{ p(x, z) }}.
"""
TRIANGLES = """.decl e(x: number, y: number)
.decl t(x: number, y: number, z: number)
t(x, y, z) :- e(x, y), e(y, z), e(z, x).
"""


def through_a_file(taken: Image) -> Image:
    with tempfile.TemporaryDirectory() as folder:
        written = write_image(Path(folder), "1.image", taken.round, "", (taken.head, taken.arrays), {})
        found = map_image(Path(folder), written)
    assert found is not None
    return Image(taken.round, *found)


def resumed(engine: RoundsEngine, taken: Image, round: int, **options: Any) -> RoundsEngine:
    old = StartingPoint(engine.symbols, engine.records, round)
    limits = {"memory": None, "max_iterations": None, **options}
    return EmbeddedMaker(1).resumed(engine.program, taken, old=old, **limits)


class Resuming:
    """An engine in whose place another one comes before some commits, with nothing but an image."""

    def __init__(self, program: Program, every: int = 1, **options: Any) -> None:
        self.engine = make_engine(program, **options)
        self.every, self.commits = every, 0

    def commit(self, inputs: Mapping[str, Updates]) -> int:
        taken = self.engine.image() if self.commits % self.every == 0 else None
        self.commits += 1
        if taken is not None:
            old, self.engine = self.engine, resumed(self.engine, through_a_file(taken), self.engine.round)
            old.close()
        return self.engine.commit(inputs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)


@examples(60)
@given(story=stories(st.one_of(random_programs(), counting_programs())), every=st.sampled_from([1, 1, 2, 3]))
def test_random_programs_go_on_from_images(story: Story, every: int) -> None:
    check(Resuming, story, every=every)


@examples(60)
@given(story=stories(graph_programs(), most=10), every=st.sampled_from([1, 2]))
def test_programs_on_graphs_go_on_from_images(story: Story, every: int) -> None:
    check(Resuming, story, every=every)


@pytest.mark.exhaustive
@examples(1500)
@given(story=stories(most=12), every=st.sampled_from([1, 1, 2, 3]))
def test_thousands_of_programs_go_on_from_images(story: Story, every: int) -> None:
    check(Resuming, story, every=every)


def graph(seed: int, edges: int, nodes: int) -> list[tuple[str, tuple[int, int], int]]:
    rng = np.random.default_rng(seed)
    return [("e", (int(x), int(y)), 1) for x, y in rng.integers(0, nodes, (edges, 2))]


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [60, 10**9])
def test_large_relations_go_on_with_their_indexes_and_removed_rows(nodes: int) -> None:
    first = graph(1, 9000 if nodes > 60 else 150, nodes)
    driver, other = Driver(make_engine, MANY), Driver(make_engine, MANY)
    for both in (driver, other):
        both.commit([first])
        both.commit([[("e", row, -1) for _, row, _ in first[::3]]])
    driver.engine = resumed(driver.engine, through_a_file(driver.engine.image()), 2)  # type: ignore[arg-type]
    for round in ([("e", row, 1) for _, row, _ in first[::6]], graph(2, 30, nodes), [("e", row, -1) for _, row, _ in first]):
        driver.commit([round])
        other.commit([round])
        for name in driver.program.relations:
            assert driver.rows(name) == other.rows(name), name
            assert driver.changes(name) == other.changes(name), name


def test_inputs_of_pairs_go_on() -> None:
    first = graph(8, 3000, 400)
    driver, other = Driver(make_engine, COUNTS), Driver(make_engine, COUNTS)
    for both in (driver, other):
        both.commit([first])
    assert driver.engine._flow.collections["e"].struct[L.collection.pairs]  # type: ignore[attr-defined]
    driver.engine = resumed(driver.engine, through_a_file(driver.engine.image()), 1)  # type: ignore[arg-type]
    assert driver.engine._flow.collections["e"].struct[L.collection.pairs]  # type: ignore[attr-defined]
    for round in (graph(9, 20, 400), [("e", row, -1) for _, row, _ in first[::5]], [("e", (10**12, 3), 1), ("e", (3, 7), 1)]):
        driver.commit([round])
        other.commit([round])
        for name in driver.program.relations:
            assert driver.rows(name) == other.rows(name), name
            assert driver.changes(name) == other.changes(name), name


def test_indexes_that_hold_values_go_on() -> None:
    first = graph(6, 4000, 400)
    driver, other = Driver(make_engine, TRIANGLES), Driver(make_engine, TRIANGLES)
    for both in (driver, other):
        both.commit([first])
    indexes = driver.engine._flow.collections["e"].indexes.values()  # type: ignore[attr-defined]
    assert any(index.struct[L.index.values] for index in indexes)
    driver.engine = resumed(driver.engine, through_a_file(driver.engine.image()), 1)  # type: ignore[arg-type]
    for round in (graph(7, 20, 400), [("e", row, -1) for _, row, _ in first[::5]], [("e", (10**9, 3), 1), ("e", (3, 7), 1)]):
        driver.commit([round])
        other.commit([round])
        assert driver.rows("t") == other.rows("t") and driver.changes("t") == other.changes("t")


def test_an_image_has_little_more_than_the_engine_keeps() -> None:
    driver = Driver(make_engine, CLOSURE)
    driver.commit([graph(3, 300, 150)])
    taken = driver.engine.image()
    assert taken is not None and 0 < taken.bytes <= driver.engine.memory.used  # type: ignore[attr-defined]
    assert driver.engine.image_bytes() == taken.bytes
    assert driver.engine.rows("p") > 10_000


def test_there_is_no_image_of_nothing_and_of_what_is_computed_anew() -> None:
    assert make_engine(compile_program(CLOSURE)).image() is None is make_engine(compile_program(CLOSURE)).image_bytes()
    driver = Driver(Recompute, CLOSURE)
    driver.commit([graph(4, 20, 10)])
    assert driver.engine.image() is None is driver.engine.image_bytes()


@pytest.mark.parametrize(
    "program",
    [
        CLOSURE.replace("p(x, y), e(y, z)", "e(x, y), p(y, z)"),
        CLOSURE.replace("number", "symbol"),
        CLOSURE + ".decl q(x: number)\nq(x) :- p(x, _).\n",
        CLOSURE.replace("p(x, z) :- p(x, y), e(y, z).\n", ""),
    ],
)
def test_an_image_of_another_program_is_refused(program: str) -> None:
    driver = Driver(make_engine, CLOSURE)
    driver.commit([graph(4, 20, 10)])
    taken = driver.engine.image()
    assert taken is not None
    old = StartingPoint(driver.engine.symbols, driver.engine.records, 1)
    with pytest.raises(IncompatibleImage):
        EmbeddedMaker(1).resumed(compile_program(program), taken, old=old, memory=None, max_iterations=None)


def test_an_image_fits_a_program_that_has_views_besides() -> None:
    driver = Driver(make_engine, CLOSURE)
    driver.commit([graph(4, 20, 10)])
    taken = driver.engine.image()
    assert taken is not None
    old = StartingPoint(driver.engine.symbols, driver.engine.records, 1)
    program = CLOSURE + ".decl q(x: number)\nq(x) :- p(x, x).\n"
    made = EmbeddedMaker(1).resumed(compile_program(program), taken, old=old, memory=None, max_iterations=None)
    assert set(made.table("q").columns[0].tolist()) == {x for x, y in driver.rows("p") if x == y} != set()


def test_an_image_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(make_engine, CLOSURE)
    driver.commit([graph(4, 20, 10)])
    taken = driver.engine.image()
    assert taken is not None
    monkeypatch.setattr(image, "version", lambda: "another")
    with pytest.raises(IncompatibleImage, match="version"):
        resumed(driver.engine, taken, 1)


def test_an_image_that_is_larger_than_the_memory_is_a_mistake_of_the_users() -> None:
    driver = Driver(make_engine, CLOSURE)
    driver.commit([graph(5, 300, 150)])
    taken = driver.engine.image()
    assert taken is not None
    with pytest.raises(DlogError) as raised:
        resumed(driver.engine, taken, 1, memory=taken.bytes // 2)
    assert raised.value.diagnostics[0].code == "out-of-memory"


@pytest.mark.parametrize("place", [3, 20, 200, -1])
def test_a_damaged_image_is_of_no_use(tmp_path: Path, place: int) -> None:
    written = write_image(tmp_path, "1.image", 1, "", ({"some": "text" * 50}, [[np.arange(100, dtype=np.uint8)]]), {})
    assert map_image(tmp_path, written) is not None
    path = tmp_path / "1.image"
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)
    assert map_image(tmp_path, written) is None
    path.write_bytes(content[:-8])
    assert map_image(tmp_path, written) is None
    path.unlink()
    assert map_image(tmp_path, written) is None


@examples(50)
@given(
    tables=st.lists(
        st.tuples(st.integers(1, 20), st.integers(1, 4), st.sampled_from([0, 1, 127, 128, 2**15 - 1, 2**15, 2**31 - 1]))
    ),
    seed=st.integers(0, 99),
)
def test_columns_come_back_from_files_whatever_their_width(tables: list[tuple[int, int, int]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole = [rng.integers(0, 255, (9, 1), np.uint8, True)]
    whole += [rng.integers(-most - 1 if c % 2 else 0, most, (rows, c), np.int32, True) for rows, c, most in tables]
    found = through_a_file(Image(1, {"a": 1}, [table.T for table in whole]).copied())
    assert found.head == {"a": 1}
    for table, columns in zip(whole, found.arrays, strict=True):
        again = np.empty_like(table)
        for number, column in enumerate(columns):
            again[:, number] = column
        assert np.array_equal(again, table)


def test_plans_that_were_looked_at_again_and_stayed_are_found_again() -> None:
    text = """.decl e(x: number, y: number, weight: number)
.decl p(x: number, y: number)
p(x, y) :- e(x, y, _).
p(x, z) :- p(x, y), e(y, z, _).
"""
    old = Maintained(compile_program(text))
    plans, figures = [], []
    for low, high in ((0, 90), (90, 2000), (2000, 2001)):
        x = np.arange(low, high)
        old.commit({"e": Updates((x, x + 1 - x % 3, x), np.ones_like(x), np.full_like(x, old.round + 1))})
        old._watched.soon()
        assert old._flow is not None
        plans.append({**old._flow.scopes})
        figures.append({**old._flow.recorded_statistics})
    assert plans[0] == plans[2] and figures[0] != figures[2]
    taken = old.image()
    assert taken is not None
    new = resumed(old, through_a_file(taken), old.round)
    assert {*zip(*(c.tolist() for c in new.table("p").columns), strict=True)} == {
        *zip(*(c.tolist() for c in old.table("p").columns), strict=True)
    }
    for engine in (old, new):
        engine.close()
