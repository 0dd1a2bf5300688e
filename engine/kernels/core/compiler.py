"""Numba, without what somebody may have left for it in the current folder.

It takes settings from `.numba_config.yaml` there, when it is imported and before it compiles, if PyYAML is installed: which
processor to compile for, or which file to write to.
"""

from __future__ import annotations

import os
import sys
import warnings
from types import ModuleType
from typing import Any


def import_numba() -> Any:
    """The module, which hears of settings by variables of the environment (`NUMBA_...`) alone."""
    if "numba" not in sys.modules:
        _import_without_files()
    import numba
    from numba.core import config

    config._config_fname = os.devnull
    return numba


def _import_without_files() -> None:
    """Numba reads files of settings only where it can import PyYAML."""
    known: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    yaml = sys.modules.get("yaml")
    known["yaml"] = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of files that it does not read
            import numba  # noqa: F401
    finally:
        del known["yaml"]
        if yaml is not None:
            known["yaml"] = yaml
