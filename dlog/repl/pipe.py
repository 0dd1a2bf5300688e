"""The REPL fed from a pipe or a file: no prompt, plain output, an exit code."""

from __future__ import annotations

from collections.abc import Iterable

from dlog.repl.shell import Shell
from dlog.repl.statements import Statement, forced, split


def obey_lines(shell: Shell, lines: Iterable[str]) -> int:
    """Executes the statements of the lines as they come; 1 if something failed.

    Neighbouring clauses and declarations take effect together, when something else comes or at the end."""
    if shell.options.program is not None or shell.options.state is not None:
        shell.open()
    waiting: list[Statement] = []
    rest, first = "", 1
    for line in lines:
        text = rest + line
        found, rest = split(text, first)
        if not rest and found and found[-1].text.startswith(".type"):
            rest = text[text.rindex(found.pop().text) :]  # the next line may go on with `|`
        first += text.count("\n", 0, len(text) - len(rest))
        for statement in found:
            waiting.append(statement)
            if statement.kind != "program":
                shell.run(waiting)
                waiting = []
        if shell.done:
            return shell.close()
    shell.run([*waiting, *forced(rest, first)])
    return shell.close()
