"""What is offered behind the dot of an instance."""

from __future__ import annotations

import pytest

from dlog.lsp.completion import completions
from dlog.lsp.names import find_names

PROGRAM = """.comp Base<T> { .decl low(x: T) }
.comp Graph<T, P> : Base<T> {
    // From here to there.
    .decl edge(x: T, y: T)
    .comp Inner : Outer { .decl deep(x: T) }
    .init inner = Inner
    .init given = P
}
.comp Outer : Outer { .decl far(x: number) }
.init g = Graph<symbol, Base>
.init o = Outer
.decl p(x: number)
p(x) :- """


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("g.", ["edge", "given", "inner", "low"]),
        ("g.e", ["edge"]),
        ("g.inner.", ["deep", "far"]),
        ("g.given.", []),
        ("o.", ["far"]),
        ("x.", []),
        ("g.edge.", []),
    ],
)
def test_members_of_an_instance_are_offered(typed: str, offered: list[str]) -> None:
    text = PROGRAM + typed
    assert sorted(item.label for item in completions(text, len(text), find_names(text))) == offered


def test_they_are_shown_with_declaration_and_comment() -> None:
    text = f"{PROGRAM}g.ed"
    [item] = completions(text, len(text), find_names(text))
    assert (item.detail, item.documentation) == (".decl edge(x: T, y: T)", "From here to there.")
