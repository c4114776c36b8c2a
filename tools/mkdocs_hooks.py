"""Hooks of mkdocs for the navigation and the code fences of this documentation.

In the navigation, `folder/*` expands to every page of the folder that is not listed elsewhere. A folder that does not
exist, or has no other page, is left out.

The language of a fence may be followed by words for the tests ("text output", "console long"), which the Markdown
extensions do not accept. Blocks of output get a title, and the other words are removed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

Menu = list[Any]

_FENCE = re.compile(r"^```(?P<language>\w+)(?P<words>(?: +\w+)+)(?P<rest>(?: +\w+=.*)?)$", re.MULTILINE)


def on_config(config: Any) -> Any:
    """Expand the navigation. Called by mkdocs after it has read mkdocs.yml."""
    folder = Path(config["docs_dir"])
    config["nav"] = expand_menu(config["nav"], folder, set(listed_pages(config["nav"])))
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Remove the words for the tests from the fences. Called by mkdocs with the text of each page."""
    return _FENCE.sub(_plain, markdown)


def _plain(fence: re.Match[str]) -> str:
    title = ' title="prints"' if "output" in fence["words"].split() else ""
    return f"```{fence['language']}{title}{fence['rest']}"


def listed_pages(menu: Menu | str) -> list[str]:
    """The pages that a menu lists individually."""
    if isinstance(menu, str):
        return [] if menu.endswith("/*") else [menu]
    return [
        page for item in menu for page in listed_pages(next(iter(item.values())) if isinstance(item, dict) else item)
    ]


def expand_menu(menu: Menu, folder: Path, elsewhere: set[str]) -> Menu:
    """The menu with each folder replaced by its pages."""
    expanded: Menu = []
    for item in menu:
        if isinstance(item, dict):
            ((title, below),) = item.items()
            if isinstance(below, str) and not below.endswith("/*"):
                expanded.append(item)
            elif pages := expand_menu([below] if isinstance(below, str) else below, folder, elsewhere):
                expanded.append({title: pages})
        elif item.endswith("/*"):
            pages = sorted(p.relative_to(folder).as_posix() for p in (folder / item[:-2]).glob("*.md"))
            expanded += [page for page in pages if page not in elsewhere]
        else:
            expanded.append(item)
    return expanded
