"""Items of one shape, of which one is parsed for all, are what each of them is parsed to by itself, places included."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from dlog.grammar import parser, syntax
from dlog.grammar.alike import Alike
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from tests.bench.shapes import SHAPES

PAIRS = [
    ("p(x, y) :- q(x, z), r(z, y).", "pp(a, b) :- qq(a, c), rr(c, b)."),
    ("p(x) :- q(x, 1), x != 12.", "p(y) :- q(y, 345), y != 6."),
    ("p(x) :- q(x, 1).", "p(x) :- q(x, 0x1f)."),
    ("p(x) :- q(x, 1).", "p(x) :- q(x, 12u)."),
    ("p(x) :- q(x, 1).", "p(x) :- q(x, 1_000)."),
    ('p(x) :- q(x, "a"), x < y + 2 * z ^ -w.', 'p(o) :- q(o, "a (b), c"), o < u + 7 * v ^ -t.'),
    ('p(x) :- q(x, "a").', 'p(x) :- q(x, "\\n").'),
    ("p(n) :- n = count : { q(_, m) }, !r(n, _).", "s(k) :- k = count : { t(_, i) }, !u(k, _)."),
    ("p(n) :- n = count : { q(_) }.", "p(n) :- n = sum x : { q(x) }."),
    ("p(x) :- (q(x) ; r(x)), true.", "p(y) :- (r(y) ; q(y)), true."),
    ("p(x) :- q(x), x = cat(y, z).", "p(x) :- q(x), x = foo(y, z)."),
    ("p(x) :- q(x). // a\n", "p(x) :- q(x). /* b. */"),
    ("p(x) :- q(x).", "p(x) :- /* c(x). */ q(x)."),
    ("p(x) :- q(x), r(x).", "p(x) :- q(x), r(x). .plan 0:(2,1)"),
    ("p(x) :- q(x).", "p(x) :- c.q(x)."),
    ("p(x, __LINE__) :- q(x). p(x) :- q(x).", "\n\np(y, __LINE__) :- q(y)."),
    ("p([x, y]) :- q(x, nil), r(y).", "p([y, z]) :- q(y, nil), r(z)."),
    ("p(x) :- q(x), x > a - b.", "p(x) :- q(x), x > choice - domain."),
    ("p(x) <= p(y) :- x < y.", "q(a) <= q(b) :- a < b."),
    (".decl a(x: number, y: symbol)", ".decl bc(long: t, m: unsigned)"),
    (".decl a(x: number) .output a", ".decl b(x: number) brie"),
    (".decl a(x: number)\na(x) :- b(x).", ".decl c(x: number) choice-domain x\nc(x) :- b(x)."),
    (".decl a(x: number)\nb(x) :- a(x).", ".decl a(x: number) history(10)\nb(x) :- a(x)."),
    (".output a\n.output b(IO=stdout)", ".output c, d\n.output e.f\n.input g"),
    (".output a\n.input a", ".output c?(IO=stdout)\n.input c?d(IO=file)"),
    (".output a", ".output e?(f) :- g(f)."),
    ("p(1). p(x) :- q(x).", "p(2). p(y) :- q(y). p(3)."),
]


def _told(node: Any) -> Iterator[object]:
    """All that there is in a tree."""
    if is_dataclass(node):
        yield node.__class__.__name__  # nodes that are made when somebody looks pass for others
        for field in fields(node):
            yield from _told(getattr(node, field.name))
    elif isinstance(node, tuple):
        yield len(node)
        for part in node:
            yield from _told(part)
    else:
        yield node


def _outcome(text: str) -> list[object]:
    try:
        return list(_told(parse(Source(text))))
    except DlogError as error:
        return [(d.code, d.message, d.labels, d.notes) for d in error.diagnostics]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[syntax.Item]:
    """The items that were not parsed."""
    found: list[syntax.Item] = []
    item = Alike._item

    def noted(self: Alike, text: str, start: int) -> Any:
        made = item(self, text, start)
        found.extend([] if made is None else [made[0]])
        return made

    monkeypatch.setattr(Alike, "_item", noted)
    return found


def _compare(text: str) -> None:
    found = _outcome(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parser, "Alike", lambda *_: None)
        assert found == _outcome(text)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_items_are_what_they_are_parsed_to(one: str, other: str, read: list[syntax.Item]) -> None:
    _compare(f"{one}\n{one}\n{other}\n{one}\n{other}\n{other}\n")
    assert read


@pytest.mark.parametrize("shape", SHAPES)
def test_programs_of_many_rules_are_what_they_are_parsed_to(shape: str, read: list[syntax.Item]) -> None:
    _compare(SHAPES[shape](60))
    assert shape == "facts" or read


def test_all_programs_are_what_they_are_parsed_to(read: list[syntax.Item]) -> None:
    for path in sorted(Path(__file__).parents[2].glob("programs/*/*.dl")):
        _compare(path.read_text() * 3)
    assert read


WRONG = ["p(x) :- q(x, .", "p(x) :- q(0x).", "p(12ab) :- q(x).", 'p(x) :- q(x, "\\q").', "p(x) q(x)."]


@pytest.mark.parametrize("wrong", WRONG)
def test_mistakes_are_found_behind_items_of_one_shape(wrong: str, read: list[syntax.Item]) -> None:
    _compare(f"p(x) :- q(x).\np(x) :- q(1).\n\n{'p(y) :- q(y). p(y) :- q(7).' * 3}\n{wrong}\np(z) :- q(z).\n")
    assert read


def test_clauses_that_are_deep_or_long_are_parsed_by_themselves() -> None:
    for body in ("x = " + "(" * 300 + "1" + ")" * 300, "x = 1" + " + 1" * 300, "!" * 300 + "q(x)", "x != 1" + ", x != 1" * 300):
        program = parse(Source(f"p(x) :- q(x), {body}.\n" * 4))
        assert len(program.items) == 4
