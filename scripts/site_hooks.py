"""For mkdocs: what this project's pages say that mkdocs does not know.

In the menu, ``folder/*`` stands for every page of that folder that is not named elsewhere. A page is added by its file;
a folder that is not there, or has no other page, takes no place in the menu.

Behind the language of a fence stand words for the tests ("text output", "console long"), which the extensions of
Markdown do not read: what a block prints gets a title, the other words go.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

Menu = list[Any]

_FENCE = re.compile(r"^```(?P<language>\w+)(?P<words>(?: +\w+)+)(?P<rest>(?: +\w+=.*)?)$", re.MULTILINE)


def on_config(config: Any) -> Any:
    """Write the menu out. Called by mkdocs when it has read mkdocs.yml."""
    folder = Path(config["docs_dir"])
    config["nav"] = written_out(config["nav"], folder, set(named(config["nav"])))
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Take the tests' words off the fences. Called by mkdocs with the text of each page."""
    return _FENCE.sub(_plain, markdown)


def _plain(fence: re.Match[str]) -> str:
    title = ' title="prints"' if "output" in fence["words"].split() else ""
    return f"```{fence['language']}{title}{fence['rest']}"


def named(menu: Menu | str) -> list[str]:
    """The pages a menu names one by one."""
    if isinstance(menu, str):
        return [] if menu.endswith("/*") else [menu]
    return [page for item in menu for page in named(next(iter(item.values())) if isinstance(item, dict) else item)]


def written_out(menu: Menu, folder: Path, elsewhere: set[str]) -> Menu:
    """The menu with pages in the place of folders."""
    made: Menu = []
    for item in menu:
        if isinstance(item, dict):
            ((title, below),) = item.items()
            if isinstance(below, str) and not below.endswith("/*"):
                made.append(item)
            elif pages := written_out([below] if isinstance(below, str) else below, folder, elsewhere):
                made.append({title: pages})
        elif item.endswith("/*"):
            pages = sorted(p.relative_to(folder).as_posix() for p in (folder / item[:-2]).glob("*.md"))
            made += [page for page in pages if page not in elsewhere]
        else:
            made.append(item)
    return made
