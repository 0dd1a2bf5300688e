"""What nothing closes is the same to the preprocessor as to pcpp, which looks for the end once more for each of them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dlog.grammar.macros import Expansion
from dlog.grammar.preprocess import preprocess_text

UNITS = ["'", '"', "\\", "/", "*", "/*", "*/", "//", "\n", "\\\n", " ", "a"]
UNITS += ["L'", 'L"', "=", "/=", "1", "@", "\u00e9", "\ue000", "\t", "#"]


def tokens(lines: Any) -> list[tuple[str, str, int]]:
    return [(token.type, token.value, token.lineno) for token in lines]


@pytest.mark.slow
def test_texts_have_the_tokens_that_pcpp_finds_in_them() -> None:
    chosen = random.Random(5)
    different = 0
    for _ in range(3000):
        text = "".join(chosen.choice(UNITS) for _ in range(chosen.randrange(1, 14))) + "\n"
        expansion = Expansion(text, "x", (), ())
        lexer = expansion.lexer.clone()
        lexer.input(text)
        lexer.lineno = 1
        plain = tokens(iter(lexer.token, None))
        found = [token for line in expansion.group_lines(text, "x") for token in tokens(line)]
        assert found[: len(plain)] == plain, text
        different += any(kind in ("CPP_SQUOTE", "CPP_DQUOTE") for kind, _, _ in plain)
    assert different > 1000


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["'\\", "'a\\", "/*a", '")\\', "\"\\", "@"])
def test_what_nothing_closes_takes_no_time_with_the_square_of_the_text(unit: str) -> None:
    """This would be many minutes for each."""
    text = unit * (200_000 // len(unit)) + "."
    assert preprocess_text("#define A 1\n" + text, "x").text.strip() == text
