"""Random programs, run by dlog and by Soufflé's interpreter: both must write the same rows.

Programs come from the strategies of the property tests, put into what Soufflé has (`shared`): rules that need more are left
out, numbers are written with 32 bits and have as many as the interpreter's, inputs stand in files where these can hold them and
else in the text. Hypothesis makes what differs smaller. What Soufflé refuses or fails at is counted, with what it says.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.search import show
from tests.strategies import Case, Relation, Rule, graph_programs, random_programs
from tests.strategies_components import ComponentCase, component_programs
from tests.strategies_retention import plain_subsumption_programs
from tests.strategies_short import short_case
from tests.strategies_values import written

SECONDS = 10.0
"""For one program and one of the two."""
TIMEOUT = "timeout"
SHRINKING = 40.0
"""Seconds to make a difference smaller."""
BATCH = 300
"""Programs between two looks at the clock."""
LACKING = (
    *("abs", "bit_count", "byte_length", "byte_substr", "strpos", "year", "month", "day", "weekday", "days_between", "hour"),
    *("timestamp_of", "date_text", "date_of", "add_days", "add_months", "date", "floor", "ceil", "bit_xor"),
)
"""Functors and aggregates that Soufflé has not."""
_LACKING = re.compile(rf"\b({'|'.join(LACKING)})\b")
_NUMBER = re.compile(r"\"[^\"]*\"|(?<![\w.])\d[\w.]*(?:(?<=e)-\d+)?")
_WILDCARD = re.compile(r"!\w+\([^!;]*[\[($][^!;)\]]*\b_\b")
"""In a record of a negated atom: Soufflé finds it unbound."""
PLAIN = {"number", "unsigned", "float", "symbol"}
QUALIFIERS = ("", "", "", "", " brie", " btree", " no_inline", " magic", " inline")
PRAGMAS = ('.pragma "magic-transform" "*"', '.pragma "magic-transform-exclude" "d1"', '.pragma "inline-exclude" "d0"')

Draw = Any


@dataclass(frozen=True)
class Qualified(Relation):
    """A relation whose declaration says how it is to be kept or evaluated."""

    qualifier: str = ""

    @property
    def declaration(self) -> str:
        return Relation.declaration.fget(self) + self.qualifier  # type: ignore[attr-defined, no-any-return]


class Enough(KeyboardInterrupt):
    """What has been made smaller for long enough; Hypothesis lets nothing else through."""


@dataclass(frozen=True, slots=True)
class End:
    """How one of the two ended, and what it wrote: the rows of each file."""

    code: int
    said: str
    files: dict[str, list[str]]


# --------------------------------------------------------------------------------------------------------------- programs


def numeral(text: str) -> str:
    """A number as Soufflé writes it: without `_` and exponents."""
    if text.startswith('"'):
        return text
    return repr(float(text)) if re.search(r"\de-?\d", text) else text.replace("_", "")


def plain(text: str) -> str:
    return _NUMBER.sub(lambda found: numeral(found[0]), text)


def shared(case: Case) -> Case:
    """What both understand of a program, with numbers of 32 bits."""
    short = replace(short_case(case), pragmas=())
    rules = tuple(
        Rule(tuple(map(plain, rule.heads)), tuple(map(plain, rule.body)))
        for rule in short.rules
        if is_shared(re.sub(r'"[^"]*"', "", rule.text))
    )
    return replace(short, rules=rules)


def is_shared(rule: str) -> bool:
    """Whether Soufflé understands a rule, and as dlog does: it puts the value of an equation in the variable's places, so that
    an empty range is none where there are no places. A range in an aggregate is not one match for each value there, unless it
    is named, and one beside it may come to be in it."""
    ranges = re.findall(r"\b(v\d+) = range", rule)
    moved = any(len(re.findall(rf"\b{v}\b", rule)) == 1 for v in ranges) or ("range" in rule and "{" in rule)
    return not (moved or _LACKING.search(rule) or _WILDCARD.search(rule))


def without_logs(case: Case) -> Case:
    """Without `debug_delta`: the two need not find a row in the same iteration."""
    return replace(case, relations=tuple(r for r in case.relations if r.name != "d"))


def inherited_once(case: ComponentCase) -> Case:
    """Soufflé finds a relation declared twice that comes from a component over two ways."""
    return replace(case, written=case.written.replace("Side<T>, Base<T>", "Side<T>"))


@st.composite
def qualified(draw: Draw, cases: st.SearchStrategy[Case]) -> Case:
    """With qualifiers, pragmas and subsumptions, which change the way or keep fewer rows."""
    case: Case = draw(cases)
    relations = tuple(_qualified(draw, r) for r in case.relations)
    pragmas = tuple(draw(st.lists(st.sampled_from(PRAGMAS), max_size=1)))
    return replace(case, relations=relations, pragmas=pragmas)


def _qualified(draw: Draw, relation: Relation) -> Relation:
    if type(relation) is not Relation or relation.eqrel or not relation.stratum:
        return relation
    return Qualified(relation.name, relation.types, relation.stratum, qualifier=draw(st.sampled_from(QUALIFIERS)))


def programs() -> st.SearchStrategy[Case]:
    short = random_programs().map(shared)
    components = component_programs(short).map(lambda cases: inherited_once(cases[0]))
    retained = plain_subsumption_programs().map(without_logs)
    return st.one_of(short, qualified(short), qualified(short), components, graph_programs().map(shared), retained)


def text_of(case: Case) -> str:
    """The program with its directives, and with the facts that files could not hold."""
    inputs = [r for r in case.relations if r.name in case.facts]
    files = [f".input {r.name}" for r in inputs if in_file(r)]
    facts = [f"{r.name}({', '.join(map(written, row))})." for r in inputs if not in_file(r) for row in case.facts[r.name]]
    hidden = [r.name for r in case.relations if isinstance(r, Qualified) and r.qualifier == " inline"]
    outputs = [f".output {r.name}" for r in case.relations if r.name not in hidden]
    return case.text + "\n".join([*files, *facts, *outputs, ""])


def in_file(relation: Relation) -> bool:
    return bool(relation.types) and set(relation.types) <= PLAIN


# -------------------------------------------------------------------------------------------------------------- both runs


@contextmanager
def folder_of(case: Case) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="dlog-fuzz-") as name:
        folder = Path(name)
        (folder / "p.dl").write_text(text_of(case))
        for relation in case.relations:
            if relation.name in case.facts and in_file(relation):
                rows = ("\t".join(map(str, row)) + "\n" for row in case.facts[relation.name])
                (folder / f"{relation.name}.facts").write_text("".join(rows))
        for one in ("dlog", "souffle"):
            (folder / one).mkdir()
        yield folder


def by_souffle(interpreter: Path, folder: Path) -> End:
    command = [str(interpreter), "-F", ".", "-D", "souffle", "-w", "p.dl"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return End(-1, TIMEOUT, {})
    return End(done.returncode, done.stderr.decode(errors="replace"), rows_of(folder / "souffle"))


def word_size(interpreter: Path) -> str:
    """The bits of the interpreter's numbers, as it says them itself."""
    said = subprocess.run([str(interpreter), "--version"], capture_output=True, text=True, timeout=SECONDS, check=True).stdout
    found = re.search(r"Word size: (32|64) bits", said)
    if found is None:
        raise ValueError(f"{interpreter} --version does not say a word size: {said[:200]!r}")
    return found[1]


def by_dlog(folder: Path, bits: str) -> End:
    """In a process forked from this one, which has loaded everything."""
    process = multiprocessing.get_context("fork").Process(target=_dlog, args=(folder, bits))
    process.start()
    process.join(SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
        return End(-1, TIMEOUT, {})
    return End(process.exitcode or 0, (folder / "said").read_text(errors="replace"), rows_of(folder / "dlog"))


def _dlog(folder: Path, bits: str) -> None:
    from dlog.__main__ import run_command

    said = os.open(folder / "said", os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(said, stream)
    os.chdir(folder)
    code = run_command(["run", "p.dl", "-F", ".", "-D", "dlog", "-w", "-j", "1", "--word-size", bits, "--debug"])
    os._exit(code)


def _load() -> None:
    for name in ("dlog.command.cli", "dlog.command.findings", "dlog.display.progress", "dlog.interruption"):
        import_module(name)
    for name in ("formats.columnar", "formats.lines", "runtime.static.executor", "runtime.static.scope", "compiler"):
        import_module(f"dlog.engine.{name}")


def rows_of(folder: Path) -> dict[str, list[str]]:
    return {p.name: sorted(p.read_text(errors="surrogateescape").splitlines()) for p in folder.glob("*.csv")}


def difference(dlog: End, souffle: End) -> str:
    """What is not the same; empty where nothing is, or where one of the two gives no answer in time, or Soufflé none."""
    if dlog.said == TIMEOUT:
        return ""
    if dlog.code not in (0, 1):
        return f"dlog ends with {dlog.code}: {dlog.said[-1500:]}"
    if souffle.code:
        return ""
    if dlog.code:
        return f"dlog refuses: {dlog.said[:1500]}"
    if dlog.files.keys() != souffle.files.keys():
        return f"dlog writes {sorted(dlog.files)}, and Souffle {sorted(souffle.files)}"
    wrong = [name for name in sorted(dlog.files) if dlog.files[name] != souffle.files[name]]
    return "\n".join(f"{name}: dlog has {dlog.files[name]}, and Souffle {souffle.files[name]}" for name in wrong)


# ------------------------------------------------------------------------------------------------------------- the search


def compare(interpreter: Path, start: int, minutes: float) -> list[str]:
    """Tries programs until the time is over; the differences, each as small as it became."""
    _load()
    interpreter = interpreter.resolve()
    bits = word_size(interpreter)
    ends, found = Counter[str](), list[str]()
    stop, number = time.monotonic() + 60 * minutes, start * 100_000
    shown = 0
    while time.monotonic() < stop:
        if (told := _batch(interpreter, bits, number, ends)) is not None:
            found.append(told)
            show(f"{'=' * 80}\nseed {number}\n{told}")
        number += 1
        if sum(ends.values()) > shown + 2000:
            shown = sum(ends.values())
            show(f"-- {sum(ends.values())} programs: {dict(ends.most_common(12))}")
    show(f"seeds {start * 100_000} to {number - 1}: {len(found)} differences, {dict(ends.most_common())}")
    return found


def _batch(interpreter: Path, bits: str, number: int, ends: Counter[str]) -> str | None:
    last, stop = "", 0.0

    @seed(number)
    @settings(max_examples=BATCH, database=None, deadline=None, phases=[Phase.generate, Phase.shrink],
              suppress_health_check=list(HealthCheck), report_multiple_bugs=False)  # fmt: skip
    @given(programs())
    def same(case: Case) -> None:
        nonlocal last, stop
        if stop and time.monotonic() > stop:
            raise Enough
        with folder_of(case) as folder:
            souffle, dlog = by_souffle(interpreter, folder), by_dlog(folder, bits)
        told = difference(dlog, souffle)
        ends[_kind(dlog, souffle, told)] += 1
        if told:
            inputs = "\n".join(f"{name}: {rows}" for name, rows in case.facts.items())
            stop = stop or time.monotonic() + SHRINKING
            last = f"{told}\n{text_of(case)}{inputs}"
            raise AssertionError(told)

    try:
        same()
    except (AssertionError, Enough):
        return last
    return None


def _kind(dlog: End, souffle: End, told: str) -> str:
    if told:
        return "different"
    if souffle.code == 0:
        return "slow" if dlog.said == TIMEOUT else "same"
    said = next((line for line in souffle.said.splitlines() if "rror" in line), souffle.said[:80])
    reason = re.sub(r" in file .*|\b\w+\d\b|line \d+", "", said)[:70]
    return f"Souffle ends with {souffle.code}, dlog with {dlog.code}: {reason}"
