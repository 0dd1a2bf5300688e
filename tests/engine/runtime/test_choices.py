"""Choice domains: which rows of a key are kept, and that no others are stored; steps that are made again and again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog import run_text, session
from dlog.branch import Branch
from dlog.engine.ir.nodes import Scan
from dlog.engine.plan.static.iterations import part
from dlog.engine.runtime.lowering.lower import PathLowering
from dlog.engine.runtime.lowering.lowered import LoweredPath
from dlog.engine.runtime.static.iterated import IteratedRun
from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from tests.engine.runtime.runs import executor_of, variant
from tests.examples import examples
from tests.naive import evaluate
from tests.strategies import graphs

EDGES = ".decl e(x: number, y: number)\n"


@examples(40)
@given(edges=graphs(7, 20), domain=st.sampled_from(["x", "y", "x, y", "(x, y)"]))
def test_a_choice_is_maximal_and_keeps_its_keys(edges: list[tuple[int, int]], domain: str) -> None:
    text = f"{EDGES}.decl r(x: number, y: number) choice-domain {domain}\nr(x, y) :- e(x, y). r(y, z) :- r(_, y), e(y, z)."
    rows = run_text(text, {"e": edges})["r"]
    keys = [[0], [1]] if domain == "x, y" else [[c for c in (0, 1) if "xy"[c] in domain]]
    taken = [[tuple(row[c] for c in key) for row in rows] for key in keys]
    assert all(len(set(values)) == len(values) for values in taken)
    for row in set(edges):
        assert row in rows or any(tuple(row[c] for c in key) in values for key, values in zip(keys, taken, strict=True))


def test_records_and_strings_are_chosen_by_their_values() -> None:
    text = """.type L = [h: symbol, t: L]
.decl a(k: number, l: L)
a(1, ["b", ["a", nil]]). a(1, ["a", ["z", nil]]). a(1, ["a", ["c", nil]]). a(2, nil). a(2, ["a", nil]).
a(3, ["a", ["a", nil]]). a(3, ["z", nil]). a(3, ["d", nil]). b("z"). b("d").
.decl b(s: symbol)
.decl r(k: number, l: L) choice-domain k
r(k, l) :- a(k, l)."""
    assert run_text(text, {})["r"] == {(1, ("a", ("z", None))), (2, None), (3, ("z", None))}


def test_of_records_that_grow_the_first_stays() -> None:
    """The contexts of a call graph, of which one is kept for each function: a context that holds another never comes first."""
    text = """.type C = [top: symbol, rest: C]
.decl call(from: symbol, to: symbol)
.input call
.decl in(f: symbol, c: C)
in("z", nil).
in(g, [f, c]) :- call(f, g), in(f, c), depth(n), len(c, m), m < n.
.decl depth(n: number) depth(6).
.decl len(c: C, n: number)
len(nil, 0).
len(c, n + 1) :- in(_, c), c = [_, rest], len(rest, n).
.decl one(f: symbol, c: C) choice-domain f
one(f, c) :- in(f, c)."""
    x = ("y", ("z", None))
    facts = {"call": [("z", "y"), ("y", "x"), ("x", "a"), ("a", "x")]}
    result = run_text(text, facts)
    assert result["one"] == evaluate(parse(Source(text)), facts)["one"]
    assert result["one"] == {("z", None), ("y", ("z", None)), ("x", x), ("a", ("x", x))} and len(result["in"]) == 7


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("r(1, 9). r(1, 2).", {(1, 9)}),
        ("r(1, 9). r(2, 9). r(1, 2). r(2, 3). r(3, 4). r(3, 3).", {(1, 9), (2, 9), (3, 4)}),
        ("r(1, y) :- b(y). r(1, y) :- a(y). a(2). b(7). b(8).", {(1, 7)}),
        ("r(1, y) :- a(y). r(1, y) :- b(y). a(2). b(7). b(8).", {(1, 2)}),
        ("r(1, y) :- b(y) ; a(y). a(2). b(7).", {(1, 7)}),
        ("r(1, y) :- a(y) ; b(y). a(2). b(7).", {(1, 2)}),
        ("r(1, y) :- a(y). r(2, y) :- a(y), y > 2. r(2, 0) :- a(y), y < 3. a(2). a(5). r(1, 8).", {(1, 8), (2, 5)}),
        ("r(0, 9). r(x + 1, y - 1) :- r(x, y), x < 2. r(x + 1, 0) :- r(x, _), x < 2.", {(0, 9), (1, 8), (2, 7)}),
        ("r(0, 9). r(x + 1, 0) :- r(x, _), x < 2. r(x + 1, y - 1) :- r(x, y), x < 2.", {(0, 9), (1, 0), (2, 0)}),
        ("r(0, 5). r(2, 7) :- r(0, _). r(1, 4) :- r(0, _). r(2, y) :- r(1, y).", {(0, 5), (2, 7), (1, 4)}),
    ],
)
def test_the_first_row_is_that_of_the_earliest_iteration_and_rule(text: str, rows: set[tuple[int, int]]) -> None:
    """Facts as they stand in the text; then what each rule says, iteration by iteration, in the order of rules."""
    declared = ".decl a(y: number)\n.decl b(y: number)\n.decl r(x: number, y: number) choice-domain x\n"
    case = parse(Source(declared + text))
    assert run_text(declared + text, {})["r"] == rows == evaluate(case)["r"]
    with session(declared + text + "\n.decl more(x: number)\n.input more\na(y) :- more(y).") as live:
        live.commit()
        assert set(live["r"]) == rows
        live.insert("more", [(1,)])
        live.commit()
        live.remove("more", [(1,)])
        live.commit()
        assert set(live["r"]) == rows


def test_what_is_not_read_takes_no_part_in_the_order_of_strings() -> None:
    """The strings of a fact come first wherever it is, whether or not its relation is computed."""
    text = """.decl idle(s: symbol) idle("z").
.decl e(s: symbol)
.input e
.decl r(k: number, s: symbol) choice-domain k
r(1, s) :- e(s)."""
    assert run_text(text + "\n.output r", {"e": [("a",), ("z",)]})["r"] == {(1, "z")}


def test_algebraic_data_are_chosen_by_branches_and_their_fields() -> None:
    text = """.type T = Leaf { v: symbol } | Node { l: T, r: T } | None {}
.decl a(k: number, t: T)
a(1, $Node($Leaf("b"), $None())). a(1, $Node($Leaf("a"), $Leaf("z"))). a(1, $Node($Leaf("a"), $Leaf("c"))).
a(2, $None()). a(2, $Node($None(), $None())). a(3, $Node($None(), $None())). a(3, $Leaf("q")). a(3, $Leaf("p")).
.decl r(k: number, t: T) choice-domain k
r(k, t) :- a(k, t)."""
    smallest = {(1, Branch("Node", Branch("Leaf", "a"), Branch("Leaf", "c"))), (2, Branch("None")), (3, Branch("Leaf", "p"))}
    assert run_text(text, {})["r"] == smallest == evaluate(parse(Source(text)))["r"]


@pytest.mark.parametrize("domain", ["k", "(k, u)", "k, u", "(k, s), u"])
def test_many_keys_of_all_kinds(domain: str) -> None:
    """As many as make the tables of keys grow."""
    text = f"""{EDGES}.decl f(k: number, u: unsigned, s: symbol, v: float)
.input f
.decl r(k: number, u: unsigned, s: symbol, v: float) choice-domain {domain}
r(k, u, s, v) :- f(k, u, s, v)."""
    mixed = [(n * 7919) % 10007 for n in range(6000)]
    rows = [(m % 3001 - 1500, 2**64 - 1 - m % 4001, f"s{m % 11}", (m % 13 - 6) / 4) for m in mixed]
    keys = [[0], [1]] if domain == "k, u" else [[0, 2], [1]] if "s" in domain else [[0, 1]] if "u" in domain else [[0]]
    taken: set[tuple[int, tuple[Any, ...]]] = set()
    expected = set()
    for row in sorted(set(rows)):
        own = {(number, tuple(row[c] for c in key)) for number, key in enumerate(keys)}
        if not own & taken:
            taken |= own
            expected.add(row)
    assert run_text(text, {"f": rows}, threads=2)["r"] == expected and len(expected) > 2000


def test_strings_that_rules_make_come_after_those_of_facts() -> None:
    """By their bytes among each other; strings of facts by their place, whichever bytes they have."""
    text = """.decl e(k: number, x: number)
.input e
.decl s(t: symbol) s("kz"). s("k7").
.decl r(k: number, t: symbol, v: float) choice-domain k
r(k, cat("k", to_string(x)), to_float(to_string(x)) - 3) :- e(k, x)."""
    rows = [(1, 10), (1, 9), (1, 100), (2, 7), (2, 1), (3, 5), (3, 5), (3, 55)]
    expected = {(1, "k10", 7.0), (2, "k7", 4.0), (3, "k5", 2.0)}
    assert run_text(text, {"e": rows})["r"] == run_text(text, {"e": rows[::-1]})["r"] == expected
    assert evaluate(parse(Source(text)), {"e": rows})["r"] == expected


@pytest.mark.parametrize(("bulk", "hashed"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("kind", ["float", "unsigned", "number", "symbol"])
def test_many_candidates_of_a_key_are_compared_as_they_come(kind: str, bulk: bool, hashed: bool) -> None:
    values: dict[str, list[Any]] = {
        "float": [0.0, -1.5, -0.25, 3.0, -7.5],
        "unsigned": [2**63, 2**64 - 1, 5, 2**63 - 1],
        "number": [-(2**62), 2**62, 0, -1],
        "symbol": ["b", "", "aa", "a", "é", "ab"],
    }
    rows = [(k % 700, values[kind][(k * k // 700) % len(values[kind])], k % 97) for k in range(20000)]
    text = f""".decl f(k: number, v: {kind}, n: number)
.input f
.decl one(k: number, v: {kind}, n: number) choice-domain k
one(k, v, n) :- f(k, v, n).
.decl last(v: {kind}, k: number, n: number) choice-domain (n, v)
last(v, 1000 - k, n) :- f(k, v, n)."""
    expected: dict[Any, Any] = {}
    last: dict[Any, Any] = {}
    for k, v, n in rows:
        expected[k] = min(expected.get(k, (k, v, n)), (k, v, n))
        last[n, v] = min(last.get((n, v), (v, 1000 - k, n)), (v, 1000 - k, n))
    with variant(bulk=bulk, hashed=hashed):
        result = run_text(text, {"f": rows}, threads=2)
    assert set(result["one"]) == set(expected.values()) and set(result["last"]) == set(last.values())


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("r(x, y) :- n(x), n(y).", [50]),
        ("r(x, y) :- n(x), n(y). r(x, y) :- n(x), m(y).", [50, 0]),
        ("r(x, y) :- n(x), n(y), x < 20. r(x, 0 - y) :- n(x), n(y).", [20, 30]),
        ("r(x, y) :- n(x), n(y), x < 20. r(y, x) :- r(x, _), n(y).", [20, 30]),
        ("r(7, 7). r(y, y + 1) :- r(_, y), n(y), y < 9.", [0]),
    ],
)
def test_no_row_is_stored_whose_key_is_taken(text: str, stored: list[int]) -> None:
    """Neither by a row that stands, nor by one of an earlier rule, nor by an earlier one of the same rule."""
    declared = ".decl n(x: number)\n.input n\n.decl m(x: number)\n.input m\n.decl r(x: number, y: number) choice-domain x\n"
    executor = executor_of(declared + text, {"n": [(n,) for n in range(50)], "m": [(n,) for n in range(-9, 0)]})
    executor.run()
    assert [rule.new for rule in executor.profile] == stored


def test_with_several_keys_what_is_taken_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """.decl n(x: number)
.input n
.decl next(x: number, y: number) choice-domain x, y
next(0, 1).
next(y, z) :- next(_, y), n(z)."""
    found = []
    choose = IteratedRun._choose

    def counted(run: IteratedRun, name: str, among: str) -> None:
        found.append(run._stored(part(name, among)).rows)
        choose(run, name, among)

    monkeypatch.setattr(IteratedRun, "_choose", counted)
    run_text(text, {"n": [(n,) for n in range(1, 6)]})
    assert found == [4, 3, 2, 1]


@pytest.mark.parametrize(
    ("declared", "rules"),
    [
        (".decl r(x: number, y: number) choice-domain x", "r(0, 0). r(y, x) :- r(x, _), e(x, y)."),
        (".decl r(x: number, y: number) choice-domain x, y", "r(0, 0). r(y, x) :- r(x, _), e(x, y)."),
        (".decl r(x: number, y: unsigned) choice-domain x", "r(0, 0). r(y, recursive_iteration_cnt()) :- r(x, _), e(x, y)."),
        (".decl r(x: number, y: number) choice-domain x", "r(0, 0). r(y, x) :- r(x, _), e(x, y), e(_, z), z > 0."),
        (".decl r(x: number, y: number) choice-domain x", "r(0, 0). r(y, n) :- r(x, _), e(x, y), n = count : { e(x, _) }."),
        (".decl r(x: number, y: float) choice-domain x", "r(0, 0). r(y, n) :- r(x, _), e(x, y), n = mean z : { e(x, z) }."),
        (".decl r(x: number, y: number)", "r(0, 0). r(y, n + 1) :- r(x, n), e(x, y). r(x, n) <= r(x, m) :- m <= n, x >= 0."),
        (
            ".lattice number<> { Lub -> _ bor _ }\n.decl r(x: number, y: number<>)",
            "r(0, 1). r(y, v bor 2) :- r(x, v), e(x, y).",
        ),
    ],
)
def test_what_takes_many_iterations_is_lowered_once(declared: str, rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lowered, counts = 0, []
    lower = PathLowering.lower

    def counted(path: PathLowering) -> LoweredPath:
        nonlocal lowered
        lowered += 1
        return lower(path)

    monkeypatch.setattr(PathLowering, "lower", counted)
    text = f"{EDGES}{declared}\n{rules}"
    for length in (3, 40):
        lowered, facts = 0, {"e": [(n, n + 1) for n in range(length)]}
        numbered = {(n, n) for n in range(length + 1)}
        assert run_text(text, facts)["r"] == (numbered if "_cnt" in rules else evaluate(parse(Source(text)), facts)["r"])
        counts.append(lowered)
    assert counts[0] == counts[1] > 0


def test_what_happens_at_each_match_happens_for_rows_that_are_not_chosen_too() -> None:
    text = f"{EDGES}.decl r(x: number, y: number, n: number) choice-domain x\n"
    text += "r(x, y, autoinc()) :- e(x, y). r(x, x, autoinc()) :- e(_, x). .decl s(n: number) s(autoinc()) :- r(2, _, _)."
    result = run_text(text, {"e": [(1, 2), (1, 3), (2, 3)]})
    assert {row[:2] for row in result["r"]} == {(1, 2), (2, 3), (3, 3)} and result["s"] == {(6,)}


def test_a_loop_begins_with_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes of what stands still are made once, though a single iteration would rather scan it."""
    text = f"{EDGES}.decl t(x: number, y: number) choice-domain y\nt(0, 0). t(y, z) :- t(_, y), e(y, z)."
    executor = executor_of(text, {"e": [(n, (n * 7 + i) % 500) for n in range(500) for i in range(9)]})
    runs: list[IteratedRun] = []
    begin = IteratedRun._begin
    monkeypatch.setattr(IteratedRun, "_begin", lambda run: (runs.append(run), begin(run)))
    executor.run()
    loops = [scope.enter[0].seed for run in runs for step, scope in run.scopes.items() if step.startswith("loop")]
    assert [seed.relation for seed in loops if isinstance(seed, Scan)] == ["t%delta"] * len(loops) != []
    assert executor.rows("t") == 500


def test_rows_from_outside_come_first() -> None:
    text = f"{EDGES}.decl r(x: number, y: number) choice-domain x\n.input r\nr(x, y) :- e(x, y)."
    assert run_text(text, {"e": [(1, 1), (2, 1)], "r": [(1, 5)]})["r"] == {(1, 5), (2, 1)}


def test_no_row_dominates_itself() -> None:
    text = ".decl r(x: number, y: float) r(1, 2.0). r(2, 3.0).\n"
    for rule in ("r(x, y) <= r(x, y) :- r(z, _), x < z.", "r(x, y) <= r(z, w) :- x = z, y = w."):
        assert run_text(text + rule, {})["r"] == {(1, 2.0), (2, 3.0)}
