"""Includes and macros: the text that comes out, the places it came from, and what can go wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dlog.__main__ import run_command
from dlog.grammar import macros
from dlog.grammar.diagnostics import DlogError, render_all
from dlog.grammar.parser import parse
from dlog.grammar.preprocess import preprocess
from dlog.grammar.printer import format_program
from dlog.grammar.source import Source


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(files: dict[str, str]) -> Path:
    """The files, in the current directory; the path of the first."""
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    return Path(next(iter(files)))


def clauses(source: Source) -> str:
    return format_program(parse(source))


def errors(program: Path | str, *include_dirs: str) -> str:
    with pytest.raises(DlogError) as caught:
        parse(preprocess(program, include_dirs))
    return render_all(caught.value.diagnostics)


def place(source: Source, what: str) -> tuple[str, int, int]:
    location = source.locate(source.text.index(what))
    return location.file, location.line, location.column


def test_a_text_without_directives_is_taken_as_it_is() -> None:
    assert preprocess("a(1). // #include\n").text == "a(1). // #include\n"


def test_pcpp_is_imported_only_where_it_is_needed() -> None:
    code = "import sys; from dlog.grammar.preprocess import preprocess; preprocess('a(1).'); sys.exit('pcpp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False).returncode == 0


def test_macros_and_conditions() -> None:
    text = '#define N 5 // five\n#define E(x,y) e(x, y)\n#ifdef DEBUG\nd(N).\n#else\nE(N,"N").\n#endif\n'
    assert clauses(preprocess(text)) == 'e(5, "N").\n'
    assert clauses(preprocess(text, macros=["DEBUG"])) == "d(5).\n"


def test_macros_from_the_command_line() -> None:
    assert clauses(preprocess("a(N, F).", macros=["N=7", "F"])) == "a(7, 1).\n"


def test_a_macro_over_several_lines_keeps_the_lines_after_it() -> None:
    source = preprocess("#define TWO a(1). \\\n  a(2).\n/* two\n lines */ b(1).\nTWO\nc(1).")
    assert clauses(source) == "b(1).\na(1).\na(2).\nc(1).\n"
    assert [place(source, w) for w in ("b(1)", "a(2)", "c(1)")] == [
        ("<text>", 4, 11),
        ("<text>", 5, 9),
        ("<text>", 6, 1),
    ]


def test_files_in_angle_brackets_come_from_include_dirs_or_beside_the_program(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never from the current folder."""
    main = write({"a/main.dl": "#include <x.dl>\n", "a/x.dl": "beside(1).", "b/x.dl": "dir(1).", "c/x.dl": "current(1)."})
    monkeypatch.chdir(main.resolve().parents[1] / "c")
    main = Path("../a/main.dl")
    assert clauses(preprocess(main)) == "beside(1).\n"
    assert clauses(preprocess(main, ["../b"])) == "dir(1).\n"
    Path("../a/x.dl").unlink()
    assert "cannot find the file `x.dl`" in errors(main)


@pytest.mark.parametrize("include", ['#include "x.dl"', '.include "x.dl"', "#include <x.dl>"])
def test_a_text_includes_from_include_dirs_before_the_current_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, include: str
) -> None:
    """Which may be anybody's; a file of the text's own name changes nothing."""
    here = write({"c/x.dl": "current(1).", "c/<text>": "", "b/x.dl": "dir(1)."}).resolve().parents[1] / "c"
    monkeypatch.chdir(here)
    assert clauses(preprocess(f"{include}\n", ["../b"])) == "dir(1).\n"
    assert clauses(preprocess(f"{include}\n")) == "current(1).\n"


def test_places_point_into_included_files(folder: Path) -> None:
    main = write(
        {
            "main.dl": '#include "lib/types.dl"\n.include "lib/rules.dl"  // note\n  last(1).\n',
            "lib/types.dl": ".once\n.decl t(x: number)\n",
            "lib/rules.dl": '#include "types.dl"\n\nrule(x) :-  t(x).',
        }
    )
    source = preprocess(main)
    assert clauses(source) == ".decl t(x: number)\nrule(x) :- t(x).\nlast(1).\n"
    assert place(source, ".decl") == (str(Path("lib/types.dl")), 2, 1)
    assert place(source, "t(x).") == (str(Path("lib/rules.dl")), 3, 13)
    assert place(source, "last") == ("main.dl", 3, 3)


def test_include_dirs_are_searched(folder: Path) -> None:
    main = write({"a/main.dl": '.include "x.dl"', "b/x.dl": "x(1)."})
    assert clauses(preprocess(main, ["b"])) == "x(1).\n"


def test_file_and_line_survive_inclusion(folder: Path) -> None:
    main = write({"main.dl": '\n.include "x.dl"\na(__FILE__, __LINE__).', "x.dl": "\n\nx(__FILE__, __LINE__)."})
    assert clauses(preprocess(main)) == 'x("x.dl", 3).\na("main.dl", 3).\n'


def test_line_separators_inside_strings_do_not_move_lines() -> None:
    source = preprocess('#define A 1\na("\u2028\x0b\x85").\nb(A).')
    assert place(source, "b(1)") == ("<text>", 3, 1)


def test_a_syntax_error_is_shown_in_the_included_file(folder: Path) -> None:
    main = write({"main.dl": '.include "x.dl"\na(1).', "x.dl": "ok(1).\nbad(1 2)."})
    assert errors(main) == "error: missing `,`\n --> x.dl:2:6\n  |\n2 | bad(1 2).\n  |      ^\n  = before `2`"


def test_all_preprocessor_errors_at_once(folder: Path) -> None:
    main = write({"main.dl": '.include "no.dl"\n#defin X\n#error stop here\n#if 1\n'})
    assert errors(main, "lib") == "\n\n".join(
        [
            'error: cannot find the file `no.dl`\n --> main.dl:1:11\n  |\n1 | .include "no.dl"\n  |           ^^^^^\n'
            "  = searched in `.`, `lib`",
            "error: unknown preprocessor directive `#defin`\n --> main.dl:2:2\n  |\n2 | #defin X\n  |  ^^^^^\n"
            "  = did you mean `#define`?",
            "error: #error stop here\n --> main.dl:3:1\n  |\n3 | #error stop here\n  | ^^^^^^^^^^^^^^^^",
            "error: unterminated #if 1\n --> main.dl:4:1\n  |\n4 | #if 1\n  | ^^^^^",
        ]
    )


def test_a_file_that_includes_itself_is_an_error(folder: Path) -> None:
    assert "this file includes itself without end" in errors(write({"main.dl": '.include "main.dl"\n'}))


def test_a_file_with_once_may_include_itself(folder: Path) -> None:
    assert clauses(preprocess(write({"main.dl": '.once\n.include "main.dl"\na(1).'}))) == "a(1).\n"


def test_a_missing_program_is_an_error(folder: Path) -> None:
    assert errors(Path("no.dl")) == "error: cannot read `no.dl`: no such file or directory\n --> no.dl"


def test_a_program_that_is_not_utf8_is_an_error(folder: Path) -> None:
    Path("latin.dl").write_bytes(b'a(1).\nb("\xe9").')
    assert (
        errors(Path("latin.dl"))
        == 'error: `latin.dl` is not UTF-8 text: byte 0xe9\n --> latin.dl:2:4\n  |\n2 | b("\\xe9").\n  |    ^^^^'
    )


def test_the_width_of_numbers_is_known_to_macros() -> None:
    text = "#if RAM_DOMAIN_SIZE == 64\na(64).\n#else\na(32).\n#endif"
    assert clauses(preprocess(text)) == "a(64).\n"
    assert clauses(preprocess(text, macros=["RAM_DOMAIN_SIZE=32"])) == "a(32).\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#define", "`#define` needs a name"),
        ("#undef ", "`#undef` needs a name"),
        ("#ifdef", "`#ifdef` needs a name"),
        ("#ifndef", "`#ifndef` needs a name"),
        ("#if", "empty expression"),
        ("#if !", "could not evaluate expression due to SyntaxError('at EOF') (passed to evaluator: '!')"),
        ("#pragma", "`#pragma` needs a word"),
        ("#include", "`#include` needs a file"),
        ("#if 0\n#elif", "empty expression"),
    ],
)
def test_a_directive_that_says_nothing_is_shown(line: str, expected: str) -> None:
    shown = errors(f"a(1).\n{line}\n#endif\n")
    assert f"error: {expected}\n --> <text>:{2 + line.count(chr(10))}:1\n" in shown


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#if", "`#if` needs a condition"),
        ("#if !", "`#if` cannot be understood"),
        ("#if !defined", "`#if` cannot be understood"),
        ("#if !defined(", "`#if` cannot be understood"),
    ],
)
def test_a_condition_that_says_nothing_is_shown_at_the_top_of_a_file(line: str, expected: str) -> None:
    assert errors(f"{line}\n#endif\n").startswith(f"error: {expected}\n --> <text>:1:1\n")


@pytest.mark.parametrize("macro", ["", "=", "=3", "(", "A B", "A(", "1"])
def test_a_macro_that_is_none_is_the_users_mistake(macro: str) -> None:
    with pytest.raises(DlogError, match="defines no macro"):
        preprocess("a(1).\n", macros=[macro])
    assert preprocess("A\n", macros=["A="]).text.strip() == ""


# ------------------------------------------------------------------------------------------------------------------- bounds


def doubling(first: str, times: int) -> str:
    return f"#define A0 {first}\n" + "".join(f"#define A{i} A{i - 1} A{i - 1}\n" for i in range(1, times + 1))


@pytest.fixture
def bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(macros, "MOST_OF_A_LINE", 20_000)
    monkeypatch.setattr(macros, "MOST_OF_ALL", 50_000)
    monkeypatch.setattr(macros, "MOST_INCLUDES", 20)


@pytest.mark.usefixtures("bounds")
@pytest.mark.parametrize(
    ("text", "line", "used"),
    [
        (f".decl a(x: number)\n{doubling('x x', 60)}\nA60\n.output a\n", 64, "A60"),
        (f"{doubling('', 60)}.output b\nA60\n", 63, "A60"),
        (f"{doubling('1', 60)}#if A60\n#endif\n", 62, "#if A60"),
        (f"#define F(x) x x x x\n{'F(' * 9}a{')' * 9}\n", 2, f"{'F(' * 9}a{')' * 9}"),
        (f"#define C(x, y) x##y\n#define D(x) C(x, x)\n{'D(' * 40}a{')' * 40}\n", 3, f"{'D(' * 40}a{')' * 40}"),
        ("#define Q(x) #x\n#define R(x) Q(x)\n" + "R(" * 40 + '""' + ")" * 40 + "\n", 3, "R(R("),
    ],
)
def test_macros_that_stand_for_too_much_are_refused(text: str, line: int, used: str) -> None:
    said = errors(text)
    assert said.startswith("error: macros expand to too much here: more than 0 MiB, all steps counted\n")
    assert f"--> <text>:{line}:1\n" in said
    assert used in said


@pytest.mark.usefixtures("bounds")
def test_what_macros_stand_for_is_bounded_in_all() -> None:
    many = f"{doubling('x', 6)}" + "a(A6).\n" * 100
    assert "error: macros expand to too much up to here" in errors(many)
    assert errors(f"{doubling('x', 6)}" + "a(A6.\n" * 20).startswith("error: ")
    assert len(preprocess(doubling("x", 6) + "A6\n" * 20).text) > 20 * 2**6


def test_a_program_may_use_macros_on_many_lines() -> None:
    text = "#define T(x, y) t(x, y).\n" + "".join(f"T({i}, {i})\n" for i in range(300))
    assert preprocess(text).text.count("t(") == 300


@pytest.mark.usefixtures("bounds")
def test_files_that_include_each_other_twice_are_refused(folder: Path) -> None:
    first = write({**{f"f{i}.dl": f'#include "f{i + 1}.dl"\n' * 2 for i in range(40)}, "f40.dl": ""})
    assert errors(first).startswith("error: too much is included up to here: more than 20 files\n")


def test_a_long_file_is_not_included_again_and_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(macros, "MOST_AGAIN", 1 << 20)
    large = f"//{'x' * (1 << 20)}\n"
    written = {f"f{i}.dl": f'#include "f{i + 1}.dl"\n' * 9 for i in range(3)}
    said = errors(write({**written, "f3.dl": large[: 1 << 18]}))
    assert (
        said.startswith("error: too much is included again up to here: more than 1 MiB\n --> f2.dl:6:1\n") and "`.once`" in said
    )
    first = write({"f0.dl": "".join(f'#include "l{i}.dl"\n' for i in range(4)), **{f"l{i}.dl": large for i in range(4)}})
    assert len(preprocess(first).text) > 4 << 20  # each of them once


def test_a_file_that_includes_itself_twice_is_refused_once(folder: Path) -> None:
    said = errors(write({"self.dl": '#include "self.dl"\n' * 2}))
    assert said.startswith("error: this file includes itself without end\n") and said.count("error") == 1


@pytest.mark.usefixtures("bounds")
def test_the_command_line_says_so_with_the_exit_code_of_mistakes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write({"p.dl": f"{doubling('x', 40)}A40\n"})
    assert run_command(["check", "p.dl"]) == 1
    assert capsys.readouterr().err.startswith("error: macros expand to too much here")


def test_a_shift_by_more_bits_than_there_are_is_a_mistake() -> None:
    """Whose number would be made first, of as many bits."""
    assert preprocess("#if 1 << 63\nyes\n#endif\n").text.strip() == "yes"
    for value in ("1", "1u"):
        with pytest.raises(DlogError, match="a number of 64 bits is shifted by 64"):
            preprocess(f"#if {value} << 64\n#endif\n")
