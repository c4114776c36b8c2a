"""Checks that optional packages are installed, before anything is loaded or trained."""

from __future__ import annotations

import importlib.util

from orderproof.errors import UsageError


def missing_packages(*packages: str) -> list[str]:
    """Those of the packages that are not installed."""
    return [package for package in packages if importlib.util.find_spec(package) is None]


def require_packages(what: str, *packages: str, extra: str, otherwise: str = "") -> None:
    """Raise `UsageError` where a package is not installed; it names the extra and the alternative."""
    if missing := missing_packages(*packages):
        names = " and ".join(missing)
        raise UsageError(f"{what} needs {names}: pip install 'orderproof[{extra}]'{otherwise and f'; or {otherwise}'}")
