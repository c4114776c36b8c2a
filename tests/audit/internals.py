"""The names of the audit that its tests use, imported in this one place; and subjects captured once."""

from functools import cache

from orderproof.auditing import audit as audit
from orderproof.auditing import prove as prove
from orderproof.auditing.api import one_law as one_law
from orderproof.auditing.attempt import Attempt as Attempt
from orderproof.auditing.attempt import attempt as attempt
from orderproof.auditing.examine import Examination as Examination
from orderproof.auditing.verdict import Options as Options
from orderproof.auditing.verdict import prove_law as prove_law
from orderproof.auditing.trials import Trial as Trial
from orderproof.subjects import load

NAMES = ("bert", "roberta", "distilbert", "gpt2", "gpt_neox", "llama", "mistral", "qwen3", "gemma3_text", "t5", "vit")
ARCHITECTURES = tuple((name, attention) for name in NAMES for attention in ("sdpa", "eager"))


@cache
def examined(spec: str, attention: str | None = None) -> Examination:
    """The examination of a tiny architecture, captured once a process."""
    subject = load(f"arch:{spec}", tiny=True, attention=attention)
    return Examination(subject, subject.length)
