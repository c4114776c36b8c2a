"""Audits: laws decided for subjects, as findings and reports."""

import orderproof.report.notebook  # noqa: F401 - registers how a notebook shows a report
from orderproof.auditing.api import audit as audit
from orderproof.auditing.api import prove as prove
