"""What rules cannot say is refused, with the operator's name; beside each is what is close to it and can be said."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import dlog
from dlog.dataflow import Collection, Dataflow, Variable, col, lit, moving
from dlog.grammar.diagnostics import DlogError
from tests.dlog.dataflow.algorithms import component_edges, generations, page_ranks, truss

Build = Callable[[Collection, Collection], Collection]


def edges_of(*names: str) -> list[Collection]:
    flow = Dataflow()
    return [flow.input(name, a=int, b=int) for name in names]


def refusal(made: Build) -> str:
    with pytest.raises(DlogError) as error:
        dlog.rules(made=made(*edges_of("one", "two")))
    assert error.value.diagnostics[0].code == "not-as-rules"
    assert error.value.diagnostics[0].notes
    return error.value.diagnostics[0].message


def loop(step: Callable[[Collection, Collection], Collection]) -> Build:
    """A loop over the first input, whose body gets the second one, too."""
    return lambda one, two: one.iterate(lambda inner: step(inner, two.enter(inner.scope)))


def moved(inner: Collection, edges: Collection) -> Collection:
    return inner.join_map(edges, on={"b": "a"}, a="a", b="b_right")


OPERATORS: dict[str, Build] = {
    "flat_map": lambda one, two: one.flat_map(lambda a, b: [(a,)], a=int),
    "map_batches": lambda one, two: one.map_batches(lambda columns: {"a": columns["a"]}, a=int),
    "join_function": lambda one, two: one.join_function(lambda a, b: [((a,), 0, 1)], a=int),
    "temporal": lambda one, two: one.temporal("a", "b"),
    "tumbling_window": lambda one, two: one.map(a=col("a") / 2).tumbling_window("a", 10),
    "session_window": lambda one, two: one.session_window("a", 10, by="b"),
    "moving": lambda one, two: one.moving("a", by="b", rows=3, total=moving.sum("a")),
    "scan": lambda one, two: one.scan("a", lambda level, a: level + a, "a", by="b", level=0),
    "watermark": lambda one, two: one.watermark("a", lateness=5).late,
    "delay": lambda one, two: one.delay(lambda time: time + 1),
    "asof_join": lambda one, two: one.asof_join(two, on="a"),
    "differentiate": lambda one, two: one.differentiate(one.scope.altneu()).integrate(),
    "propose": lambda one, two: one.propose().half_join(two, "a", ties=True).collect().map("a"),
    "top_k": lambda one, two: one.map("a", text=lit("x")).top_k(2, "a"),
    "reduce": lambda one, two: one.reduce("a", lambda key, rows: [((1,), 1)], n=int),
    "threshold": lambda one, two: one.threshold(lambda counts: counts > 1),
    "sum": lambda one, two: one.map("a", x=col("b") / 2).sum(by="a", x="x"),
    "lit": lambda one, two: one.map(a=lit((1, 2))),
    "import_": lambda one, two: Dataflow(beside=_flow(one)).import_(one.arrange_by_key("a")).collection,
}


def _flow(collection: Collection) -> Dataflow:
    """A dataflow that stands for that of a collection."""
    flow = Dataflow()
    flow._graph = collection.graph
    return flow


@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_that_rules_cannot_say_are_refused_by_name(operator: str) -> None:
    assert refusal(OPERATORS[operator]).startswith(f"`{operator}`")


def test_the_notes_say_what_can_be_done_instead() -> None:
    one, two = edges_of("one", "two")
    with pytest.raises(DlogError, match="write an expression over `count`"):
        dlog.rules(made=one.threshold(lambda counts: counts > 1))
    assert "m > 1" in dlog.rules(made=one.threshold(col("count") > 1)).text
    with pytest.raises(DlogError, match="in whole numbers, such as cents"):
        dlog.rules(made=one.map("a", x=col("b") / 2).sum(by="a", x="x"))
    assert "sum" in dlog.rules(made=one.sum(by="a", x="b")).text
    with pytest.raises(DlogError, match="write a `join`"):
        dlog.rules(made=one.propose().half_join(two, "a", ties=True).collect())
    assert dlog.rules(made=one.join(two, "a")).text


LOOPS: dict[str, tuple[Build, str]] = {
    "forgets its start": (loop(lambda inner, edges: moved(inner, edges).distinct()), "lose what it starts from"),
    "no distinct": (loop(lambda inner, edges: inner.filter(col("a") > 1)), "ends in `filter`"),
    "counts": (loop(lambda inner, edges: inner.concat(inner.count(by="a").map("a", b="count")).distinct()), "`count`"),
    "takes away": (loop(lambda inner, edges: inner.concat(moved(inner, edges).negate()).distinct()), "take away"),
    "lacks its own": (
        loop(lambda inner, edges: inner.concat(edges.antijoin(inner.map("a").distinct(), on="a")).distinct()),
        "`antijoin`",
    ),
    "multiplies": (
        loop(lambda inner, edges: inner.concat(edges.repeat_row(col("a"))).concat(moved(inner, edges)).distinct()),
        "take away",
    ),
    "squares its best": (
        loop(lambda inner, edges: inner.map("a", b=col("b") * col("b")).concat(inner).min("b", by="a")),
        "something added to it",
    ),
    "compares its best": (
        loop(lambda inner, edges: inner.filter(col("b") > 3).concat(inner).min("b", by="a")),
        "something added",
    ),
    "finds by its best": (loop(lambda inner, edges: moved(inner, edges).concat(inner).min("b", by="a")), "something added"),
    "takes its best away": (
        loop(lambda inner, edges: inner.map("a", b=1 - col("b")).concat(inner).max("b", by="a")),
        "something added",
    ),
    "collects its best": (
        loop(lambda inner, edges: inner.concat(inner.min("b", by="a")).concat(inner).min("b", by="a")),
        "`min`",
    ),
    "components": (lambda one, two: component_edges(one.rename(src="a", dst="b")), "`iterate`"),
    "truss": (lambda one, two: truss(one, 4), "`iterate`"),
    "life": (lambda one, two: generations(one.map(generation=0, x="a", y="b"), 3), "`count`"),
    "ranks": (lambda one, two: page_ranks(one.rename(src="a", dst="b"), 10), "`iterate`"),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_that_are_no_recursion_are_refused(name: str) -> None:
    build, message = LOOPS[name]
    assert message in refusal(build)


def test_loops_that_are_recursion_are_not() -> None:
    for step in (
        lambda inner, edges: moved(inner, edges).concat(inner).distinct(),
        lambda inner, edges: inner.concat(edges.antijoin(edges.map("b").distinct(), on={"a": "b"})).distinct(),
        lambda inner, edges: inner.map("a", b=col("b") + col("a") - 3).filter(col("a") > 3).concat(inner).min("b", by="a"),
        lambda inner, edges: inner.join_map(edges, a="b_right", b=col("b") + 1, on="a").concat(inner).max("b", by="a"),
    ):
        assert "made(" in dlog.rules(made=loop(step)(*edges_of("one", "two"))).text


def test_a_variable_without_a_start_is_what_its_definition_comes_to() -> None:
    (edges,) = edges_of("one")
    inner = edges.scope.loop()
    variable = Variable(inner, a=int, b=int)
    entered = edges.enter(inner)
    closed = variable.set(moved(variable, entered).concat(entered).distinct()).leave()
    rules, every = dlog.rules(closed=closed), {(a, b): 1 for a in (1, 2, 3) for b in (1, 2, 3)}
    assert rules.counts(rules.run({"one": [(1, 2), (2, 3), (3, 1)]}), "closed") == every


def test_long_chains_are_no_deep_recursion() -> None:
    one, two = edges_of("one", "two")
    for k in range(1500):
        one = one.filter(col("a") > k % 7).rename(a="a")
    assert "one(a, b, m)" in dlog.rules(made=one.concat(two)).text
    for _ in range(1500):
        one = one.map("b", a=col("a") + 1)
    with pytest.raises(DlogError, match="nested too deep"):
        dlog.rules(made=one)


def code(run: Callable[[], object]) -> str:
    with pytest.raises(DlogError) as error:
        run()
    return error.value.diagnostics[0].code


def test_names_are_those_of_relations() -> None:
    flow = Dataflow()
    one, other, nameless = flow.input("one", a=int), flow.input("one", a=int), flow.input(a=int)
    assert code(lambda: dlog.rules(nameless=nameless.distinct())) == "unnamed-input"
    assert code(lambda: dlog.rules(both=one.concat(other))) == "bad-argument"
    assert code(lambda: dlog.rules(one=one.distinct())) == "bad-argument"
    assert code(lambda: dlog.rules(count=one.distinct())) == "bad-argument"
    assert code(lambda: dlog.rules(found=one.distinct(), sets=["two"])) == "bad-argument"
    assert code(lambda: dlog.rules(found=one.distinct(), sets="one")) == "bad-argument"
    assert code(lambda: dlog.rules()) == "bad-argument"
    assert code(lambda: dlog.rules(one.distinct())) == "bad-argument"
    assert code(lambda: dlog.rules(found=7)) == "bad-argument"  # type: ignore[arg-type]
    assert code(lambda: dlog.rules(parts=one.explode("a", diff=(1, 2)))) == "diffs-no-integers"
    assert code(lambda: dlog.rules(made=flow.input("things", x=object).distinct())) == "not-as-rules"
    assert code(lambda: dlog.rules(found=one).run({"two": []})) == "bad-argument"
    rules = dlog.rules(found=one.map("a", count="a"), found_again=one, sets=["one"])
    result = rules.run({"one": [3]})
    assert rules.counts(result, "found") == {(3, 3): 1}
    assert rules.counts(result, "found_again") == {(3,): 1}
    assert list(result["found"].to_numpy()) == ["a", "count_"]
    assert code(lambda: rules.counts(result, "two")) == "bad-argument"
    assert code(lambda: rules.counts({}, "one")) == "bad-argument"
