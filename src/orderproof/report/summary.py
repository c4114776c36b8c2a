"""A report in one sentence, and the meaning of its exit code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orderproof.records.audit import Finding, Outcome, Report
from orderproof.report import entry_map_phrases, phrases
from orderproof.report.joined_words import join_words
from orderproof.report.law_groups import groups_with, law_groups, lengths_of_theorem, property_groups
from orderproof.report.place import finding_place, mask_of, shown_place

MOST_LEFT_BY_NAME = 3  # laws without time that the meaning of an exit code names; the report names all
KINDS_WITHOUT_EXPECTATIONS = ("module", "encoding")  # the kinds whose laws of order are only described
# No check of a model of which nothing is stated; where the answer is no, rows, pads or a cache change its outputs.
_HARDLY_MEANT = {
    "padding", "batch", "batch_composition", "pooled_padding", "cached_decoding", "chunked_prefill", "use_cache",
}  # fmt: skip
_CHECK_OUTCOMES: tuple[Outcome, ...] = ("pass", "fail", "undecided")


def summary_sentence(report: Report) -> str:
    """The report in one sentence: failures, what is proved for every length, the use of order, and the checks.

    ``bert: padding and batch are proved for every length from 2 to 512; sees token order; order enters at one place,
    modeling_bert.py:104; 14 checks passed, none failed.``
    """
    first = next(iter(phrases.properties(report.findings)), None)
    clauses = [_failure_clause(report.findings), _unmeant_clause(report.findings), _theorem_clause(report.findings)]
    clauses += [_trait_clause(first), _entry_clause(first)] if first is not None else []
    clauses += [_check_clause(report.findings)]
    if report.interrupted:
        clauses.append(f"interrupted after {_findings_so_far(report)}")
    text = "; ".join(clause for clause in clauses if clause) or "no law was checked"
    return f"{report.subject.name}: {text}."


def _failure_clause(findings: Iterable[Finding]) -> str:
    """``fails OP201 causal at model.py:20``: each failed law, laws of one line together.

    A port: ``mlx fails OP602 same_prefill``, or the engine after each law if there are several, and the settings that
    explain the differences.
    """
    findings = tuple(findings)
    engines = {f.output for f in findings if f.port is not None}
    engine = next(iter(engines)) if len(engines) == 1 else ""
    by_place: dict[str, list[str]] = {}
    for group in groups_with(findings, "fail"):
        failed = next(f for f in group.findings if f.outcome == "fail")
        title = phrases.law_title(failed).removesuffix(f" ({engine})")
        by_place.setdefault(shown_place(failed).source, []).append(title)
    texts = [join_words(titles) + (f" at {place}" if place else "") for place, titles in by_place.items()]
    return f"{engine} fails {', '.join(texts)}{_causes(findings, engine)}".strip() if texts else ""


def _causes(findings: Iterable[Finding], engine: str) -> str:
    """`` (sliding_window: 8 in the reference, no window in mlx)``: what explains the differences of one engine."""
    causes = [cause for f in findings if f.port is not None and f.outcome == "fail" for cause in f.port.causes]
    texts = [
        f"{each.setting}: {each.stated} in the reference, {each.assumed} in {each.engine or engine}" for each in causes
    ]
    return f" ({'; '.join(dict.fromkeys(texts))})" if engine and texts else ""


def _theorem_clause(findings: Iterable[Finding]) -> str:
    """``padding and batch are proved for every length from 2 to 512``, by range of lengths; empty if none is.

    A law is named only if all its outputs are proved for the same lengths.
    """
    names: dict[str, list[str]] = {}
    for group in law_groups(findings):
        lengths = {lengths_of_theorem(f) for f in group.findings}
        if len(lengths) == 1 and "" not in lengths and group.outcome in ("pass", "yes"):
            names.setdefault(lengths.pop(), []).append(phrases.law_name(group.first))
    texts = [
        f"{join_words(laws)} {'is' if len(laws) == 1 else 'are'} proved for {lengths}"
        for lengths, laws in sorted(names.items(), key=lambda item: -len(item[1]))
    ]
    return "; ".join(texts)


def _trait_clause(finding: Finding) -> str:
    verb, _, rest = phrases.property_name(finding).partition(" ")
    if finding.outcome == "no":
        return f"is not {rest}" if verb == "is" else f"does not {verb.removesuffix('s')} {rest}"
    text = f"{verb} {rest}".strip()
    return text if finding.outcome == "yes" else f"whether it {text} is undecided"


def _entry_clause(finding: Finding) -> str:
    places = list(dict.fromkeys(e.source or e.module for e in finding.entries if e.source or e.module))
    if not places or finding.law in entry_map_phrases.LEAK_TITLES:
        return ""
    if len(places) > 1:
        return f"order enters at {len(places):,} lines, first {places[0]}"
    if finding.entries_complete is False:
        return f"order enters at {places[0]} and perhaps elsewhere"
    return f"order enters at one place, {places[0]}"


def _unmeant_clause(findings: Iterable[Finding]) -> str:
    """``OP401 cached_decoding does not hold``: properties without which hardly any model is meant to be."""
    groups = [g for g in property_groups(findings) if g.outcome == "no" and g.first.law in _HARDLY_MEANT]
    titles = [phrases.law_title(g.first) for g in groups]
    return f"{join_words(titles)} {'does' if len(titles) == 1 else 'do'} not hold" if titles else ""


def _check_clause(findings: Iterable[Finding]) -> str:
    """``14 checks passed, none failed, 1 undecided``, where a check is a law, whatever its outputs."""
    findings = tuple(findings)
    passed, failed, still_open = (len(groups_with(findings, o)) for o in _CHECK_OUTCOMES)
    if not passed + failed + still_open:
        return ""
    parts = [f"{phrases.pluralize(passed, 'check')} passed" if passed else "no check passed"]
    parts.append(f"{failed:,} failed" if failed else "none failed")
    return ", ".join([*parts, *([f"{still_open:,} undecided"] if still_open else [])])


def exit_code_text(report: Report) -> str:
    """The meaning of the exit code, with every finding that decides it."""
    code = report.exit_code
    if report.interrupted:
        return f"interrupted; {_findings_so_far(report)} so far"
    if code == 1:
        return "; ".join(_text_of_each_law(report.violations))
    if code == 0:
        text = "every check passed" if phrases.checks(report.findings) else "nothing is expected of this model"
        return f"{text}; {_untested_text(report)} (exit code 3 with --strict)" if report.untested else text
    left = {f.law for f in report.undecided} & set(report.left)
    left = left if len(left) > MOST_LEFT_BY_NAME else set()
    texts = _text_of_each_law(f for f in report.undecided if f.law not in left)
    texts += [f"{len(left)} expected laws were not reached, or ran out of time"] if left else []
    texts += [] if texts or report.decided else ["no law was decided, so nothing was checked"]
    texts += [_untested_text(report)] if report.strict and report.untested else []
    return "; ".join([*texts, "no check failed"])


def _findings_so_far(report: Report) -> str:
    return phrases.pluralize(len([f for f in report.findings if f.law not in report.left]), "finding")


def _text_of_each_law(findings: Iterable[Finding]) -> list[str]:
    """The first finding of each law, and how many more there are: of other outputs, and of other calls.

    Laws of which the same is said are together: ``OP201 causal and OP204 batch FAIL: expected to hold, ...``.
    """
    groups: dict[str, list[Finding]] = {}
    for f in findings:
        groups.setdefault(phrases.law_title(f) if f.port is not None else f.code, []).append(f)
    titles: dict[str, list[str]] = {}  # by what is said of the laws
    for first, *others in groups.values():
        title = phrases.law_title(first)
        more = f", and {len(others)} more" if others else ""
        titles.setdefault(expectation_text(first).removeprefix(title) + more, []).append(title)
    return [join_words(names) + text for text, names in titles.items()]


def _untested_text(report: Report) -> str:
    """``2 expected laws were not checked``."""
    number = len({(f.code, f.law) for f in report.untested})
    return f"{phrases.pluralize(number, 'expected law was', 'expected laws were')} not checked"


def details_hint(report: Report) -> str:
    """The parts that the short report leaves out: proofs, comparisons and assumptions, and how to see them."""
    proofs = len([f for f in report.findings if f.proof])
    proofs += len([f for f in report.findings if f.completion and f.completion.proof])
    compared = sum(len(f.measurement.comparisons) for f in report.findings if f.measurement)
    parts = [
        phrases.pluralize(number, word)
        for number, word in (
            (proofs, "proof"),
            (compared, "comparison"),
            (len(phrases.assumptions(report)), "assumption"),
        )
        if number
    ]
    excluded = sum(map(len, phrases.not_applicable(report.findings).values()))
    parts += (
        [f"{phrases.pluralize(excluded, 'law')} that {'does' if excluded == 1 else 'do'} not apply"] if excluded else []
    )
    return f"not shown: {join_words(parts)}; --details prints them, --html PATH writes a page" if parts else ""


def recheck_hint(report: Report) -> str:
    """``24 proofs, of which 3 cannot be rechecked (proved at one length)``; empty if each has a theorem."""
    proofs, at_one_length = len(report.proved), len(report.proved_at_one_length)
    if not at_one_length:
        return ""
    return (
        f"{phrases.pluralize(proofs, 'proof')}, of which {at_one_length:,} cannot be rechecked (proved at one length)"
    )


def resume_hint(report: Report) -> str:
    """The options that go on with an audit that was cut short; empty if no law is left."""
    if not report.left:
        return ""
    files = "--json FILE, and then --resume FILE" if report.basis is None else "--resume, and the JSON report"
    return f"to go on with {phrases.pluralize(len(report.left), 'law')} that {_are(report.left)} left: {files}"


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def gate_hint(report: Report) -> str:
    """The options that make an audit without the expectations of a kind a gate; empty if its kind expects something."""
    described = list(dict.fromkeys(f.law for f in phrases.properties(report.findings)))
    if report.subject.kind not in KINDS_WITHOUT_EXPECTATIONS or not described or report.interrupted:
        return ""
    stated = "" if phrases.checks(report.findings) else "nothing is checked yet; "
    return (
        f"{stated}--as decoder or --as encoder checks what such a model should do; "
        f"--expect {described[0]}=holds (or fails) checks one law"
    )


def almost_causal(report: Report) -> str:
    """The mask of a model of which nothing is expected, if it hides all later tokens but the next few; else empty."""
    for finding in phrases.properties(report.findings):
        picture = mask_of(finding)
        further = _tokens_seen_ahead(picture.rows) if picture is not None and finding.outcome == "no" else 0
        if further:
            seen = "the next one" if further == 1 else f"the next {further}"
            place = finding_place(finding).source
            return (
                f"Almost causal: the mask{f' used at {place}' if place else ''} hides all later tokens but {seen}; "
                f"if the model should be causal, --law {finding.law} shows the line to change."
            )
    return ""


def _tokens_seen_ahead(rows: Sequence[str]) -> int:
    """The number k for which the query i sees the keys up to i + k, and no other; 0 for a mask of another form."""
    tokens = len(rows)
    seen = [[cell != "0" for cell in row] for row in rows]
    shifted = ([[j <= i + k for j in range(tokens)] for i in range(tokens)] for k in range(1, tokens - 1))
    return next((k for k, mask in enumerate(shifted, 1) if mask == seen), 0)


def expectation_text(finding: Finding) -> str:
    """``OP201 causal FAIL: expected to hold, it does not hold (witness)``; of a property the answer."""
    title = phrases.law_title(finding)
    if finding.kind == "property":
        return f"{title}: {phrases.property_name(finding)}: {phrases.OUTCOME_LABELS[finding.outcome]}"
    wanted = {"holds": "expected to hold", "fails": "expected to fail", "any": "no expectation"}[finding.expected]
    text = f"{title} {phrases.OUTCOME_LABELS[finding.outcome]}: {wanted}"
    if not (known := phrases.evidence_kind(finding)):
        return text
    return f"{text}, {'it does not hold' if finding.verdict == 'refuted' else 'it holds'} ({known})"
