"""Patterns that an attacker would choose: they end, in time or with an error that says why."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import numpy as np
import pytest

from dlog.engine.values import backtracking
from dlog.engine.values.backtracking import captured, fullmatches, within
from dlog.engine.values.patterns import loose_brace, match
from dlog.engine.values.symbols import SymbolTable
from dlog.grammar.diagnostics import DlogError
from tests.security.planted import dlog

PROGRAM = '.decl t(x: symbol)\nt("{text}").\n.decl p(x: symbol)\np(x) :- t(x), {body}.\n.printsize p\n'


def run(folder: Path, pattern: str, text: str, negated: str = "") -> tuple[int, str, str]:
    (folder / "p.dl").write_text(PROGRAM.format(text=text, body=f'{negated}match("{pattern}", x)'))
    done = dlog("run", "p.dl", cwd=folder)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a|aa)+$", "(.*a){20}", "(([a-z])+.)+[A-Z]([a-z])+$"])
def test_regular_patterns_take_linear_time(tmp_path: Path, pattern: str) -> None:
    begun = time.monotonic()
    code, _, err = run(tmp_path, pattern, 100_000 * "a" + "!")
    assert (code, err) == (0, "")
    assert time.monotonic() - begun < 60


@pytest.mark.slow
def test_a_pattern_that_would_take_for_ever_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = run(tmp_path, r"(a+)+(?=b)", 64 * "a")
    assert (code, out) == (1, "")
    assert err.startswith("error: match(") and "takes more than 10 seconds" in err and "Traceback" not in err


def test_a_pattern_that_takes_for_ever_to_compile_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its classes takes some milliseconds: this process must not be the one that compiles it. Patterns may be data."""
    monkeypatch.setattr(backtracking, "TRIAL_CPU_SECONDS", 1)
    symbols = SymbolTable()
    ids = symbols.intern_texts(["(?i)" + 4000 * "[\x01-\uffff]" + r"(a)\1", "aa"])
    begun = time.process_time()
    with pytest.raises(DlogError, match="takes more than 1 seconds"):
        match(ids[:1], ids[1:], symbols, True)
    assert time.process_time() - begun < 5


REPEATING = r"(?=a)(?:(a)|b)*c"
"""Python keeps a place for each time that the group is repeated: 140 bytes for each of a text's."""


def test_a_pattern_that_takes_more_memory_than_there_is_is_told(tmp_path: Path) -> None:
    (tmp_path / "t.facts").write_text(4_000_000 * "a" + "\n")
    (tmp_path / "p.dl").write_text(
        f'.decl t(x: symbol)\n.input t\n.decl p(x: symbol)\np(x) :- t(x), match("{REPEATING}", x).\n.printsize p'
    )
    done = dlog("run", "p.dl", "--memory", "100M", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert f'out of memory: match("{REPEATING}") takes more than the' in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_patterns_have_a_bound_of_memory_without_a_limit_and_within_one(monkeypatch: pytest.MonkeyPatch) -> None:
    text = 2_000_000 * b"a"
    with pytest.raises(DlogError, match="out of memory: match"), within(1 << 26):
        fullmatches(REPEATING, text, np.array([len(text)]))
    with pytest.raises(DlogError, match="out of memory: regex_captures"), within(1 << 26):
        captured("(a)", [text.decode()])
    assert not fullmatches(REPEATING, text, np.array([len(text)]))[0]
    with within(0):
        assert fullmatches(r"(a)\1", b"aaa", np.array([2, 3])).tolist() == [True, False]
    monkeypatch.setattr(backtracking, "TRIAL_BYTES", 1 << 20)
    with pytest.raises(DlogError, match="out of memory: match"):
        fullmatches(REPEATING, text, np.array([len(text)]))


def test_why_a_pattern_is_none_is_told_as_python_says(tmp_path: Path) -> None:
    code, out, err = run(tmp_path, "(?=é)(?P<é>", "a")
    assert (code, out) == (0, "p\t0\n")
    assert err.startswith("warning: wrong pattern") and "missing ), unterminated subpattern at position 5" in err


@pytest.mark.slow
def test_references_and_look_around_hold_as_python_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backtracking, "TEXTS_PER_TRIAL", 7)
    chosen = random.Random(1)
    texts = ["".join(chosen.choices("abé", k=chosen.randrange(6))) for _ in range(100)]
    ends = np.cumsum([len(text.encode()) for text in texts])
    for pattern in (r"(.*)\1", r"(?=a)..", r"(?=é).", r"(?<!b)a*"):
        expected = [re.fullmatch(pattern, text) is not None for text in texts]
        assert fullmatches(pattern, "".join(texts).encode(), ends).tolist() == expected and any(expected)


def test_a_pattern_too_deep_for_anybody_is_a_wrong_one(tmp_path: Path) -> None:
    code, out, err = run(tmp_path, 5000 * "(?=" + "a" + 5000 * ")", "a")
    assert (code, out) == (0, "p\t0\n") and err.startswith("warning: wrong pattern")


@pytest.mark.slow
def test_nothing_is_left_running(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backtracking, "TRIAL_CPU_SECONDS", 1)
    with pytest.raises(DlogError, match="takes more than 1 seconds"):
        fullmatches(r"(a+)+(?=b)", 64 * b"a", np.array([64]))


@pytest.mark.parametrize("opening", ["[", "\\p{", "[\\"])
def test_braces_are_looked_for_in_time(opening: str) -> None:
    assert loose_brace(100_000 * opening) is None
    assert loose_brace(f"a{{x}}{100_000 * opening}") == 1
