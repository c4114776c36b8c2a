"""Results from the literature for the questions of the lab, as text shown next to a study.

Most of these models are far larger than those of a study here, and all were trained and tested differently, so the
numbers are context, not reference values. Numbers are quoted from their sources; none is ours.
"""

from __future__ import annotations

from orderproof.records.study import PublishedResult

KAZEMNEJAD = (
    'Kazemnejad et al. 2023, "The Impact of Positional Encoding on Length Generalization in Transformers", '
    "arXiv:2305.19466; means over 3 seeds, computed from the authors' result files "
    "(McGill-NLP/length-generalization at 40f8a44)"
)
KAZEMNEJAD_SETTING = (
    "decoders of 12 layers and 110M parameters, 40,000 steps; exact match of greedy answers, trained to length 20, "
    "tested at 21 to 40"
)
RUOSS = (
    'Ruoss et al. 2023, "Randomized Positional Encodings Boost Length Generalization of Transformers", '
    "arXiv:2305.16843, abstract"
)
HAVIV = (
    'Haviv et al. 2022, "Transformer Language Models without Positional Encodings Still Learn Positional '
    'Information", arXiv:2203.16634'
)
ALIBI = (
    'Press et al. 2022, "Train Short, Test Long: Attention with Linear Biases Enables Input Length Extrapolation", '
    "arXiv:2108.12409, table 2"
)


def _kazemnejad(task: str, text: str) -> PublishedResult:
    return PublishedResult(label=f"{task} ({KAZEMNEJAD_SETTING})", text=text, source=KAZEMNEJAD)


_COPY = (
    _kazemnejad(
        "copy one repeated character",
        "none .986 ± .006, T5 .771 ± .053, ALiBi .289 ± .030, rotary .000, sinusoidal .000",
    ),
    _kazemnejad(
        "copy one repeated character, by length",
        "none 1.00 (21), .99 (30), .96 (40); T5 1.00, .94, .21; ALiBi 1.00 (23), .92 (25), .03 (28), then 0; "
        "rotary and sinusoidal 0 from 21",
    ),
    _kazemnejad(
        "copy a repeated character with substitution",
        "none .967 ± .021, T5 .939 ± .026, ALiBi .170 ± .032, rotary .016 ± .027, sinusoidal .000",
    ),
    _kazemnejad(
        "copy random words",
        "none .305 ± .023, T5 .420 ± .014, ALiBi .331 ± .012, rotary .011 ± .007, sinusoidal .028 ± .005; "
        "about .90 at trained lengths too",
    ),
    _kazemnejad(
        "copy one repeated character twice",
        "none .974 ± .011, T5 .558 ± .165, ALiBi .194 ± .070, rotary .000, sinusoidal .000",
    ),
    _kazemnejad(
        "copy random words twice",
        "none .431 ± .009, T5 .524 ± .023, ALiBi .569 ± .021, rotary .043 ± .005, sinusoidal .040 ± .003",
    ),
)
_REVERSE = (
    _kazemnejad(
        "reverse random words (mc)",
        "none .230 ± .010, T5 .242 ± .023, ALiBi .171 ± .011, rotary .077 ± .075, sinusoidal .023 ± .012",
    ),
    _kazemnejad("reverse random words (mc), by length", "none .99 (21), .54 (25), .02 (28)"),
    _kazemnejad(
        "reverse random words (mc2x)",
        "none .473 ± .007, T5 .448 ± .038, ALiBi .195 ± .040, rotary .053 ± .005, sinusoidal .011 ± .002",
    ),
    _kazemnejad(
        "reverse random words (mcrv)",
        "none .182 ± .012, T5 .140 ± .030, ALiBi .115 ± .015, rotary .000, sinusoidal .000",
    ),
)
_CHOMSKY = (
    PublishedResult(
        label="15 algorithmic tasks, this one among them (encoders, trained to length 40, tested beyond)",
        text="over 6,000 models, positions drawn at random from a longer range raise the accuracy at unseen lengths "
        "by 12.0% on average",
        source=RUOSS,
    ),
)
_STRINGS = (
    "bucket_sort", "cycle_navigation", "duplicate_string", "even_pairs", "missing_duplicate", "odds_first", "parity",
    "reverse_string",
)  # fmt: skip
_LONGER = (
    PublishedResult(
        label="WikiText-103, perplexity at lengths 512, 1012, 2512, 15512 (decoders trained at 512)",
        text="sinusoidal 20.05, 43.54, 132.41, 406.01; rotary 20.07, 21.37, 31.58, 79.25; "
        "T5 19.65, 18.79, 20.41, out of memory; ALiBi 19.73, 18.73, 18.41, 18.31",
        source=ALIBI,
    ),
    PublishedResult(
        label="WikiText-103, validation perplexity of decoders",
        text="none 20.97, learned 20.42, sinusoidal 20.16, ALiBi 19.71",
        source=HAVIV,
    ),
    PublishedResult(
        label="masked (bidirectional) language model, perplexity",
        text="none 147.18; learned, sinusoidal and ALiBi between 4.00 and 4.07",
        source=HAVIV,
    ),
)
RESULTS_BY_QUESTION: dict[str, tuple[PublishedResult, ...]] = {
    "copy": _COPY,
    "reverse": _REVERSE,
    **dict.fromkeys(_STRINGS, _CHOMSKY),
    "extrapolate": _LONGER,
}
"""The results for each question, by its name."""


def literature_results(question: str) -> tuple[PublishedResult, ...]:
    """The results for this question; empty if there are none."""
    return RESULTS_BY_QUESTION.get(question, ())
