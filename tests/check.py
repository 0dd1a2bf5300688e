"""Every check in one command: `python -m tests.check`.

Style (ruff), types (mypy), who imports whom (import-linter), then the tests; all run even if one fails. `--static` leaves the
tests out; any other argument goes to pytest: `python -m tests.check -n 2`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
STATIC = "--static"


def commands(arguments: list[str]) -> dict[str, list[str]]:
    """Each check's name and its command line, quick ones first."""
    python = sys.executable
    imports = "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports_command; lint_imports_command()"
    checks = {
        "ruff": [python, "-m", "ruff", "check", "."],
        "mypy": [python, "-m", "mypy"],
        "import-linter": [python, "-c", imports, "--no-cache"],
    }
    if STATIC not in arguments:
        checks["pytest"] = [python, "-m", "pytest", *arguments]
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
