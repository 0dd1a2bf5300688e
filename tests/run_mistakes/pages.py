"""The pages of mistakes that are told when something runs, one for each area."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.run_mistakes import AREAS
from tests.run_mistakes.example import Example, said

_TEXTS: Final = {
    "commands": """# Mistakes of commands

What is wrong with a command line, with the program it names, with what is typed at the prompt, or with a stream of changes is
told on standard error, with exit code 1. The prompt goes on behind it.
""",
    "files": """# Mistakes of files

What is wrong in a file is told with its name, the line and the column; what is wrong with the whole of it, with the directive
that names it. [Files](../files.md) says what may be in them, and how wrong rows are left out.
""",
    "runs": """# Mistakes of runs

What values do to a program, limits that it comes to, and what `dlog.run` is given. A rule that was being evaluated is shown.
""",
    "sessions": """# Mistakes of sessions

What a session, its transactions, queries, proofs and subscriptions refuse. What was committed before stays as it is, and so
does what is staged. The prompt, which is a session, says the same.
""",
    "states": """# Mistakes of states

What is wrong with the folder in which a session survives (`state=` in Python, `--state` of commands). Nothing is changed in a
folder that is refused.
""",
    "graphs": """# Mistakes of graphs

What `dlog.graph` cannot make a graph of, and what a graph is asked that it cannot answer.
""",
    "dataflows": """# Mistakes of dataflows

What is wrong with a [dataflow](../dataflow.md). Most of it is told while the dataflow is made, the rest by the batch that
meets it.
""",
    "spark": """# Mistakes of Spark

What is wrong with a run, a session or a graph on Spark. Messages, which are Spark's in part, are left out here.
""",
}
_BEHIND: Final = """
The heading of each entry is the code, in Python that of `error.diagnostics[0]` of a `dlog.DlogError`. [Mistakes of
programs](mistakes.md) have a page of their own.
"""


def name_of(area: str) -> str:
    return f"mistakes_of_{area}.md"


def page(area: str) -> str:
    """The text of an area's page."""
    parts = [_TEXTS[area] + _BEHIND]
    for code, example in sorted(AREAS[area].items()):
        parts += [f"## {code}\n", f"{example.meaning}\n", *_shown(code, example)]
    return "\n".join(parts).rstrip("\n") + "\n"


def _shown(code: str, example: Example) -> Iterator[str]:
    if not example.runs:
        yield f"There is no example: {example.why}.\n"
        return
    if example.slow:
        yield "It takes some time:\n"
    if example.python:
        yield f"```py\n{example.python}\n```\n"
    else:
        yield f"```\n{''.join(_typed(example))}```\n"
    if example.shows:
        texts = [text for found, text in said(example) if found == code]
        yield "```\n" + "\n\n".join(texts) + "\n```\n"


def _typed(example: Example) -> Iterator[str]:
    for name, text in example.files:
        if all(c.isprintable() or c in "\t\n" for c in text):
            yield f"$ cat {name}\n{text}"
        else:
            yield f"$ printf '{_escaped(text)}' > {name}\n"
    yield f"$ {example.command}"
    yield f" <<'END'\n{example.typed}END\n" if example.typed else "\n"


def _escaped(text: str) -> str:
    """A text that is none for an editor, as `printf` takes it."""
    data = text.encode("utf-8", "surrogateescape")
    return "".join("\\n" if b == 10 else chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02x}" for b in data)
