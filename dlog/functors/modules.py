"""The modules with functions that a user names."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

from dlog.functors.failures import place_of
from dlog.grammar.diagnostics import Diagnostic, DlogError

LOADED: Final = "dlog functors of "
"""Begins the names of the modules that users name, which nobody can import."""


def load_modules(names: Sequence[str], folders: Sequence[str]) -> list[ModuleType]:
    """The modules that the user has named, from files `NAME.py` in the first folder that has one. Nothing else is looked for:
    neither their folder nor the current one can be imported from."""
    return [_loaded(name, folders or (".",)) for name in names]


class _Source(SourceFileLoader):
    """Runs what the file says, and not what `__pycache__` beside it has for it, which somebody else may have put there."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _loaded(name: str, folders: Sequence[str]) -> ModuleType:
    file = next((f for folder in folders if (f := Path(folder) / f"{name.removesuffix('.py')}.py").is_file()), None)
    if file is None:
        notes = (f"it is looked for in {', '.join(folders)}: name its folder with -L",)
        raise DlogError(Diagnostic("missing-file", f"there is no module {name.removesuffix('.py')}.py", notes=notes))
    name = f"{LOADED}{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file, loader=_Source(name, str(file)))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for what looks itself up: dataclasses do
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        where = place_of(error.__traceback__, str(file))
        if isinstance(error, SyntaxError):
            where = f"{error.filename}, line {error.lineno}"
        message = f"the module {file} cannot be loaded: {type(error).__name__}: {error}"
        raise DlogError(Diagnostic("functor-failed", message, notes=(f"in {where}",))) from error
    return module
