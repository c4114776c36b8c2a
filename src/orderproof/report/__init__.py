"""Renderers of a report: pure functions of the records; none of them computes a verdict."""

from orderproof.records.audit import Report as Report
from orderproof.report import notebook as notebook  # registers how reports and findings are shown
from orderproof.report.html_page import write_html as write_html
from orderproof.report.json_output import write_json as write_json
from orderproof.report.junit import write_junit as write_junit
from orderproof.report.markdown import write_markdown as write_markdown
from orderproof.report.sarif import write_sarif as write_sarif
from orderproof.report.schema import audit_schema as audit_schema
from orderproof.report.schema import claims_schema as claims_schema
from orderproof.report.schema import study_schema as study_schema
from orderproof.report.terminal import render_text as render_text
