"""The site: it is built strictly, asks nothing of the network, and shows every page as a page."""

from __future__ import annotations

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright
from scripts import site_hooks

from tests.docs.blocks import ROOT, blocks

CHROMIUM = shutil.which("chromium")
CALLED_BY_A_BROWSER = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "form": "action",
}
SHOWN = ("index.html", "explanation/why_positions.html", "reference/claims.html", "reference/laws.html", "atlas.html")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


class Page(HTMLParser):
    """What the tags of a page would have a browser fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.styles: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag in CALLED_BY_A_BROWSER and (address := found.get(CALLED_BY_A_BROWSER[tag])):
            self.fetched.append(address)
        self.styles.append(found.get("style") or "")


def leads_out(address: str) -> bool:
    return bool(re.match(r"\s*(?:[a-z][a-z0-9+.-]*:)?//|\s*(?:https?|ftp|wss?):", address, re.IGNORECASE))


def test_an_address_that_leads_out_is_told_from_one_that_does_not():
    assert all(map(leads_out, ("https://x/y.js", "//x/y.css", "http:x", " HTTPS://x")))
    assert not any(map(leads_out, ("../assets/x.css", "index.html", ".", "/assets/x.js", "data:image/svg+xml,")))


def test_no_page_fetches_anything_from_the_network(site: Path):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        found = Page(page.read_text(encoding="utf-8"))
        assert found.fetched
        assert [a for a in found.fetched if leads_out(a)] == [], page.relative_to(site)
        assert not any("url(" in style for style in found.styles)


def test_no_style_sheet_fetches_anything_from_the_network(site: Path):
    sheets = sorted(site.rglob("*.css"))
    assert sheets
    for sheet in sheets:
        text = sheet.read_text(encoding="utf-8")
        addresses = re.findall(r"url\(\s*[\"']?([^\"')]+)", text) + re.findall(r"@import\s+[\"']([^\"']+)", text)
        assert [a for a in addresses if leads_out(a)] == [], sheet.name


def test_no_fence_is_left_over_and_every_block_is_a_block(site: Path):
    for source in sorted((ROOT / "docs").rglob("*.md")):
        built = site / source.relative_to(ROOT / "docs").with_suffix(".html")
        built = built.with_name("index.html") if source.name == "README.md" else built
        text = built.read_text(encoding="utf-8")
        assert "```" not in text, source.name
        shown = Counter(re.findall(r'<div class="language-(\w+) highlight">', text))
        written = Counter(block.language for block in blocks(source))
        assert shown["text"] >= written["text"]  # what is only indented is shown as text too
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


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: pages are not opened in a browser")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_asks_for_nothing_else_and_finds_what_is_searched(address: str, scheme: str):
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_context(color_scheme=scheme).new_page()
        asked: list[str] = []
        complaints: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        for name in SHOWN:
            page.goto(f"{address}/{name}")
            assert page.locator("h1").count() == 1, name
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        dark = page.evaluate("document.body.getAttribute('data-md-color-scheme')")
        query = page.locator("[data-md-component=search-query]")
        query.click()
        query.press_sequentially("mirror_blind")
        page.locator(".md-search-result__item").first.wait_for(timeout=20_000)
        browser.close()
    assert dark == {"light": "default", "dark": "slate"}[scheme]
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    assert complaints == []


# ---------------------------------------------------------------- the menu


def test_a_folder_in_the_menu_stands_for_its_pages_that_are_not_named_elsewhere(tmp_path: Path):
    for name in ("how_to/b.md", "how_to/a.md", "how_to/c.md", "studies/x.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("# x\n")
    menu = ["index.md", {"First": ["how_to/c.md"]}, {"How": "how_to/*"}, {"Studies": "studies/*"}, {"None": ["no/*"]}]
    config = site_hooks.on_config({"docs_dir": str(tmp_path), "nav": menu})
    assert config["nav"] == ["index.md", {"First": ["how_to/c.md"]}, {"How": ["how_to/a.md", "how_to/b.md"]}]


@pytest.mark.parametrize(
    ("fence", "plain"),
    [
        ("```text output", '```text title="prints"'),
        ("```console long", "```console"),
        ('```python title="model.py"', '```python title="model.py"'),
        ("```python", "```python"),
    ],
)
def test_words_for_the_tests_are_taken_off_a_fence(fence: str, plain: str):
    assert site_hooks.on_page_markdown(f"a\n{fence}\nb\n```\n") == f"a\n{plain}\nb\n```\n"
