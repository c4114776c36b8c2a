"""The report in a notebook: its HTML page in a sandboxed iframe.

The page is the text of the attribute `srcdoc`, escaped so that it cannot end the attribute. The frame runs the page's
script only: without `allow-same-origin` it has no access to the notebook or its cookies.
"""

from __future__ import annotations

import html

from orderproof.records.audit import Report
from orderproof.records.document import register_html_renderer
from orderproof.report.html_page import render_html

HEIGHT = 640  # [CSS pixels]; the page scrolls


def notebook_iframe(report: Report) -> str:
    """The report's page as one iframe."""
    title = html.escape(f"orderproof: {report.subject.name}", quote=True)
    page = html.escape(render_html(report), quote=True)
    style = f"width:100%;height:{HEIGHT}px;border:0"
    return f'<iframe sandbox="allow-scripts" style="{style}" title="{title}" srcdoc="{page}"></iframe>'


register_html_renderer(Report, notebook_iframe)
