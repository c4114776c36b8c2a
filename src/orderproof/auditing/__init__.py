"""Laws held against subjects: findings and reports."""

from orderproof.auditing.api import audit as audit
from orderproof.auditing.api import prove as prove
