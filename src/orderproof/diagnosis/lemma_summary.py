"""Each lemma in one sentence, from the docstrings of the rule files. It imports no rule."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Lemmas of the analysis itself, without a rule file.
ANALYSIS_LEMMAS = {
    "given": "The assumed relation between the inputs of the two runs.",
    "same_in_both_runs": "A value that depends on no input is the same in both runs.",
    "part_of_a_tuple": "One of several results of an operator.",
    "pure_function_of_unmoved": "The result of a deterministic operator whose operands do not move does not move.",
}


def lemma_summaries(rules: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Each lemma in one sentence: the first line of the rule file that states it ("Lemma (name). ...").

    `rules` are the lemma of each rule and the docstring of its file.
    """
    given = [(lemma, text.strip()) for lemma, text in rules]
    summaries = dict(ANALYSIS_LEMMAS)
    for text in dict.fromkeys(text for _, text in given):
        for name in re.findall(r"^Lemma \((\w+)\)\.", text, flags=re.MULTILINE):
            summaries[name] = text.splitlines()[0]
    for lemma, text in given:  # a lemma that its file does not state in this form
        summaries.setdefault(lemma, (text or lemma).splitlines()[0])
    return summaries
