"""The documentation site: built strictly, without network access, every page rendered."""

from __future__ import annotations

import functools
import http.server
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.browser import CHROMIUM, WHY_NOT, a_window, from_disk
from tests.docs.code_blocks import ROOT, blocks
from tests.pairs import first_soon

FETCHING_ATTRIBUTES = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "form": "action",
}
SHOWN = (
    "index.html",
    "explanation/why_positions.html",
    "reference/claims.html",
    "reference/laws.html",
    "evidence/atlas/atlas.html",
)


def build(project: Path, folder: Path) -> Path:
    """Build the site of a project into a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=project, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("site"))


class Page(HTMLParser):
    """The addresses that a browser would fetch for a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.styles: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag in FETCHING_ATTRIBUTES and (address := found.get(FETCHING_ATTRIBUTES[tag])):
            self.fetched.append(address)
        self.styles.append(found.get("style") or "")


def is_external(address: str) -> bool:
    return bool(re.match(r"\s*(?:[a-z][a-z0-9+.-]*:)?//|\s*(?:https?|ftp|wss?):", address, re.IGNORECASE))


def test_external_addresses_are_recognized():
    assert all(map(is_external, ("https://x/y.js", "//x/y.css", "http:x", " HTTPS://x")))
    assert not any(map(is_external, ("../assets/x.css", "index.html", ".", "/assets/x.js", "data:image/svg+xml,")))


def test_no_page_fetches_anything_from_the_network(site: Path):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        found = Page(page.read_text(encoding="utf-8"))
        assert found.fetched
        assert [a for a in found.fetched if is_external(a)] == [], page.relative_to(site)
        assert not any("url(" in style for style in found.styles)


def test_no_style_sheet_fetches_anything_from_the_network(site: Path):
    sheets = sorted(site.rglob("*.css"))
    assert sheets
    for sheet in sheets:
        text = sheet.read_text(encoding="utf-8")
        addresses = re.findall(r"url\(\s*[\"']?([^\"')]+)", text) + re.findall(r"@import\s+[\"']([^\"']+)", text)
        assert [a for a in addresses if is_external(a)] == [], sheet.name


def test_every_fence_is_rendered_as_a_block(site: Path):
    for source in sorted((ROOT / "docs").rglob("*.md")):
        built = site / source.relative_to(ROOT / "docs").with_suffix(".html")
        built = built.with_name("index.html") if source.name == "README.md" else built
        text = built.read_text(encoding="utf-8")
        assert "```" not in text, source.name
        shown = Counter(re.findall(r'<div class="language-(\w+) highlight">', text))
        written = Counter(block.language for block in blocks(source))
        assert shown["text"] >= written["text"]  # indented blocks are text, too
        assert {**shown, "text": 0} == {**written, "text": 0}, source.name


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """The site, served on this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)
@pytest.mark.parametrize("scheme", first_soon(["light", "dark"]))
def test_browser_fetches_nothing_external_and_search_works(address: str, scheme: str):
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_context(color_scheme=scheme).new_page()
        requested: list[str] = []
        errors: list[str] = []
        page.on("request", lambda request: requested.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        for name in SHOWN:
            page.goto(f"{address}/{name}")
            assert page.locator("h1").count() == 1, name
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        dark = page.evaluate("document.body.getAttribute('data-md-color-scheme')")
        query = page.locator("[data-md-component=search-query]")
        query.click()
        query.press_sequentially("reversal")
        page.locator(".md-search-result__item").first.wait_for(timeout=20_000)
        browser.close()
    assert dark == {"light": "default", "dark": "slate"}[scheme]
    assert [url for url in requested if not url.startswith((address, "data:", "blob:"))] == []
    assert errors == []


@pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)
def test_search_works_from_disk(site: Path):
    with a_window(from_disk) as seen:
        for name in ("index.html", "evidence/atlas/atlas.html"):
            seen.page.goto((site / name).as_uri())
            query = seen.page.locator("[data-md-component=search-query]")
            query.click()
            query.press_sequentially("reversal")
            first = seen.page.locator(".md-search-result__item a").first
            first.wait_for(timeout=20_000)
            address = first.get_attribute("href")
            assert address is not None
            assert (site / address.partition("#")[0].removeprefix(site.as_uri() + "/")).exists()
        assert seen.complaints == []
        assert all(url.startswith(("file:", "data:", "blob:")) for url in seen.asked)


def test_no_file_of_the_documentation_exceeds_one_megabyte():
    assert [file.name for file in (ROOT / "docs").rglob("*") if file.is_file() and file.stat().st_size > 10**6] == []


# ---------------------------------------------------------------- tools/mkdocs_hooks.py

SMALL_SITE = f"""
site_name: small
theme: {{name: material, font: false}}
hooks: ["{ROOT / "tools/mkdocs_hooks.py"}"]
markdown_extensions: [pymdownx.superfences, {{pymdownx.highlight: {{pygments_lang_class: true}}}}]
plugins: []
nav:
  - index.md
  - First: [how_to/c.md]
  - How: how_to/*
  - Studies: studies/*
  - None: no/*
"""
FENCES = """# Home

```text output
printed
```

```console long
$ ls
```

```python title="model.py"
x = 1
```

```python
y = 2
```
"""


@pytest.fixture(scope="module")
def small_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    for name in ("how_to/b.md", "how_to/a.md", "how_to/c.md", "studies/x.txt"):
        (folder / "docs" / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / "docs" / name).write_text(f"# {Path(name).stem}\n")
    (folder / "docs/index.md").write_text(FENCES)
    (folder / "mkdocs.yml").write_text(SMALL_SITE)
    build(folder, folder / "site")
    return folder / "site"


def test_folder_in_the_menu_expands_to_its_pages_that_are_not_listed_elsewhere(small_site: Path):
    text = (small_site / "index.html").read_text(encoding="utf-8")
    links = [link for link in re.findall(r'href="([^"#]*)"', text) if link.startswith("how_to/")]
    assert list(dict.fromkeys(links)) == ["how_to/c/", "how_to/a/", "how_to/b/"]
    titles = re.findall(r'<span class="md-ellipsis">\s*(\w+)', text)
    assert {"First", "How"} <= set(titles)
    assert not {"Studies", "None"} & set(titles)


def test_words_for_the_tests_are_removed_from_a_fence(small_site: Path):
    text = (small_site / "index.html").read_text(encoding="utf-8")
    assert "```" not in text
    assert re.findall(r'<div class="language-(\w+) highlight">', text) == ["text", "console", "python", "python"]
    assert re.findall(r'<span class="filename">(.*?)</span>', text) == ["prints", "model.py"]
