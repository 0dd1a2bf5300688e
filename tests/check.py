"""Every check in one command: `python -m tests.check`, the one task runner of the project.

Style (ruff), types (mypy), who imports whom (import-linter), then the tests; all run even if one fails. `--static` leaves the
tests out, `--rest` runs those that the default run leaves out, in its place: the slow tests, more examples of the property
tests, and the tests on Spark. Any other argument goes to pytest, but for the tests on Spark: `python -m tests.check -n 2`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
STATIC, REST = "--static", "--rest"
THOROUGH = ["-m", "(slow or hypothesis) and not exhaustive and not spark and not bench", "--hypothesis-profile", "full"]
SPARK = ["-m", "spark and not slow", "-rs"]


def commands(arguments: list[str]) -> dict[str, list[str]]:
    """Each check's name and its command line, quick ones first."""
    python, rest = sys.executable, [a for a in arguments if a not in (STATIC, REST)]
    imports = "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports_command; lint_imports_command()"
    checks = {
        "ruff": [python, "-m", "ruff", "check", "."],
        "mypy": [python, "-m", "mypy"],
        "import-linter": [python, "-c", imports, "--no-cache"],
    }
    if STATIC not in arguments and REST not in arguments:
        checks["pytest"] = [python, "-m", "pytest", *rest]
    if REST in arguments:
        checks["pytest, slow tests and more examples"] = [python, "-m", "pytest", *THOROUGH, *rest]
        checks["pytest, on Spark"] = [python, "-m", "pytest", *SPARK]
    return checks


def main(arguments: list[str]) -> int:
    """Runs all checks; returns 1 if any failed."""
    failed = []
    for name, command in commands(arguments).items():
        print(f"== {name}", flush=True)
        if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "all checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
