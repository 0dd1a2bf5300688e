"""`dlog repl`: a session at the prompt, or fed from a pipe.

    statements   what was typed, cut into statements
    shell        executes statements on a session
    commands     the commands that begin with a dot
    screen       what is shown
    prompt       the line editor: highlighting, completion, history
"""

from __future__ import annotations

import sys
from io import TextIOWrapper

from dlog.repl.shell import ReplOptions, Shell

__all__ = ["ReplOptions", "Shell", "run_repl"]


def run_repl(options: ReplOptions) -> int:
    """Runs the REPL: at a terminal the prompt, else the lines of standard input; returns the exit code."""
    from dlog.repl.commands import obey
    from dlog.repl.screen import Screen

    if sys.stdin.isatty() and sys.stdout.isatty():
        from dlog.repl.prompt import converse

        return converse(Shell(options, Screen(sys.stdout, sys.stdout, colours=True), obey, interactive=True))
    from dlog.repl.pipe import obey_lines

    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")  # the parser says where bytes are none
    return obey_lines(Shell(options, Screen(sys.stdout, sys.stderr, colours=False), obey), sys.stdin)
