"""Functors of users: what they are called with, what comes of it, and whose mistake it is."""

from __future__ import annotations

import math
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dlog
from dlog.functors import linked, load_modules
from dlog.grammar.diagnostics import DlogError
from dlog.pipeline import compile_program, explain_rounds
from tests.conftest import ROOT
from tests.shards import run_sharded

HALVES = """
.functor half(x: number): number
.decl n(x: number)
.decl r(x: number, y: number)
r(x, @half(x)) :- n(x), @half(x) > 1.
"""
KINDS = """
.type Pair = [left: symbol, right: Pair]
.functor f(number, x: unsigned, y: float, s: symbol): symbol
.functor swap(p: Pair): Pair
.functor ones(): unsigned
.functor half_way(x: float, y: float): float
.decl n(x: number, u: unsigned, y: float, s: symbol)
n(-1, 18446744073709551615, 0.5, "é"). n(2, 0, -0.0, "").
.decl r(x: symbol) .decl p(x: Pair) .decl u(x: unsigned) .decl m(x: float)
r(@f(x, u, y, s)) :- n(x, u, y, s).
p(["a", ["b", nil]]). p(nil).
p(@swap(q)) :- p(q), q != nil.
u(@ones()).
m(@half_way(y, 2.0)) :- n(_, _, y, _).
"""


def half(x: int) -> int:
    return x // 2


def swap(pair: Any) -> Any:
    match pair:
        case (x, (y, rest)):
            return (y, (x, rest))
        case _:
            return pair


def kinds() -> dict[str, Any]:
    return {
        "f": lambda *args: repr(args),
        "swap": swap,
        "ones": lambda: 2**64 - 1,
        "half_way": lambda x, y: (x + y) / 2,
    }


def in_a_session(text: str, facts: dict[str, list[Any]], functors: Any) -> dict[str, set[Any]]:
    """What there is after rows came one by one, went and came again."""
    with dlog.session(text, functors=functors) as session:
        for turn in range(3):
            for name, rows in facts.items():
                for row in rows:
                    (session.remove if turn == 1 else session.insert)(name, [row])
                    session.commit()
        return {name: set(session[name]) for name in session}


def test_a_functor_computes_in_heads_and_conditions_at_once_and_in_a_session() -> None:
    facts: dict[str, Any] = {"n": [(1,), (4,), (7,)]}
    expected = {(4, 2), (7, 3)}
    assert set(dlog.run(HALVES, facts=facts, functors={"half": half})["r"]) == expected
    assert in_a_session(HALVES, facts, {"half": half})["r"] == expected
    assert dlog.run_text(HALVES, facts, functors={"half": half})["r"] == expected


def test_pure_functors_are_maintained(tmp_path: Path) -> None:
    program = tmp_path / "program.dl"
    program.write_text(HALVES)
    assert "computed anew" not in explain_rounds(program, (), ())
    program.write_text(HALVES.replace(": number\n.decl n", ": number stateful\n.decl n"))
    assert "`@half` may give another value each time" in explain_rounds(program, (), ())


def test_values_of_all_kinds_go_in_and_come_out() -> None:
    result = dlog.run(KINDS, functors=kinds())
    assert set(result["r"]) == {("(-1, 18446744073709551615, 0.5, 'é')",), ("(2, 0, -0.0, '')",)}
    assert set(result["p"]) == {(("a", ("b", None)),), (("b", ("a", None)),), (None,)}
    assert list(result["u"]) == [(2**64 - 1,)]
    assert set(result["m"]) == {(1.25,), (1.0,)}


def test_branches_go_in_and_come_out() -> None:
    text = ".type T = A {x: number} | B {x: symbol, t: T} | E {}\n.functor f(t: T): T\n.decl p(t: T)\n.decl r(t: T)\n"
    text += 'p($A(3)). p($B("x", $E())).\nr(@f(t)) :- p(t).\n'
    result = dlog.run(text, functors={"f": lambda t: dlog.Branch("B", str(t.name), t)})
    a, b = dlog.Branch("A", 3), dlog.Branch("B", "x", dlog.Branch("E"))
    assert set(result["r"]) == {(dlog.Branch("B", "A", a),), (dlog.Branch("B", "B", b),)}
    with pytest.raises(DlogError, match="the functor `@f` gives what it must not"):
        dlog.run(text, functors={"f": lambda t: dlog.Branch("C")})


def test_a_functor_recurses() -> None:
    text = ".functor step(x: number): number\n.decl r(x: number)\nr(0). r(@step(x)) :- r(x), x < 1000.\n"
    assert sorted(dlog.run(text, functors={"step": lambda x: x + 7})["r"]) == [(x,) for x in range(0, 1002, 7)]


def test_a_pure_functor_is_called_once_for_the_same_arguments_and_a_stateful_one_each_time() -> None:
    columns = "(x: number, y: number)"
    text = f".functor f(x: number): number MODE\n.decl n{columns}\n.decl r{columns}\nr(y, @f(x)) :- n(x, y)."
    facts = {"n": [(x % 3, x) for x in range(300)]}
    for mode, count in (("", 3), ("stateful", 300)):
        calls: list[int] = []
        dlog.run(text.replace("MODE", mode), facts=facts, functors={"f": lambda x, calls=calls: calls.append(x) or x})
        assert len(calls) == count


def test_blocks_are_arrays_of_the_parameters_kinds() -> None:
    seen: list[tuple[str, ...]] = []

    @dlog.functor(blocks=True)
    def shifted(x: np.ndarray, s: np.ndarray) -> np.ndarray:
        seen.append((str(x.dtype), str(s.dtype)))
        return x + np.array([len(t) for t in s])

    columns = "(x: number, s: symbol)"
    text = f".functor shifted{columns}: number\n.decl n{columns}\n.decl r(x: number)\nr(@shifted(x, s)) :- n(x, s)."
    facts = {"n": [(x, "a" * (x % 4)) for x in range(2000)]}
    assert set(dlog.run(text, facts=facts, functors={"shifted": shifted})["r"]) == {(x + x % 4,) for x in range(2000)}
    assert set(seen) == {("int64", "object")}


def test_blocks_of_arrow_have_values_of_all_kinds() -> None:
    seen: list[str] = []

    def f(*columns: pa.Array) -> pa.Array:
        seen.extend(str(c.type) for c in columns)
        return pa.array([repr(row) for row in zip(*(c.to_pylist() for c in columns), strict=True)])

    def swap(pairs: pa.Array) -> pa.Array:
        return pa.array([{"left": "b", "right": None}] * len(pairs))

    functions = {**kinds(), "f": f, "swap": swap}
    in_blocks = {n: dlog.functor(blocks="arrow")(g) if n in ("f", "swap") else g for n, g in functions.items()}
    result = dlog.run(KINDS, functors=in_blocks)
    assert set(result["r"]) == {("(-1, 18446744073709551615, 0.5, 'é')",), ("(2, 0, -0.0, '')",)}
    assert seen == ["int64", "uint64", "double", "string"]
    assert set(result["p"]) == {(("a", ("b", None)),), (("b", None),), (None,)}


def test_compiled_and_called_functions_agree() -> None:
    @dlog.functor
    def mixed(x: int, y: float) -> float:
        return x * y + x % 7

    columns = "(x: number, y: float)"
    text = f".functor mixed{columns}: float\n.decl n{columns}\n.decl r{columns}\nr(x, @mixed(x, y)) :- n(x, y)."
    facts = {"n": [(x, x / 8) for x in range(-1500, 1500)]}
    expected = {(x, x * y + x % 7) for x, y in facts["n"]}
    assert set(dlog.run(text, facts=facts, functors={"mixed": mixed})["r"]) == expected


TABLE = np.arange(8)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: 100 // (x - 700), "ZeroDivisionError"),
        (lambda x: 100 % (x - 700), "ZeroDivisionError"),
        (lambda x: int(1.0 / (x - 700)), "ZeroDivisionError"),
        (lambda x: [1, 2][x], "IndexError"),
        (lambda x: int(TABLE[x]), "IndexError"),
        (lambda x: x / 2, "0.5 is not of type number"),
    ],
)
def test_a_compiled_function_fails_where_python_does(function: Any, said: str) -> None:
    facts = {"n": [(x,) for x in range(1, 2000)]}
    for compiled in (True, False):
        with pytest.raises(DlogError, match=said):
            dlog.run(HALVES, facts=facts, functors={"half": dlog.functor(compiled=compiled)(function)})


def test_a_compiled_root_of_a_negative_number_is_told() -> None:
    text = ".functor root(x: float): float\n.decl n(x: float)\n.decl r(x: float)\nr(@root(x)) :- n(x)."
    facts = {"n": [(float(x),) for x in range(-1, 1000)]}
    root = dlog.functor(lambda x: math.sqrt(x))
    with pytest.raises(DlogError, match=r"(?s)ValueError: .*@root\(-1.0\)"):
        dlog.run(text, facts=facts, functors={"root": root})
    assert len(dlog.run(text, facts={"n": facts["n"][1:]}, functors={"root": root})["r"]) == 1000


def test_the_functions_that_are_missing_are_named() -> None:
    with pytest.raises(DlogError, match="no function for the functor `@half`"):
        dlog.run(HALVES, functors={"halve": half})
    unused = ".functor f(x: number): number\n.decl r(x: number)\nr(1).\n"
    assert list(dlog.run(unused)["r"]) == [(1,)]


def test_workers_call_functors() -> None:
    facts: dict[str, Any] = {"n": [(x,) for x in range(40)]}
    expected = {(x, x // 2) for x in range(4, 40)}
    for workers in (1, 3):
        assert run_sharded(HALVES, facts, workers=workers, functors={"half": half})["r"] == expected


def divided(x: int) -> int:
    return 1 // (x - 4)


def test_programs_with_functions_go_to_tasks(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    (tmp_path / "mine.py").write_text("LESS = 3\ndef half(x):\n    return x // 2 - LESS + 3\n")
    for functors in ({"half": lambda x: x // 2}, load_modules(["mine"], [str(tmp_path)])):
        program = linked(compile_program(HALVES), functors)
        code = f"import pickle; p = pickle.loads({pickle.dumps(program)!r}); print(p.functors['half'].function.function(9))"
        assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "4\n"


MISTAKES: list[tuple[Any, list[str]]] = [
    (
        divided,
        [
            "error: the functor `@half` failed: ZeroDivisionError: integer division or modulo by zero",
            "while evaluating this rule",
            "= it was called for @half(4)",
            f"= in {__file__}, line {divided.__code__.co_firstlineno + 1}: return 1 // (x - 4)",
        ],
    ),
    (lambda x: "two", ["the functor `@half` gives what it must not: 'two' is not of type number", "= of @half("]),
    (lambda x: None, ["None is not of type number"]),
    (lambda x: 2**63, ["9223372036854775808 is not of type number"]),
    (lambda: 1, ["TypeError", "takes 0 positional arguments but 1 was given"]),
    (dlog.functor(blocks=True)(lambda x: x[:0]), ["the functor `@half` gives an array of shape (0,) for"]),
    (dlog.functor(blocks="arrow")(lambda x: x[:0]), ["the functor `@half` gives 0 values for"]),
    (
        dlog.functor(blocks="arrow")(lambda x: x.to_numpy()),
        ["the functor `@half` gives a value of type `ndarray`, which is no Arrow array"],
    ),
    (dlog.functor(blocks="arrow")(lambda x: pa.array([0.5] * len(x))), ["gives what it must not", "truncated"]),
    (dlog.functor(blocks=True)(lambda x: 1 / 0), ["ZeroDivisionError", "it was called for a block of rows"]),
]


@pytest.mark.parametrize(("function", "said"), MISTAKES)
def test_what_goes_wrong_in_a_function_is_told_with_its_place(function: Any, said: list[str]) -> None:
    for run in (dlog.run, in_a_session):
        with pytest.raises(DlogError) as raised:
            run(HALVES, {"n": [(4,), (7,)]}, functors={"half": function})
        assert [text for text in said if text not in str(raised.value)] == []


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(DlogError, match="what there is for the functor `@half` is no function"):
        dlog.run(HALVES, functors={"half": 3})


def test_a_module_is_loaded_from_the_folder_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def half(x):\n    return x // 2\n")
    modules = load_modules(["mine"], [str(tmp_path)])
    assert set(dlog.run(HALVES, facts={"n": [(4,)]}, functors=modules)["r"]) == {(4, 2)}
    with pytest.raises(DlogError, match=r"there is no module other.py"):
        load_modules(["other"], [str(tmp_path)])
    (tmp_path / "broken.py").write_text("\n1 / 0\n")
    with pytest.raises(DlogError, match=r"broken.py cannot be loaded: ZeroDivisionError(.|\n)*line 2: 1 / 0"):
        load_modules(["broken"], [str(tmp_path)])


def test_the_command_line_runs_with_the_modules_that_are_named_and_with_no_others(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(HALVES + "n(4). n(9).\n.output r\n")
    (tmp_path / "mine.py").write_text("import json\ndef half(x):\n    return x // 2\n")
    for planted in ("json.py", "half.py", "functors.py", "numpy.py"):
        (tmp_path / planted).write_text("raise SystemExit('planted')\n")

    def command(*flags: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "dlog", *flags], cwd=tmp_path, capture_output=True, text=True, check=False)

    missing = command("run", "p.dl", "-D", "-", "-w")
    assert missing.returncode == 1 and "-l MODULE" in missing.stderr and "planted" not in missing.stderr
    found = command("run", "p.dl", "-D", "-", "-w", "-l", "mine")
    assert (found.returncode, found.stderr) == (0, "") and found.stdout.split()[-5:-1] == ["4", "2", "9", "4"]
    assert command("check", "p.dl", "-w").returncode == 0
    (tmp_path / "mine.py").write_text("def half(x):\n    raise ValueError('odd')\n")
    failed = command("run", "p.dl", "-D", "-", "-w", "-L", str(tmp_path), "-l", "mine")
    assert failed.returncode == 1 and "ValueError: odd" in failed.stderr and "mine.py, line 2" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_sessions_have_functors_for_rules_that_come_and_for_queries() -> None:
    with dlog.session(HALVES, functors={"half": half}) as session:
        session.insert("n", [(4,), (6,)])
        session.commit()
        session.add_rules(".decl q(x: number)\nq(@half(y)) :- r(_, y).")
        assert set(session["q"]) == {(1,)}
        assert sorted(session.query("?- n(x), @half(x) = 3.")) == [(6,)]
        assert "half" in str(session.why("r", (4, 2)))


def test_a_state_is_derived_anew_as_functions_may_have_changed(tmp_path: Path) -> None:
    for function, expected in ((half, {(8, 4)}), (lambda x: x - 1, {(8, 7)})):
        with dlog.session(HALVES, state=tmp_path / "state", functors={"half": function}) as session:
            if not session.restored:
                session.insert("n", [(8,)])
                session.commit()
            assert set(session["r"]) == expected


def test_what_the_page_says_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "functors.md").read_text(encoding="utf-8")
    program, folding, counters = re.findall(r"```prolog\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "signs.dl").write_text(program)
    (tmp_path / "trips.dl").write_text(".decl road(city: symbol, km: number)\n" + folding)
    known: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(code.replace('"trips.dl"', '"trips.dl", {"road": [(c, 1) for c in ("Ulm", "Augsburg", "Aalen")]}'), known)
        said = re.search(r"# (.*)", code)
        assert said is not None and capsys.readouterr().out == f"{said[1]}\n"
    numbered = dlog.run(program + counters + ".output numbered\n", functors={"half": half, "label": "{} {}".format})
    assert sorted(numbered["numbered"]) in ([(0, a), (1, b)] for a, b in (("Ulm 42", "Augsburg 30"), ("Augsburg 30", "Ulm 42")))
