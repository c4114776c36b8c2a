from __future__ import annotations

import io

import pytest
from rich.console import Console

from orderproof.records.audit import Report, Witness
from orderproof.report import render_text
from orderproof.report.witness_phrases import TOKENS_SHOWN, witness_outcome
from tests.report import examples


def printed(report: Report, *, width: int = 80, terminal: bool = False, **options: object) -> str:
    stream = io.StringIO()
    render_text(report, Console(file=stream, width=width, force_terminal=terminal, **options))
    return stream.getvalue()


def unwrapped(text: str) -> str:
    return " ".join(text.split())


def test_the_sentence_pair_has_cosine_and_largest_difference():
    text = unwrapped(printed(examples.everyday()))
    assert "Does it see token order?" in text
    assert "with positions float32 0.9909 0.021" in text
    assert "without positions float32 1 - 6.0e-08 2.1e-07" in text
    assert "without positions float64 1 3.3e-16" in text


def test_the_entry_map_names_operator_module_source_and_text():
    text = unwrapped(printed(examples.everyday()))
    assert "Where order enters: OP101 permutation, OP102 prompt_permutation" in text
    assert "aten.add.Tensor constant at 1 site module embeddings source modeling_bert.py:104" in text
    assert "text embeddings = embeddings + position_embeddings origin" in text
    assert text.count("source modeling_bert.py:104") == 1  # two laws, one map
    assert "The map is complete: order enters here and nowhere else." in text


def test_the_proof_is_summarised_with_its_quantifier_steps_lemmas_and_deviation():
    text = unwrapped(printed(examples.everyday()))
    assert (
        "permutation with the entry made the same for every position: proved for every value of every parameter" in text
    )
    assert "85, at length 7; no parameter's values were used" in text
    assert "contraction_equivariant 36, pointwise_equivariant 18" in text
    assert "float32 3.1e-07, float64 5.2e-16 (falls by 2^-29: rounding)" in text


def test_a_proof_for_these_weights_does_not_claim_all():
    text = unwrapped(printed(examples.causal_proof()))
    assert "OP201 causal: proved for these weights" in text
    assert "values used: mask" in text
    assert "every value" not in text


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            examples.everyday,
            (
                "sentence-transformers/all-MiniLM-L6-v2: sees token order; "
                "order enters at one place, modeling_bert.py:104; 1 check passed, none failed."
            ),
        ),
        (
            examples.causal_proof,
            "arch:toy: fails OP101 permutation; 1 check passed, 1 failed, 1 undecided.",
        ),
        (examples.undecided_only, "arch:toy: 1 check passed, none failed, 1 undecided."),
    ],
)
def test_the_report_starts_with_one_sentence(make, sentence):
    lines = printed(make(), width=200).splitlines()
    assert lines[3] == sentence


def test_failed_checks_come_first_then_what_is_not_checked_properties_and_passed_checks():
    text = unwrapped(printed(examples.everyday(), width=160))
    for words in (
        "Properties code property answer how it is known OP101 sees token order yes witness: swap tokens 0 and 1 OP102",
        "Passed code check result how it is known OP303 position_precision PASS measured: 12 of 12 lengths",
        "OP103 tells a sequence from its reverse undecided no proof was found",
        "OP201 hides later tokens from earlier ones no witness: every token attends to every other",
        "Not applicable - OP203 packing: the model takes no document ids",
    ):
        assert words in text
    text = unwrapped(printed(examples.causal_proof(), width=160))
    assert "FAIL OP101 permutation found holds, and should not; proved: vacuous" in text
    assert "Not checked - OP202 padding: undecided: aten.foo.default has no rule Passed" in text
    assert "OP201 causal PASS proved at 8 tokens" in text
    assert text.index("FAIL OP101") < text.index("Not checked") < text.index("Passed")
    assert "Properties" not in text


def test_no_report_speaks_in_double_negatives():
    for make in (examples.everyday, examples.causal_proof, examples.measured):
        text = printed(make(), width=160)
        assert not [word for word in ("REFUTED", "PROVED", "HELD", "expected fails", "met yes") if word in text]


def test_a_witness_marks_the_tokens_that_changed():
    text = unwrapped(printed(examples.everyday()))
    assert "before [CLS] the «cat» chased the «dog» [SEP] after [CLS] the «dog» chased the «cat» [SEP]" in text
    assert "last_hidden_state[0, 1, 203]: the law requires 0.418367, the model gives 0.392011" in text


def test_outputs_that_must_differ_and_do_not_have_one_value():
    witness = Witness(
        tokens_before=(), tokens_after=(), change="a mask must change the output", output_index=(0, 1),
        expected_value=0.25, actual_value=0.25, relative_difference=0.0,
    )  # fmt: skip
    assert witness_outcome(witness, "logits") == "logits[0, 1]: 0.25 in both calls, which must differ"


def test_every_comparison_has_its_numbers_and_its_control():
    lines = printed(examples.measured()).splitlines()
    at = lines.index("Measured")
    text = unwrapped("\n".join(lines[at:]))
    for words in (
        "OP401 cached_decoding: PASS one token at a time 8.8e-07 into a static cache 0.00031 5.2e-13 control 0.96",
        "in chunks of 1, 6 tokens not possible ValueError: one at a time control 0.96",
        "OP403 cache_editing: UNDECIDED the rows exchanged not possible its rows cannot be reordered OP405",
        "OP405 left_padded_decoding: FAIL pads on the left, then one token at a time 0.89 0.89 the same",
        "OP501 attention_backend: undecided sdpa 0.0003 2e-05 3e-04 in float32 and 2e-05 in float64 control 0.96",
    ):
        assert words in text
    short = unwrapped(printed(examples.measured(), width=160))
    assert (
        "OP401 cached_decoding PASS measured in 2 comparisons OP402 chunked_prefill PASS measured in 1 comparison"
        in (short)
    )


def test_a_measured_witness_says_what_was_compared_and_what_to_do():
    text = unwrapped(printed(examples.measured()))
    assert (
        "FAIL OP405 left_padded_decoding What left_padded_decoding says. compared pads on the left, then one token at "
        "a time "
        "output logits[0, 0, 54]: the law requires 0.152568, the model gives -2.70433 difference 0.89, "
        "the model's own weights measured float32 0.89, float64 0.89 (the same: not rounding) "
        "to do Count positions by the mask, not by the cache."
    ) in text
    assert "before" not in text


@pytest.mark.parametrize(
    ("make", "last"),
    [
        (examples.everyday, "exit code 0: every check passed"),
        (examples.causal_proof, "exit code 1: OP101 permutation FAIL: expected to fail, it holds (proved)"),
        (examples.undecided_only, "exit code 3: OP202 padding UNDECIDED: expected to hold; no check failed"),
    ],
)
def test_the_last_line_is_the_exit_code_and_its_meaning(make, last):
    assert printed(make()).splitlines()[-1] == last


def test_the_last_line_names_each_law_once():
    report = examples.causal_proof()
    failed = next(f for f in report.findings if f.outcome == "fail")
    others = [failed.model_copy(update={"output": name, "call_mode": "padded"}) for name in ("second", "third")]
    text = printed(report.model_copy(update={"findings": (*report.findings, *others)}), width=200)
    assert text.splitlines()[-1] == (
        "exit code 1: OP101 permutation FAIL: expected to fail, it holds (proved), and 2 more"
    )


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("make", [examples.everyday, examples.causal_proof, examples.measured, examples.hostile])
def test_no_line_is_wider_than_the_terminal_or_ends_in_blanks(make, width):
    for line in printed(make(), width=width).splitlines():
        assert len(line) <= width
        assert line == line.rstrip()


def test_colour_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    text = printed(examples.everyday(), terminal=True)
    assert "\x1b[1;32mPASS" in text
    assert "\x1b[1;31m" not in text
    assert "\x1b[1;31mFAIL" in printed(examples.causal_proof(), terminal=True)
    assert "\x1b" not in printed(examples.everyday())


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_that_asks_for_plain_text_gets_no_escape_codes(name, value, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv(name, value)
    text = printed(examples.everyday(), terminal=True)
    assert "\x1b" not in text
    assert text == printed(examples.everyday())


def test_hostile_strings_cannot_act():
    text = printed(examples.hostile(), width=200, terminal=False)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\x1b[31m\\u202e[bold]{{ 7 * 7 }}" in text  # neither markup nor template: text


def test_a_long_witness_is_cut_with_a_count():
    report = examples.everyday()
    witness = report.findings[0].witness.model_copy(update={"tokens_before": ("x",) * 500, "permutation": None})
    finding = report.findings[0].model_copy(update={"witness": witness})
    text = unwrapped(printed(report.model_copy(update={"findings": (finding,)})))
    assert f"and {500 - TOKENS_SHOWN} more tokens" in text


def test_an_ascii_terminal_gets_ascii_marks():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    render_text(examples.everyday(), Console(file=stream, width=80))
    stream.flush()
    assert b"<<cat>>" in stream.buffer.getvalue()


def test_an_empty_report_still_says_how_it_ended():
    report = examples.everyday().model_copy(update={"findings": (), "sentence_pair": None, "notes": ()})
    assert (
        printed(report).splitlines()[-1] == "exit code 3: no law was decided, so nothing was checked; no check failed"
    )
