"""The report in a notebook: the same page, in a frame of its own.

The page is one text in the frame's `srcdoc`, escaped as an attribute, so that nothing of it can end the attribute. The
frame may run the page's own script and nothing else: without `allow-same-origin` it reaches neither the notebook nor
its cookies.
"""

from __future__ import annotations

import html

from orderproof.record import Report
from orderproof.report.html import render_html

HEIGHT = 640  # [CSS pixels]; the page scrolls


def framed(report: Report) -> str:
    """The report's page as one iframe."""
    title = html.escape(f"orderproof: {report.subject.name}", quote=True)
    page = html.escape(render_html(report), quote=True)
    style = f"width:100%;height:{HEIGHT}px;border:0"
    return f'<iframe sandbox="allow-scripts" style="{style}" title="{title}" srcdoc="{page}"></iframe>'
