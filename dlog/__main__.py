"""The `dlog` command: from its arguments to an exit code.

0 is success, 1 the user's mistake (diagnostics on standard error), 2 a mistake of dlog (one line naming the stage; `--debug`
shows the traceback), 130 an interruption. Modules are imported as late as possible: `dlog --version` imports nothing else.
"""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from dlog.grammar.diagnostics import DlogError

USER_ERROR = 1
INTERNAL_ERROR = 2
INTERRUPTED = 130


def run_command(arguments: list[str]) -> int:
    """Runs one command line and returns its exit code; nothing escapes but a second interruption."""
    if arguments in (["--version"], ["-V"]):
        from dlog import __version__

        print(f"dlog {__version__}")
        return 0
    debug = "--debug" in arguments
    try:
        from dlog.cli import invoke

        return invoke([argument for argument in arguments if argument != "--debug"])
    except KeyboardInterrupt:
        return _report("interrupted", INTERRUPTED)
    except BrokenPipeError:
        _silence_stdout()
        return 0
    except Exception as error:
        return _failure(error, debug)


def _failure(error: Exception, debug: bool) -> int:
    """Prints what went wrong and returns the exit code that says whose mistake it was."""
    from dlog.grammar.diagnostics import DlogError, InternalError

    if isinstance(error, DlogError):
        return _report(_rendered(error), USER_ERROR)
    if debug:
        import traceback

        traceback.print_exception(error)
    hint = "" if debug else " (--debug shows the traceback)"
    if isinstance(error, InternalError):
        return _report(f"{error}{hint}", INTERNAL_ERROR)
    return _report(f"internal error in the command line: {type(error).__name__}: {error}{hint}", INTERNAL_ERROR)


def _rendered(error: DlogError) -> str:
    from dlog.grammar.diagnostics import render

    return "\n\n".join(render(diagnostic).rstrip("\n") for diagnostic in error.diagnostics)


def _report(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code


def _silence_stdout() -> None:
    """The reader went away, which is its right: without this the interpreter complains again when it flushes at exit."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> NoReturn:
    """The console script."""
    # Starting makes many objects and hardly any garbage: looking for it costs a tenth of the time of `dlog check`.
    gc.set_threshold(100_000, 50, 100)
    code = run_command(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _silence_stdout()
    if code == INTERRUPTED:
        # A thread may still be inside a kernel or a reader; the interpreter would wait for it.
        import os

        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
