"""Values of algebraic data types in files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog import Branch
from tests.engine.formats.test_nested import naive_text
from tests.examples import examples
from tests.strategies_values import TYPE_DECLS

TYPES = "\n".join(TYPE_DECLS.values())
SYMBOLS = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\t"), max_size=6)
EXPR = """.type Expr = Name {name: symbol} | Call {function: symbol, args: Args} | Real {value: float} | Unknown {}
.type Args = [first: Expr, rest: Args]
"""
EXPRESSIONS = st.recursive(
    st.one_of(
        st.builds(Branch, st.just("Name"), SYMBOLS),
        st.builds(Branch, st.just("Real"), st.floats(allow_nan=False)),
        st.just(Branch("Unknown")),
    ),
    lambda inner: st.builds(
        Branch, st.just("Call"), SYMBOLS, st.none() | st.tuples(inner, st.none() | st.tuples(inner, st.none()))
    ),
    max_leaves=6,
)


def text_of(value: object) -> str:
    match value:
        case Branch(name, ()):
            return f"${name}"
        case Branch(name, args):
            return f"${name}({', '.join(map(text_of, args))})"
        case tuple():
            return f"[{', '.join(map(text_of, value))}]"
        case _:
            return naive_text(value)


def copied(declarations: str, type: str, lines: list[str], folder: Path, params: str = "") -> list[str]:
    """The lines of a relation of one column after it was read and written."""
    (folder / "r.facts").write_text("".join(f"{line}\n" for line in lines))
    form = f"({params})" if params else ""
    program = f"{declarations}\n.decl r(x: {type})\n.input r{form}\n.decl s(x: {type})\ns(x) :- r(x).\n.output s{form}\n"
    dlog.run(program, folder, folder)
    return (folder / "s.csv").read_text().splitlines()


@examples(40)
@given(values=st.lists(EXPRESSIONS, min_size=1, max_size=8))
def test_what_is_written_with_quotes_reads_back(values: list[Branch], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("expressions")
    program = f"{EXPR}.decl r(x: Expr)\n.output r(rfc4180=true)\n"
    back = f'{EXPR}.decl r(x: Expr)\n.input r(rfc4180=true, filename="r.csv")\n'
    dlog.run(f"{program}.decl in(x: Expr)\nr(x) :- in(x).", {"in": [(value,) for value in values]}, folder)
    assert set(dlog.run(back, folder)["r"]) == {(value,) for value in values}
    quoted = {line[1:-1].replace('""', '"') for line in (folder / "r.csv").read_text().split("\n")[:-1]}
    assert quoted == set(map(text_of, values))


@pytest.mark.parametrize("columnar", ["parquet", "arrow"])
def test_columnar_files_hold_them_as_text(columnar: str, tmp_path: Path) -> None:
    value = Branch("Call", "f, (x)", (Branch("Name", 'a "b"'), None))
    program = f'{EXPR}.decl in(x: Expr)\n.decl r(x: Expr, n: number)\nr(x, 1) :- in(x).\n.output r(filename="r.{columnar}")\n'
    dlog.run(program, {"in": [(value,), (Branch("Unknown"),)]}, tmp_path)
    back = f'{EXPR}.decl r(x: Expr, n: number)\n.input r(filename="r.{columnar}")\n'
    assert set(dlog.run(back, tmp_path)["r"]) == {(value, 1), (Branch("Unknown"), 1)}


@pytest.mark.parametrize(
    ("type", "lines", "expected"),
    [
        ("Colour", ["$Red", " $Green ", "$Blue()", "$ Red"], ["$Blue", "$Green", "$Red"]),
        ("Tree", ["$Tip(a)", '$Tip("b)")', "$Tip( c d)"], ["$Tip(a)", "$Tip(b))", "$Tip(c d)"]),
        ("Tree", ["$Node( $Leaf ,1,$Node($Leaf,2,$Tip(])))"], ["$Node($Leaf, 1, $Node($Leaf, 2, $Tip(])))"]),
        ("Tree", ["$Of([1, )])", "$Of(nil)"], ["$Of([1, )])", "$Of(nil)"]),
        ("Pair", ["[1, $x(]", "nil"], ["[1, $x(]", "nil"]),
    ],
)
def test_lines_of_a_file(type: str, lines: list[str], expected: list[str], tmp_path: Path) -> None:
    assert sorted(copied(TYPES, type, lines, tmp_path)) == expected


def test_commas_inside_do_not_end_a_column(tmp_path: Path) -> None:
    (tmp_path / "r.facts").write_text("$Node($Leaf, 1, $Leaf),2,$a(b\n$Leaf,3,)\n")
    program = TYPES + '\n.decl r(t: Tree, n: number, s: symbol)\n.input r(delimiter=",")\n'
    tree = Branch("Node", Branch("Leaf"), 1, Branch("Leaf"))
    assert set(dlog.run(program, tmp_path)["r"]) == {(tree, 2, "$a(b"), (Branch("Leaf"), 3, ")")}


@pytest.mark.parametrize(
    ("type", "line", "reason"),
    [
        ("Colour", "$Rad", "`$Rad` has the branch `$Rad`, which `Colour` does not have; did you mean `$Red`?"),
        ("Colour", "$Purple", "`$Purple` has the branch `$Purple`, which `Colour` does not have"),
        ("Colour", "Red", "`Red` is not a `Colour`, such as `$Blue`"),
        ("Colour", "nil", "`nil` is not a `Colour`, such as `$Blue`"),
        ("Tree", "[1, 2]", "`[1, 2]` is not a `Tree`, such as `$Leaf`"),
        ("Colour", "$Red(1)", "`$Red(1)` does not have the 0 fields of `$Red`"),
        ("Tree", "$Node($Leaf, 1)", "`$Node($Leaf, 1)` does not have the 3 fields of `$Node`"),
        ("Tree", "$Node($Leaf, 1, $Leaf", "`$Node($Leaf, 1, $Leaf` does not have the 3 fields of `$Node`"),
        ("Tree", "$Node($Leaf, one, $Leaf)", "`$Node($Leaf, one, $Leaf)` has the field `one`, not a valid number"),
        ("Tree", "$Node($Leaf, 1, $Red)", "`$Node($Leaf, 1, $Red)` has the branch `$Red`, which `Tree` does not have"),
        ("Tree", "$Leaf $Leaf", "`$Leaf $Leaf` does not have the 0 fields of `$Leaf`"),
        ("Tree", "$", "`$` is not a `Tree`, such as `$Leaf`"),
    ],
)
def test_a_wrong_value_has_its_place_and_its_reason(type: str, line: str, reason: str, tmp_path: Path) -> None:
    good = "$Red" if type == "Colour" else "$Leaf"
    with pytest.raises(dlog.DlogError) as raised:
        copied(TYPES, type, [good, line], tmp_path)
    [found] = raised.value.diagnostics
    assert (found.code, found.message) == ("bad-record", f"line 2, column 1 (`x`): {reason}")
    assert found.place == f"{tmp_path / 'r.facts'}:2"


def test_a_deep_value_needs_no_recursion(tmp_path: Path) -> None:
    depth = 600
    line = "$S(" * depth + "$Zero" + ")" * depth
    assert copied(".type Nat = Zero {} | S {n: Nat}", "Nat", [line], tmp_path) == [line]


@pytest.mark.parametrize("form", ["list", "object"])
def test_json_has_them_as_text_in_rows_and_in_records(form: str, tmp_path: Path) -> None:
    value = Branch("Call", 'f "x"', (Branch("Name", "a, b"), None))
    declared = f"{EXPR}.decl in(x: Expr, a: Args)\n.decl r(x: Expr, a: Args)\nr(x, a) :- in(x, a).\n"
    rows = [(value, (value, None)), (Branch("Unknown"), None)]
    dlog.run(f'{declared}.output r(IO=jsonfile, filename="r.json", format={form})\n', {"in": rows}, tmp_path)
    assert r'"$Call(\"f \\\"x\\\"\", [$Name(\"a, b\"), nil])"' in (tmp_path / "r.json").read_text()
    back = f'{EXPR}.decl r(x: Expr, a: Args)\n.input r(IO=jsonfile, filename="r.json")\n'
    assert set(dlog.run(back, tmp_path)["r"]) == set(rows)
