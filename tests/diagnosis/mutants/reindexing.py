"""Mutants of the rules that rearrange entries."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "reindexing",
    M(
        "border_the_other_way",
        "np.pad(np.arange($fact.$shape[$d]), ($before, $after), $BORDERS[$mode])",
        "np.pad(np.arange($fact.$shape[$d]), ($after, $before), $BORDERS[$mode])",
        "pad",
    ),
    M(
        "inverse_match",
        "$result[$left] = $right",
        "$result[$right] = $left",
        "flip",
        "roll",
        "index_select",
        "cat",
        "index.Tensor",
    ),
    M(
        "joined_that_move_differently",
        "any(($m is not $real[0] for $m in $real))",
        "False",
        "slice_scatter",
    ),
    M(
        "free_when_joined",
        "len($parts) == 1 and $parts[0][0] is $FREE and (len($source) > 1)",
        "$parts[0][0] is $FREE and len($source) > 1",
        "cat",
        "stack",
    ),
    M(
        "not_flipped",
        "np.arange($fact.$shape[$d])[::-1].$copy()",
        "np.arange($fact.$shape[$d])",
        "flip",
    ),
    M(
        "rolled_backwards",
        "np.roll(np.arange($fact.$shape[$d]), $shift)",
        "np.roll(np.arange($fact.$shape[$d]), -$shift)",
        "roll",
        quick=True,
    ),
    M(
        "tiled_not_repeated",
        "np.repeat(np.arange($_size), $_repeats)",
        "np.tile(np.arange($_size), $_repeats)",
        "repeat_interleave.self_int",
    ),
    M(
        "padded_with_zeros",
        "$ValueRanges.$of_constant(np.full($one, $value))",
        "$ValueRanges.$of_constant(np.full($one, 0.0))",
        "constant_pad_nd",
        "pad",
    ),
    M(
        "padded_on_the_other_side",
        "[np.full($before, $size), np.arange($size), np.full($after, $size)]",
        "[np.full($after, $size), np.arange($size), np.full($before, $size)]",
        "pad",
        "constant_pad_nd",
    ),
    M(
        "joined_as_the_first",
        "$array.$size == 1 and $same($array.flat[0], $first.flat[0])",
        "$array.$size == 1",
        "cat",
        "stack",
    ),
    M(
        "joined_unsettled",
        "$Fact($o.$fact.$shape, $_moves, $settle($a, $o, $moves), $_known)",
        "$Fact($o.$fact.$shape, $_moves, $o.$fact.$dependence, $_known)",
        "cat",
        "stack",
    ),
    M(
        "window_a_step_short",
        "np.arange($count)[:, None] * $step + np.arange($width)",
        "np.arange($count)[:, None] * 1 + np.arange($width)",
        "unfold",
    ),
    M(
        "windows_laid_across",
        "[$d for $d in range($rank + 1) if $d != $dim + 1] + [$dim + 1]",
        "[$d for $d in range($rank + 1) if $d != $dim] + [$dim]",
        "unfold",
        quick=True,
    ),
    M(
        "rolled_the_other_way",
        "np.roll(np.arange($size), $shifts[0])",
        "np.roll(np.arange($size), -$shifts[0])",
        "roll",
    ),
    M(
        "scattered_backwards",
        "np.arange(len($chosen))",
        "np.arange(len($chosen))[::-1]",
        "slice_scatter",
    ),
)
