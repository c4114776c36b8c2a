"""A study as one self-contained HTML page, with embedded plots and without scripts."""

from __future__ import annotations

import base64
from functools import cache

import jinja2

from orderproof.records.study import Study
from orderproof.report import study_phrases
from orderproof.report.html_page import read_asset, template_environment
from orderproof.report.study_conclusion import conclusion, differences_from_best
from orderproof.report.study_plot import Picture, study_plot_bytes

PICTURES: dict[Picture, str] = {"lengths": "Score by length", "curves": "Score during training"}


def render_study_html(study: Study) -> str:
    """The page as text. Needs matplotlib."""
    return _template().render(
        study=study,
        phrases=study_phrases,
        conclusion=conclusion(study),
        differences=differences_from_best(study),
        lengths=study_phrases.shown_lengths(study),
        has_ceiling_test=study_phrases.has_ceiling_test(study),
        has_longer_lengths=any(cell.longer_lengths_score for cell in study.cells),
        pictures={title: _data_uri(study_plot_bytes(study, picture=picture)) for picture, title in PICTURES.items()},
        style=read_asset("page.css"),
    )


def _data_uri(svg: bytes) -> str:
    """A plot as a data URI: an image cannot run scripts."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


@cache
def _template() -> jinja2.Template:
    return template_environment().from_string(read_asset("study_page.html"))
