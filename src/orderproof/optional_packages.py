"""Checks that optional packages are installed, before anything is loaded or trained."""

from __future__ import annotations

import importlib.util

from orderproof.errors import UsageError


def require_packages(what: str, *packages: str, extra: str, otherwise: str = "") -> None:
    """Raise `UsageError` where a package is not installed; it names the extra and the alternative."""
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        names = " and ".join(missing)
        raise UsageError(f"{what} needs {names}: pip install 'orderproof[{extra}]'{otherwise and f'; or {otherwise}'}")
