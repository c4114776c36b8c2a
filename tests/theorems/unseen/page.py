"""The page of counts: the first run, before any repair, and the run of today."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.theorems.unseen.verdicts import Verdict

FIRST = sorted(Path(__file__).parent.glob("first_run*.json"))  # the levels of claims that were open at first
INTRODUCTION = """# Modules written before they were audited

Written by `python -m tests.theorems.unseen --markdown docs/evidence/faults/unseen_modules.md`; not edited by hand.

The modules of `tests/theorems/unseen` were written in four rounds, as engineers write attention, masks, pooling,
recurrences, selection, quantization, positions, caches, experts, padding and time series. Those of a round were written
before any of them was audited, and without a look at the rules. Each has claims: a law, and if it holds. Runs in
float64 check the claims (`truth.py`). The first count of a round was made before any rule was changed for it; what
stayed open was then repaired by kinds, and counted again."""
TRIED = """## What stays undecided, and what was tried

`slots_filled_in_order`: tokens are sent to slots of experts by one-hot tensors of a running count.

- With `--weights these`, and in float64: undecided at the same product. The slots depend on tokens.
- With slots by `place[..., None] == torch.arange(3)`, which leaves the number of tokens open: undecided at the same
  product. No fact about single elements says that two tokens never share a slot.
- With `scatter` to the slots and `gather` from them: undecided at `scatter`, for the same reason.
- It has a theorem if each expert computes all tokens, and `slot.sum(-1)` chooses among them.

`projection_to_the_simplex`: the weights are scores less a threshold, clamped at zero.

- With `--weights these`, in float64, and with `torch.where(support, z, 0.0)`: undecided at the same product.
- A new rule says that a hidden score which is clamped at zero is zero. The weights then agree in both runs. That those
  of hidden keys are zero needs a threshold that is no mask itself, and no fact is about the place of a sorted score.
- On paper, the support leaves hidden scores out: the sum of z_j - z_k over j < k is at least z_1 - z_k. But a mask of
  -inf times a support of zero is NaN, and facts do not tell -inf from -1e9. No rule was written.
- It has a theorem if the weights are masked again, by `.masked_fill(later, 0.0)`.

Of the third round, with what each would need; no rule was tried for these:

- `positions_counted_before_the_mask`: a running sum from the end, of which what later keys add cancels in the softmax.
- `two_strongest_real_tokens`: that a place among the largest has a weight of zero where it is that of a pad.
- `gru_of_packed_rows`: a packed sequence, whose lengths are numbers.
- `nearest_earlier_neighbours`: that a place among the nearest has a weight of zero where it is that of a later token.
- `rows_compared_with_each_other` violates its law; its output has two axes of rows, and the audit asks which it is.

Of the fourth round, pads, indices and sets, with what each would need; no rule was tried for these:

- `flat_real_tokens_copied_back`, `flat_real_tokens_normalized_together`: as many tokens as are real, which is no size.
- `tokens_sorted_by_expert_and_put_back`: an order computed from tokens is another one in each run, and a fact speaks of
  elements at the same place. What is between a sort and its inverse would have to be seen as computed token by token;
  so would `order_undone_by_its_inverse`, for permutations.
- `runs_of_the_mask_as_segments`: that a running count of changes is equal only within a run of the mask.
- `sums_of_threes_in_a_flat_table`: an index that is a row times the open number of its segments.
- `places_between_earlier_tokens_interpolated`: the bounds of an index that is a float rounded down.
- `welford_mean_of_real_tokens`: that a mean which is updated token by token is a sum in any order.
- `each_pair_once_by_a_symmetric_map`: as many pairs as `triu_indices` has places, and that the order of a pair is free.
- `even_and_odd_rows_joined_without_interleaving`: that the halves of the rows, rounded up and down, are all rows.
- `rows_scored_against_each_other` violates its law; its output has two axes of rows.

Of the fourth round, attention and masks:

- `near_and_far_attention_merged`: that a sigmoid of two sums of exponentials is one where all of the second are hidden.
- `even_and_odd_keys_joined_by_their_sums`: a largest score that is -1e30 in a row without keys, and what is less it.
- `scores_above_the_mean_of_visible_ones`: that the largest score is not below the mean of those that are seen.
- `scores_centred_with_their_hidden_numbers`: a number of the row that is as negative as a mask, and that cancels.
- `keys_voted_by_real_queries`: that some real key has a fifth of the votes, since they sum to the number of queries.
- `mask_narrowed_by_a_pool`: that the largest number of a window is one where the one in its middle is.
- `own_token_only_if_alone`: two masking values, of which the smaller one hides next to the larger.
- `keys_whose_bits_are_in_the_query`: that `i & j == j` says j <= i.
- `bias_of_the_place_of_the_query_only`: for `permutation`, no number of a query is followed to the softmax.
- `frozen_parameter_as_mask`: a parameter has any values, also one that is not trained. No rule tells a mask from the
  weights of a frozen model. With `--weights these` it is proved at one length.
- `one_pass_over_keys`: a loop of which nothing says that the sum of exponentials is not zero.
- `mask_kept_in_a_dictionary`: the number of tokens is a key, and so one number.
- `future_by_indices_of_numpy`: as `indices_of_a_triangle`; at one length a write at known indices is a choice now.
- `base_by_the_largest_position`: `int(tensor)` of positions.

Of the fourth round, loops and filters:

- `magnitude_of_the_mean_frequency_removed`: that the first frequency is a sum of all tokens. The rule of a transform
  says that it reads its dimension by position.
- `strided_tokens_of_long_segments`: that every second token of a padded segment is a token. The best position on the
  diagonal was tried next to the formulas of the statement: of two that are enough, the first and stronger one is taken.

`experts_choose_the_best_tokens`, `ranks_as_positions` and `nearest_neighbours_gathered` keep their law only where no
two scores are equal: of equal scores `topk` and `argsort` choose by the index. Runs with two equal tokens, or with
tokens at equal distances, violate the law. The truth was checked by runs without them, and the search draws none. So no
rule was written; the claims are to be called violated once a witness is searched among equal tokens.

Of the loops that are recorded for one length:

- A tensor grows with the index (`cache_grown_token_by_token`, `cache_cut_to_a_window`, `rows_filled_in_a_loop`,
  `attention_over_outputs_so_far`, `keys_of_slices_up_to_each_query`, `delta_rule_by_a_triangle`,
  `cache_of_sinks_and_recent_tokens`, `half_at_once_then_step_by_step`): a loop of open length has one shape for all of
  its iterations.
- The remainder of the index chooses a branch or a place in a list (`outputs_fed_back_at_some_steps`,
  `level_and_season_in_a_loop`, `chunks_of_a_stream_and_a_triangle`): iterations run other operators.
- The last part is shorter than the others (`states_passed_between_chunks`, `weights_updated_for_each_chunk`,
  `state_handed_from_chunk_to_chunk`). With `F.pad` to a multiple of the size, as in `retention_by_chunks` and
  `segments_with_a_compressive_memory`, such a module has a theorem.
- Lists are made of parts, by a comprehension or of the last outputs (`lstm_written_out`, `comprehension`,
  `bias_of_rotated_tables`, `last_three_outputs_fed_back`): only lists that a `for` statement fills are followed.
- `associative_scan_by_halves`: the depth of its recursion depends on the number of tokens.
- `indices_of_a_triangle`: `tril_indices` of n tokens has n (n + 1) / 2 places, which is no size of the logic."""
LATER_ROUNDS = {  # the files of each round but the first
    "second round": {"caches", "experts", "positions", "spans", "states", "variants"},
    "third round": {
        "families", "forecasts", "lengths", "prefixes", "relative", "series", "sparsity", "summaries",
        "choices", "graphs", "memories", "numerics", "patches", "relations", "scans", "signals",
    },
    "fourth round": {
        "dispatch", "indices", "moments", "moved", "sets",
        "softmaxes", "feature_maps", "hiding", "choosing", "heads",
        "cells", "filters", "levels_of_tokens", "linear_states", "steps",
    },
}  # fmt: skip
CLAIMS = 1272  # those of the issue that set the targets
TARGETS = (
    ("undecided", "undecided", 15, 77),
    ("length", "proved at one length", 40, 161),
)  # level, words, of the issue
ROWS = (
    ("theorem", "holds, proved for every length"),
    ("length", "holds, proved at one length"),
    ("undecided", "holds, undecided"),
    ("violated", "violated, refuted"),
    ("missed", "violated, undecided"),
    ("wrong", "decided against the truth"),
)


def _count(found: Iterable[Verdict]) -> Counter[str]:
    return Counter(
        "wrong" if one.wrong else one.level if one.holds else "violated" if one.level == "refuted" else "missed"
        for one in found
    )


def open_at_first() -> dict[str, str]:
    """The claims that were no theorem, or not refuted, at first, with their levels."""
    return {claim: level for one in FIRST for claim, level in json.loads(one.read_text(encoding="utf-8")).items()}


def at_first(found: Sequence[Verdict]) -> list[Verdict]:
    """The same claims with the levels of the first run."""
    levels = open_at_first()
    return [
        Verdict(one.file, one.module, one.law, one.holds, levels.get(f"{one.name} {one.law}", one.best_level), "")
        for one in found
    ]


def row(one: Verdict) -> str:
    """One line about a claim."""
    truth = "holds" if one.holds else "violated"
    return f"{one.level:9} {truth:8} {one.law:11} {one.name}: {' '.join(one.reason.split())[:200]}"


def _target(found: Sequence[Verdict], level: str, words: str, most: int, of: int) -> str:
    """How many of the claims of a level at first have it today, next to the share that is aimed at."""
    before = [one for one in at_first(found) if one.holds and one.level == level]
    still = [one for one in found if one.holds and one.level == level]
    return (
        f"- {words}, though it holds: {len(before)} at first, {len(still)} today ({len(still) / len(before):.0%}; the "
        f"target is {most} of {of}, {most / of:.0%}). Of all claims {len(still) / len(found):.1%}; the target is "
        f"{most / CLAIMS:.1%} of {CLAIMS:,}."
    )


def page(found: Sequence[Verdict], *, again: bool = True) -> str:
    """The page about the verdicts of today; without `again`, only the claims that were open at first were decided."""
    later = frozenset().union(*LATER_ROUNDS.values())
    rounds = [
        ("first round", [one for one in found if one.file not in later]),
        *((words, [one for one in found if one.file in files]) for words, files in LATER_ROUNDS.items()),
    ]
    modules = len({one.name for one in found})
    decided_again = (
        "All of them were decided again today."
        if again
        else (
            f"Today the {len(open_at_first())} that were open at first were decided again; the others are as they were."
        )
    )
    counts = [_count(some) for _, own in rounds for some in (at_first(own), own)]
    heads = [f"{words}, {len({one.name for one in own})} modules: at first | today" for words, own in rounds]
    lines = [
        INTRODUCTION,
        "",
        f"{modules} modules, {len(found)} claims. {decided_again}",
        "",
        f"| claims | {' | '.join(heads)} |",
        f"| --- |{' --- |' * len(counts)}",
        *(f"| {words} | {' | '.join(str(count[key]) for count in counts)} |" for key, words in ROWS),
        "",
        *(_target(found, *target) for target in TARGETS),
        "",
        "At first one more claim was decided against what is written: `rows_as_bits`, which was said to be causal.",
        "The witness has 65 tokens, at which its shifts leave the 64 bits of an integer. The claim was wrong, and now",
        "says that the module is not causal. Runs contradicted two claims of the second round before any audit,",
        "`documents_numbered_from_the_end` and `keys_centred_over_tokens`: both are causal, and say so now. In the",
        "third round runs contradicted one, `positions_counted_before_the_mask`, in which what later keys add cancels.",
        "One claim of the third round is left out, that `best_keys_then_the_real_ones` is causal: an audit refuted it,",
        "since all chosen keys of a token may be pads. Two more are left out, that `exponentials_times_two_masks` is",
        "causal and ignores pads: its clamp acts where a hidden score is 46 above all visible ones, as runs with",
        "tokens 300 times as large show.",
        "",
        "In the fourth round runs contradicted one claim before any audit. Four claims about pads were wrong, as",
        "audits showed by witnesses with pads on the other side, on both, or in the middle; three of them now say that",
        "the module reads pads, and one is about `permutation` instead.",
        "",
        "Some outputs without tokens ignore pads on the right only. That is how such models are used, and what an",
        "audit then states. Of four of them (`right` in the files) it was first written that they read pads, in",
        "batches with pads on both sides. Their claims are now about pads on the right.",
        "",
        "## Claims that hold and are not proved for every length",
        "",
        "| module | law | level | reason |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {one.name} | {one.law} | {one.level} | {' '.join(one.reason.split()).replace('|', '/')[:300]} |"
        for one in found
        if not one.best
    ]
    return "\n".join([*lines, "", TRIED]) + "\n"
