"""Renderers of a report: each a pure function of the records, none of which computes a verdict."""

from orderproof.report.html import write_html as write_html
from orderproof.report.json_file import write_json as write_json
from orderproof.report.junit import write_junit as write_junit
from orderproof.report.markdown import write_markdown as write_markdown
from orderproof.report.sarif import write_sarif as write_sarif
from orderproof.report.schema import claims_schema as claims_schema
from orderproof.report.schema import schema as schema
from orderproof.report.schema import study_schema as study_schema
from orderproof.report.text import render_text as render_text
