"""The `dlog` command: from its arguments to an exit code.

0 is success, 1 the user's mistake (diagnostics on standard error), 2 a mistake of dlog (one line naming the stage; `--debug`
shows the traceback), 130 an interruption. Modules are imported as late as possible: `dlog --version` imports nothing else.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from typing import NoReturn, TextIO

USER_ERROR = 1
INTERNAL_ERROR = 2
INTERRUPTED = 130


def run_command(arguments: list[str]) -> int:
    """Runs one command line and returns its exit code; nothing escapes but KeyboardInterrupt."""
    debug = "--debug" in arguments
    try:
        if arguments in (["--version"], ["-V"]):
            from dlog.version import __version__

            print(f"dlog {__version__}")
            return 0
        from dlog.command.cli import invoke

        return invoke([argument for argument in arguments if argument != "--debug"])
    except Exception as error:
        if _of_an_interruption(error):
            raise KeyboardInterrupt from error
        return _failure(error, debug)


def _of_an_interruption(error: BaseException | None) -> bool:
    """Whether it came up while something cleaned up after an interruption: a module that is half imported, say, fails."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _failure(error: Exception, debug: bool) -> int:
    """Prints what went wrong and returns the exit code that says whose mistake it was."""
    if isinstance(error, BrokenPipeError):
        return 0
    if isinstance(error, OSError):
        return _unwritable(error)
    from dlog.grammar.diagnostics import DlogError, InternalError, one_line

    if debug and (error.__cause__ is not None or not isinstance(error, DlogError)):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, DlogError):
        return _report(str(error), USER_ERROR)
    hint = "" if debug else " (--debug shows the traceback)"
    if isinstance(error, InternalError):
        return _report(one_line(f"{error}{hint}"), INTERNAL_ERROR)
    return _report(one_line(f"internal error in the command line: {type(error).__name__}: {error}{hint}"), INTERNAL_ERROR)


def _unwritable(error: OSError) -> int:
    """Files are the stages' business; what is left is the place where the results are printed."""
    from dlog.grammar.diagnostics import one_line

    return _report(one_line(f"error: cannot write to {error.filename or 'standard output'}: {error.strerror}"), USER_ERROR)


def _report(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code


def _end_process(code: int) -> NoReturn:
    """Ends the process with all that it has written where it goes, and none of its folders left behind."""
    code = _flushed(code)
    if temporary := sys.modules.get("dlog.temporary"):
        temporary.remove_all()
    os._exit(code)


def _flushed(code: int) -> int:
    """The exit code once standard output has arrived where it goes; a reader that went away has a right to."""
    try:
        if not sys.stdout.closed:  # as a server leaves it
            sys.stdout.flush()
    except BrokenPipeError:
        pass
    except OSError as error:
        code = code or _unwritable(error)
    sys.stderr.flush()
    return code


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Shows a warning as what it is to the user: a remark about the program, wherever in dlog it was noticed."""
    from dlog.grammar.diagnostics import one_line

    lines = getattr(message, "lines", (str(message),))
    print("\n".join(map(one_line, (f"warning: {lines[0]}", *lines[1:]))), file=sys.stderr)


def _fill_streams() -> None:
    """Gives the numbers of standard streams that were closed to files that lead nowhere: else a file of results would get one,
    and what is said on that stream. What is printed where nothing can be is a mistake."""
    for name, how, mode in (("stdin", os.O_RDONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w")):
        if getattr(sys, name) is None:  # the lowest number that is free is its own
            number = os.open(os.devnull, how)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, mode, encoding="utf-8"))  # noqa: SIM115


def main() -> NoReturn:
    """The console script."""
    _fill_streams()
    warnings.showwarning = _warn
    # Starting makes some 105,000 objects and hardly any garbage: looking for it costs a tenth of the time of `dlog check`.
    gc.set_threshold(200_000, 50, 100)
    # NumPy's library of linear algebra starts a thread for each core, which look for work for 2^26 cycles before they sleep:
    # a core's time beside a start of a fifth of a second. Of 2^4 cycles nothing is seen.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    # Everything is written and closed: leaving without the interpreter's farewell saves its time, and after an interruption
    # nobody waits for a thread that is still inside a kernel. Profilers want `run_command` instead.
    try:
        code = run_command(sys.argv[1:])
    except KeyboardInterrupt:
        # Within this block the interrupted frames are alive, so no finalizer gets to say that what it needs is half done.
        _end_process(_report("interrupted", INTERRUPTED))
    _end_process(code)


if __name__ == "__main__":
    main()
