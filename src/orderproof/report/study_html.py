"""A study as one HTML page that needs nothing but itself: its pictures are inside, and it has no script."""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path

import jinja2

from orderproof.report import destination, study_words
from orderproof.report.html import environment, source
from orderproof.report.study_plot import Picture, draw
from orderproof.study_record import Study

PICTURES: dict[Picture, str] = {"lengths": "The score by length", "curves": "The score in training"}


def write_study_html(study: Study, target: str | Path) -> None:
    """Write the page to a file in one step, or to standard output when the target is ``-``. Needs matplotlib."""
    destination.write(render_study_html(study), target)


def render_study_html(study: Study) -> str:
    """The page as text. Needs matplotlib."""
    return _template().render(
        study=study,
        says=study_words,
        pairs=study_words.pairs(study),
        lengths=study_words.lengths(study),
        counted=study_words.counted(study),
        beyond=any(cell.beyond for cell in study.cells),
        pictures={title: _inside(draw(study, picture=picture)) for picture, title in PICTURES.items()},
        style=source("style.css"),
    )


def _inside(svg: bytes) -> str:
    """A picture as the address of itself: an image runs nothing, whatever it says."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


@cache
def _template() -> jinja2.Template:
    return environment().from_string(source("study.html"))
