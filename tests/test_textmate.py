"""What editors colour programs by has the words of the grammar."""

import re

from tests.textmate import TARGET, grammar, text

PATTERNS = {pattern["name"]: pattern.get("match", "") for pattern in grammar()["patterns"]}


def test_the_file_is_what_the_words_make() -> None:
    assert TARGET.read_text(encoding="utf-8") == text(), "run `python -m tests.textmate`"


def scope_at(line: str, word: str) -> str:
    """The scope of the first pattern that matches at a word, as editors try them."""
    at = line.index(word)
    for pattern in grammar()["patterns"]:
        if re.compile(pattern.get("match") or pattern["begin"]).match(line, at):
            return str(pattern["name"])
    return ""


def test_words_have_their_scopes() -> None:
    line = ".decl edge(x: number) input  // why"
    assert scope_at(line, ".decl") == "keyword.control.souffle"
    assert scope_at(line, "edge") == "entity.name.function.souffle"
    assert scope_at(line, "number") == "support.type.souffle"
    assert scope_at(line, "input") == "storage.modifier.souffle"
    assert scope_at(line, "//") == "comment.line.double-slash.souffle"
    for number in ("1_000", "0xff_ffu", "1e3", "1_0.5E-7"):
        assert re.fullmatch(PATTERNS["constant.numeric.souffle"], number)
    assert not re.fullmatch(PATTERNS["constant.numeric.souffle"], "1__0")
    rule = "p(x) :- x = count : { c.e(y, $Leaf) }, y band 0x1f < 2.5, inputs(x)."
    assert scope_at(rule, "count") == "support.function.souffle"
    assert scope_at(rule, "c.e") == "entity.name.function.souffle"
    assert scope_at(rule, "$Leaf") == "entity.name.tag.souffle"
    assert scope_at(rule, "band") == "keyword.operator.word.souffle"
    assert scope_at(rule, "0x1f") == "constant.numeric.souffle"
    assert scope_at(rule, "inputs") == "entity.name.function.souffle"
    assert scope_at(rule, "y,") == "variable.other.souffle"
