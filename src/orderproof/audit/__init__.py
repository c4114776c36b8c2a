"""Laws held against subjects: findings and reports."""

from orderproof.audit.api import audit as audit
from orderproof.audit.api import prove as prove
