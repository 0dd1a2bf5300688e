"""dlog as a zip file, as a wheel has it."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

from tests.conftest import ROOT

FOLDERS = {"dlog": "dlog", "engine": "dlog/engine", "grammar": "dlog/grammar", "programs/graph": "dlog/graphs/programs"}
"""Where folders of the project are in a wheel; pyproject.toml says the same."""


def zip_of_dlog(path: Path) -> Path:
    with ZipFile(path, "w") as file:
        for folder, target in FOLDERS.items():
            for source in sorted((ROOT / folder).rglob("*")):
                if source.is_file() and "__pycache__" not in source.parts:
                    file.write(source, Path(target, source.relative_to(ROOT / folder)))
    return path
