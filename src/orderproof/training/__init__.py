"""Training steps: audit what the loss of a model sees on a batch."""

from orderproof.training.audit import audit as audit
from orderproof.training.audit import audit_collator as audit_collator
