"""A report in a notebook is its page in a frame, escaped."""

from __future__ import annotations

from html.parser import HTMLParser

from orderproof.report.html_page import render_html
from tests.report.examples import HOSTILE, everyday, hostile


class Tags(HTMLParser):
    """Every tag of a text, with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_a_report_shows_itself_as_one_frame_of_its_page():
    made = everyday()
    ((tag, attributes),) = Tags(made._repr_html_()).found
    assert tag == "iframe"
    assert attributes["srcdoc"] == render_html(made)
    assert attributes["sandbox"] == "allow-scripts"
    assert "src" not in attributes


def test_no_name_of_a_model_ends_the_frame():
    made = hostile()
    assert HOSTILE in made.subject.name
    ((tag, attributes),) = Tags(made._repr_html_()).found
    assert (tag, attributes["srcdoc"]) == ("iframe", render_html(made))
    assert (attributes["title"] or "").startswith("orderproof: <script>")
