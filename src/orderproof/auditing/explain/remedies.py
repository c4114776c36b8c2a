"""The remedy of a violated law: that of the operator at which it is first violated, else that of the law."""

from __future__ import annotations

from orderproof.auditing.explain.entries import is_reshape
from orderproof.auditing.explain.leaks import Leak
from orderproof.laws import ProvedLaw
from orderproof.records.audit import Finding, Remedy

_MIXED_BY_RESHAPE = Remedy(
    text="This reshape gives one token entries of another: move the token axis next to the axes that it is merged with "
    "or separated from, before the reshape.",
    diff="-y = y.reshape(batch, tokens, channels)\n+y = y.transpose(1, 2).reshape(batch, tokens, channels)",
)

_NO_TOKEN_SEES_ANOTHER = Remedy(
    text="No token sees another. If the tokens are along another axis, state it: --token-axis 0 for [token, row] "
    "or [token, row, width] (in Python token_axis=0). If they are not, nothing in this call mixes tokens.",
)


def remedy_of_leak(law: ProvedLaw, leak: Leak, *, passed_mask: bool) -> Remedy:
    """The remedy for the way in which a leak mixes tokens; empty if `law.remedies` says what to do."""
    if is_reshape(leak.place.node):
        return _MIXED_BY_RESHAPE
    found = None if passed_mask else law.remedy_of_mixing(leak.kind)
    return found or Remedy(text="")


def with_remedy(finding: Finding, law: ProvedLaw) -> Finding:
    """The finding with a remedy, if it is decided and not as expected."""
    remedy = None if finding.expectation_met or finding.verdict == "undecided" else law.remedies.get(finding.expected)
    if remedy is None or finding.expected != "holds":  # the line to change is that of a violation, or of lost positions
        line = {} if remedy is not None and finding.verdict == "proved" else {"fix_source": "", "fix_line": ""}
        finding = finding.model_copy(update={**line, "remedy": "", "remedy_diff": ""})
    if remedy is None:
        return finding
    if finding.vacuous:
        remedy = _NO_TOKEN_SEES_ANOTHER
    diff = finding.remedy_diff or (remedy.diff if not finding.remedy else "")
    return finding.model_copy(update={"remedy": finding.remedy or remedy.text, "remedy_diff": diff})
