"""Bench of rules heavy in string functors: four at a time over 500,000 rows of a number and a name, dlog and Souffle.

Rules that add nothing but functors to a scan show what these cost; the last ones make their strings by recursion, one after the
other.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np

from tests.bench import engine_dlog, engine_souffle
from tests.bench.inputs import cache_folder
from tests.bench.process import Options, best_seconds
from tests.bench.report import as_ratio, geometric_mean, quotient, save, seconds_or_reason, show

ROWS = 500_000
BOUND = 1.0
"""dlog's time, at most, as a multiple of the Souffle interpreter's, in the geometric mean; on one rule NOISE more."""
NOISE = 1.25
SYLLABLES = ("ka", "lo", "mi", "ter", "son", "van", "\xe9", "berg", "str\xf6m", "da", "ri", "qu", "el", "ny")
DECLARATIONS = """\
.decl person(id: number, name: symbol)
.input person
"""
FOUR = """\
.decl mail(id: number, address: symbol)
.decl initial(id: number, start: symbol, length: number)
.decl early(id: number)
.decl found(id: number)
.printsize mail
.printsize initial
.printsize early
.printsize found
mail(x, cat(n, cat("@", cat(to_string(x), ".org")))) :- person(x, n).
initial(x, substr(n, 0, 3), strlen(n)) :- person(x, n).
early(x) :- person(x, n), n < "m", n >= "da".
found(x) :- person(x, n), contains("son", cat(n, substr(n, 0, 2))).
"""
EACH = {
    "cat": 'out(x, cat(n, "@")) :- person(x, n).',
    "to_string": "out(x, to_string(x + @)) :- person(x, n).",
    "substr": "out(x, substr(n, @, 3)) :- person(x, n).",
    "strlen": "out(x, n) :- person(x, n), strlen(n) % 5 = @.",
    "order": 'out(x, max(n, "m@")) :- person(x, n), n > "b".',
    "match": 'out(x, n) :- person(x, n), match("[a-m]*.*@", n).',
    "to_number": "out(to_number(cat(to_string(x), to_string(@))), n) :- person(x, n).",
    "few rows": "out(x, cat(n, to_string(y))) :- person(x, n), y = x * 7, x % 64 = @, strlen(n) > 3.",
    "recursion": "out(x, n) :- person(x, n), x = @.\n"
    "out(y, substr(cat(to_string(y), s), 0, 20)) :- out(x, s), y = x + 5, y < 2000.",
}
"""Rules of which each program has four, with 1 to 4 for @ and a relation for each."""
OUT = ".decl out(id: number, text: symbol)\n.printsize out\n"


def four(rules: str) -> str:
    return "".join((OUT + rules + "\n").replace("@", str(k)).replace("out", f"out{k}") for k in range(1, 5))


PROGRAMS = {"mixed": FOUR} | {name: four(rules) for name, rules in EACH.items()}


def run(options: Options) -> bool:
    """Measures, prints and saves; false when answers differ or dlog is slower than its bound."""
    engines = [engine for engine in ("dlog", "souffle") if engine in options.engines]
    figures: dict[str, dict[str, float | str]] = {}
    for name, program in PROGRAMS.items():
        answers: dict[str, dict[str, int]] = {}
        figures[name] = {
            engine: best_seconds(options.repeats, lambda e=engine, p=program, a=answers: measured(e, p, a, options.timeout))
            for engine in engines
        }
        if len({tuple(sorted(answer.items())) for answer in answers.values()}) > 1:
            figures[name]["dlog"] = f"wrong answer: {answers}"
    ratios = {name: quotient(row.get("dlog", "-"), row.get("souffle", "-")) for name, row in figures.items()}
    known = [ratio for ratio in ratios.values() if ratio is not None]
    mean = geometric_mean(known) if known else None
    rows = [[name, *(seconds_or_reason(row[e]) for e in engines), as_ratio(ratios[name])] for name, row in figures.items()]
    rows.append(["geometric mean", *("" for _ in engines), as_ratio(mean)])
    show(f"string functors on {ROWS:,} rows (bound: {BOUND})", ["rules", *engines, "dlog / souffle"], rows)
    save("strings", {"seconds": figures, "ratios": ratios, "mean": mean, "bound": BOUND}, options.json)
    right = all(not isinstance(row.get("dlog", 0.0), str) for row in figures.values())
    return right and all(ratio <= BOUND * NOISE for ratio in known) and (mean is None or mean <= BOUND)


def measured(engine: str, rules: str, answers: dict[str, dict[str, int]], timeout: float) -> float:
    """Seconds of evaluation; the sizes of the results go to `answers`."""
    text = DECLARATIONS + rules
    if engine == "souffle":
        command = engine_souffle.interpreted
        load = engine_souffle.load_cost(DECLARATIONS + ".printsize person\n", facts(), command)
        cost, answers[engine] = engine_souffle.execute(command(text), facts(), timeout)
        return max(cost.seconds - load.seconds, 0.001)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.dl"
        program.write_text(text, encoding="ascii")
        done = engine_dlog.execute(program, facts(), timeout)
    answers[engine] = {name: size for name, size in done.relations.items() if f".printsize {name}\n" in text}
    return done.evaluate_seconds


def facts() -> Path:
    """The folder of person.facts, written first if it is not there yet."""
    folder = cache_folder() / "strings"
    if not folder.is_dir():
        unfinished = folder.with_name(f".{folder.name}.{os.getpid()}")
        unfinished.mkdir(parents=True)
        (unfinished / "person.facts").write_text("".join(people(ROWS)), encoding="utf-8")
        unfinished.rename(folder)
    return folder


def people(count: int) -> list[str]:
    """Lines of a number and a name of one to four syllables and a number: one name in ten is not new."""
    rng = np.random.default_rng(10)
    syllables, lengths = rng.integers(0, len(SYLLABLES), (count, 4)).tolist(), rng.integers(1, 5, count).tolist()
    names = ("".join(SYLLABLES[s] for s in row[:length]) for row, length in zip(syllables, lengths, strict=True))
    return [f"{i}\t{name}{i % 9973}\n" for i, name in enumerate(names)]
