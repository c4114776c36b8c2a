"""One-line edits of the prover, each of which makes it say something false: the samples and programs must see it.

An edit is made in the process: the file that holds its line is compiled anew, and the functions that differ run
the new code until the test ends. A line that is no longer there, or there twice, fails as stale.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from orderproof import laws, prover
from orderproof.auditing.examine import Examination
from orderproof.prover.rule import rules
from tests.prover.samples import SAMPLES
from tests.prover.samples_drawing import Sample, contradictions, runs_of, trials
from tests.prover.test_attacks import ATTACKS, finding, named
from tests.prover.test_contradictions import (
    FALSE_PROOFS,
    FUTURE,
    PASSED_FOR_ORDINARY,
    WRONG_FACTS,
    attend,
    big,
    build,
    hidden_by_data,
    scores,
    unless_number,
    weights_beside,
)
from tests.prover.test_places_of_the_largest import BROKEN as LARGEST_BROKEN
from tests.prover.test_places_of_the_largest import OPEN as LARGEST_OPEN
from tests.prover.test_sharing import DIFFERENT, shared
from tests.prover.walking import TOKENS, WIDTH, Program, examine, shortfall, violations, walk

FOLDER = Path(inspect.getfile(prover)).parent
BROKEN = {named(attack): attack for attack in ATTACKS}
TRIALS = 48  # of each sample, a sixth of them first


@dataclass(frozen=True)
class Mutant:
    """A line, what it becomes, and the operators or the program that must see it."""

    name: str
    before: str
    after: str
    operators: tuple[str, ...] = ()
    program: str = ""  # one of PROGRAMS, or a case of test_contradictions
    quick: bool = False  # whether it is tried where the answer is to come soon


def M(name: str, before: str, after: str, *operators: str, program: str = "", quick: bool = False) -> Mutant:
    """A mutant."""
    return Mutant(name, before, after, operators, program, quick)


SDPA = "scaled_dot_product_attention"
MASKED = ("masked_fill.Scalar", "where.self", "where.ScalarOther", "where.ScalarSelf")
POINTWISE = [
    M(
        "operand_that_moves_otherwise",
        "levels: list[Levels] = [align(settle(a, o, moves), o",
        "levels: list[Levels] = [align(o.fact.level, o",
        "add.Tensor",
        quick=True,
    ),
    M(
        "first_operand_alone",
        "return Fact(a.shape, out_moves, highest(levels))",
        "return Fact(a.shape, out_moves, levels[0])",
        "maximum",
        "atan2",
    ),
    M(
        "the_other_branch",
        "branch = np.where(true, yes_level, no_level)",
        "branch = np.where(true, no_level, yes_level)",
        *MASKED,
        quick=True,
    ),
    M("condition_forgotten", "np.where(sure, highest([condition_level, branch]),", "np.where(sure, branch,", *MASKED),
    M(
        "unsure_branch",
        "either = np.where(risky, np.where(nowhere_high, LOW, UNSURE), UNKNOWN)",
        "either = np.where(risky, UNKNOWN, UNKNOWN)",
        *MASKED,
    ),
    M(
        "value_of_the_other_branch",
        "value = np.where(sure, np.where(true, yes.value, no.value), np.where(masked,",
        "value = np.where(sure, np.where(true, no.value, yes.value), np.where(masked,",
        *MASKED,
    ),
    M("triangle_without_its_diagonal", "else ones.triu(diagonal)).numpy()", "else ones.triu()).numpy()", "triu"),
    M(
        "triangle_the_wrong_way",
        "status = np.where(shaped, status, EXACT)",
        "status = np.where(shaped, EXACT, status)",
        "tril",
    ),
    M(
        "known_by_one_operand",
        "exact = reduce(np.logical_and, [k.status == EXACT",
        "exact = reduce(np.logical_or, [k.status == EXACT",
        "add.Tensor",
        "maximum",
    ),
    M(
        "broadcast_from_the_left",
        'return tuple(str(d + shift) if size > 1 else ""',
        'return tuple(str(d) if size > 1 else ""',
        "add.Tensor",
        "mul.Tensor",
    ),
    M(
        "literal_in_its_own_type",
        "np.full(one, torch.tensor(x, dtype=dtype).item())",
        "np.full(one, x)",
        "masked_fill.Scalar",
    ),
    M(
        "number_given_a_rank",
        "value.reshape(()) if not o.fact.shape else value",
        "value",
        program="eight_bits_added_to_a_number-causal",
    ),
    M(
        "zero_times_infinity",
        "return one_is(lambda v: v == 0) & ~infinite, 0",
        "return one_is(lambda v: v == 0), 0",
        "mul.Tensor",
        quick=True,
    ),
    M(
        "infinity_minus_infinity",
        "return one_is(lambda v: v == -np.inf) & ~positive,",
        "return one_is(lambda v: v == -np.inf),",
        program="infinity_less_infinity",
    ),
    M("or_of_integers", "if name in OR and boolean:", "if name in OR:", "bitwise_or.Tensor"),
    M("divided_by_zero", "large = large | (knowns[1].where(EXACT) & _small(knowns[1].value))", "pass", "div.Tensor"),
    M("literal_not_added", "reduce(np.add, values) + sum(literals)", "reduce(np.add, values)", "add.Tensor"),
    M(
        "alpha_ignored",
        'plain = a.node.kwargs.get("alpha", 1) == 1 and len(a.args) < 3',
        "plain = len(a.args) < 3",
        "add.Tensor",
    ),
    M(
        "alpha_ignored_at_minus_infinity",
        'and len(knowns) > 1 and a.node.kwargs.get("alpha", 1) == 1:',
        "and len(knowns) > 1:",
        "add.Tensor",
    ),
    M(
        "factor_not_known",
        "sure = (knowns[1 - place].status == EXACT) & (factor > 0)",
        "sure = factor >= 0",
        "mul.Tensor",
        "div.Tensor",
    ),
    M(
        "unsure_plus_masked",
        "keeps = keeps & (bound <= -limit) & ~unsure",
        "keeps = keeps & (bound <= -limit)",
        "add.Tensor",
    ),
    M(
        "bound_no_longer_a_mask",
        "keeps = keeps & (bound <= -limit) & ~unsure",
        "keeps = keeps & ~unsure",
        "mul.Tensor",
        "add.Tensor",
    ),
    M(
        "masked_passes_for_ordinary",
        "unsure | large | any_masked | low\n    status",
        "unsure | large | low\n    status",
        "sub.Tensor",
        "mul.Tensor",
        "neg",
    ),
    M(
        "large_passes_for_ordinary",
        "unsure | large | any_masked | low\n    status",
        "unsure | any_masked | low\n    status",
        "add.Tensor",
        "mul.Tensor",
    ),
]
LABELLED = [
    M("any_move_agrees", "return move is target or move is FREE", "return True", "add.Tensor", "matmul", quick=True),
    M(
        "symmetric_somewhere",
        "if symmetric is not None and symmetric.all():",
        "if symmetric is not None and symmetric.any():",
        "add.Tensor",
    ),
    M(
        "asymmetric_kept",
        "return compress(np.where(symmetric, fact.level, ALWAYS))",
        "return fact.level",
        "add.Tensor",
        "mul.Tensor",
    ),
    M("values_not_compared", "agree = agree & same & (carry(", "agree = agree & (carry(", "add.Tensor", quick=True),
    M(
        "image_not_known",
        "agree = agree & same & (carry(known.status, target, fact.shape, g) == EXACT)",
        "agree = agree & same",
        "add.Tensor",
        "mul.Tensor",
        "maximum",
    ),
    M(
        "one_generator_of_many",
        "for g in range(generators_of(target) or generators_of(fact.moves)):",
        "for g in range(2):",
        "add.Tensor",
        "mul.Tensor",
    ),
    M(
        "never_at_its_first_element",
        "if level.size == 1 and level.flat[0] == NEVER:",
        "if level.flat[0] == NEVER:",
        "add.Tensor",
        "maximum",
    ),
    M("lower_of_two_levels", "result = np.maximum(result, level)", "result = np.minimum(result, level)", "add.Tensor"),
    M("labels_in_their_own_order", "if present != list(range(len(present))):", "if False:", "einsum"),
    M(
        "labels_turned_the_other_way",
        "array = array.transpose(present)",
        "array = array.transpose(np.argsort(present))",
        "einsum",
    ),
    M("constant_along_everything", "free = [s == 1 and n > 1 for", "free = [n > 1 for", "embedding"),
    M(
        "large_constant_passes_for_ordinary",
        "return unsure(fact) if a.may_mask(node) else fact",
        "return fact",
        program="mask_joined_from_a_large_constant-causal",
    ),
]
FACT = [
    M(
        "zeros_of_the_first_run",
        "zero = both_ends(self.known.where(EXACT) & (self.known.value == 0), moves, self.shape)",
        "zero = self.known.where(EXACT) & (self.known.value == 0)",
        "matmul",
        "einsum",
        "linear",
    ),
    M(
        "large_is_no_mask",
        "return bool((known.status >= MASKED).any() or np.any(huge))",
        "return bool((known.status >= MASKED).any())",
        "matmul",
        "linear",
        "relu",
        "cumsum",
    ),
    M(
        "masked_is_no_mask",
        "return bool((known.status >= MASKED).any() or np.any(huge))",
        "return bool(np.any(huge))",
        "matmul",
        "linear",
        "sum",
    ),
    M(
        "nothing_unsure",
        "Known(np.full(one, UNSURE, dtype=np.uint8), np.zeros(one))",
        "None",
        "layer_norm",
        "sum",
        "matmul",
    ),
    M(
        "image_of_another_value",
        "(carry(known.status, moves, shape, g) == EXACT) & (image == known.value)",
        "(carry(known.status, moves, shape, g) == EXACT)",
        "add.Tensor",
        "where.self",
        "maximum",
        quick=True,
    ),
    M(
        "image_not_known_in_a_result",
        "same = same & (carry(known.status, moves, shape, g) == EXACT) & (image == known.value)",
        "same = same & (image == known.value)",
        "add.Tensor",
        "mul.Tensor",
        "masked_fill.Scalar",
    ),
    M(
        "known_is_never_changed",
        "level = np.where(same, NEVER, level)",
        "level = np.where(known.where(EXACT), NEVER, level)",
        "add.Tensor",
        "where.self",
    ),
    M(
        "compressed_too_far",
        "same = bool((array == first).all())",
        "same = bool((array == first).any())",
        "softmax.int",
        "cumsum",
        "cat",
    ),
    M(
        "carried_back",
        "array = np.take(array, move.indices(generator, shape[d]), axis=d)",
        "array = np.take(array, np.argsort(move.indices(generator, shape[d])), axis=d)",
        "add.Tensor",
        "clone",
    ),
    M(
        "either_end",
        "result = result & carry(mask, moves, shape, g)",
        "result = result | carry(mask, moves, shape, g)",
        "softmax.int",
        "matmul",
    ),
]
CONTRACTION = [
    M("sum_of_infinite_terms", "if any(_not_finite(a, o) for o in operands):", "if False:", "matmul", "einsum"),
    M(
        "constant_that_masks",
        "return may_mask(operand.fact.known) or (operand.node is not None and a.may_mask(operand.node))",
        "return may_mask(operand.fact.known)",
        "matmul",
        "linear",
        "addmm",
    ),
    M("one_zero_makes_the_sum_zero", "zero.all(axis=summed)", "zero.any(axis=summed)", "matmul", "einsum", quick=True),
    M(
        "lowest_level_of_a_sum_with_zeros",
        "level, empty = level.max(axis=summed),",
        "level, empty = level.min(axis=summed),",
        "matmul",
        "einsum",
    ),
    M(
        "zeros_under_the_own_move",
        "zeros = [o.fact.zeros(target_moves(o, moves))",
        "zeros = [o.fact.zeros(o.fact.moves)",
        program="known_zeros_of_an_operand_retargeted-order_blind",
    ),
    M(
        "lowest_level_of_a_sum",
        "        level = level.max(axis=summed)\n",
        "        level = level.min(axis=summed)\n",
        "matmul",
        "linear",
    ),
    M(
        "masked_bias",
        "return unsure(result) if may_mask(first.known) or _not_finite(a, second) else result",
        "return result",
        "linear",
        "addmm",
        "baddbmm",
    ),
    M("columns_summed", '"sum", "column"]', '"column", "sum"]', "mm", "bmm", "matmul"),
]
FIBRE = [
    M(
        "line_wholly_masked",
        "return Lines(ordinary, alive, masked & alive, finite, spoilt)",
        "return Lines(ordinary, alive, masked, finite, spoilt)",
        "softmax.int",
        SDPA,
        quick=True,
    ),
    M(
        "masked_in_the_first_run",
        "dropped = both_ends(gone, fact.moves, fact.shape)",
        "dropped = gone",
        "softmax.int",
        SDPA,
        "add.Tensor",
    ),
    M(
        "infinity_beside_masked",
        "alive = ordinary.any(axis=dims, keepdims=True) & ~spoilt",
        "alive = ordinary.any(axis=dims, keepdims=True)",
        "softmax.int",
        "_softmax",
    ),
    M(
        "own_level_behind_a_mask",
        "high = np.where(dropped, NEVER, level).max(axis=dim, keepdims=True)",
        "high = np.where(dropped, NEVER, level)",
        "softmax.int",
        "_softmax",
    ),
    M(
        "own_level_of_a_softmax",
        "return Fact(fact.shape, fact.moves, fact.level.max(axis=dim, keepdims=True))",
        "return fact",
        "softmax.int",
        quick=True,
    ),
    M(
        "line_that_is_no_number",
        "ill = np.where(number, UNKNOWN, UNSURE)",
        "ill = np.where(number, UNKNOWN, UNKNOWN)",
        "softmax.int",
    ),
    M("logarithm_of_zero", "if logarithm and may_mask(known):", "if False:", "log_softmax.int", "_log_softmax"),
    M("mask_beside_a_mask_as_large", "dtype, share=0.1)", "dtype)", program="mask_beside_entries_nearly_as_large"),
    M("groups_by_place", "if is_moved(fact.moves[1]) and groups > 1:", "if False:", "group_norm"),
    M(
        "own_level_of_a_normalisation",
        "inner = Fact(fact.shape, fact.moves, fact.level.max(axis=dims, keepdims=True))",
        "inner = fact",
        "layer_norm",
        "rms_norm",
        quick=True,
    ),
    M("batch_statistics", 'if ".batch_norm." in a.target and a.args[5]:', "if False:", "batch_norm"),
    M(
        "weights_that_move_otherwise",
        "level = highest([align(settle(a, o, moves), o.labels, order) for o in operands])  # type: ignore[misc]\n    return Fact(fact.shape,",
        "level = highest([align(o.fact.level, o.labels, order) for o in operands])\n    return Fact(fact.shape,",
        "layer_norm",
        "batch_norm",
    ),
    M(
        "moments_that_move",
        "moves = tuple(STILL if d in dims else m for d, m in enumerate(result.moves))",
        "moves = result.moves",
        "native_layer_norm",
        "_fused_rms_norm",
    ),
]
LOOKUP = [
    M("table_that_moves", "if not table.unmoved:", "if False:", "embedding"),
    M(
        "table_that_depends",
        "level = np.maximum(index.level[..., None], table.level.max())",
        "level = index.level[..., None]",
        "embedding",
        quick=True,
    ),
    M("moved_dimension_read", "if any(is_moved(fact.moves[d]) for d in places):", "if False:", "index.Tensor"),
    M(
        "lowest_level_read",
        "inner: Levels = fact.level.max(axis=tuple(places), keepdims=True)",
        "inner: Levels = fact.level.min(axis=tuple(places), keepdims=True)",
        "index.Tensor",
    ),
    M(
        "index_forgotten",
        "return Fact(a.shape, rest_moves[:at] + head + rest_moves[at:], np.maximum(before, wide))",
        "return Fact(a.shape, rest_moves[:at] + head + rest_moves[at:], before)",
        "index.Tensor",
    ),
    M("dilated_windows", 'if "max_pool" in str(node.target)', "if False", program="windows_of_border_alone-causal"),
    M("border_the_other_way", "(before, after), _BORDERS[mode])", "(after, before), _BORDERS[mode])", "pad"),
    M("map_read_by_place", 'a.shape, {"h", "w", "place"})', 'a.shape, {"place"})', "grid_sampler"),
    M("grid_of_another_map", '["n", "y", "x", "place"], 1)]', '["m", "y", "x", "place"], 1)]', "grid_sampler"),
    M(
        "places_of_shorter_lines",
        "if among is None or among.dim != dim or among.sure.shape[dim] != made.shape[dim]:",
        "if among is None or among.dim != dim:",
        program="largest_of_one_entry-causal",
    ),
    M("places_of_one_too_few", "keepdims=True) <= count)", "keepdims=True) <= count + 1)", program="largest_too_few"),
    M(
        "places_of_the_smallest",
        'if known is None or not a.argument(3, "largest", True):',
        "if known is None:",
        program="smallest_places",
    ),
    M("pooled_by_place", "if any(is_moved(m) for m in fact.moves[lead:]):", "if False:", "avg_pool2d"),
    M(
        "lowest_level_pooled",
        "seen = np.where(reads.numpy() != 0, v, seen)",
        "seen = np.where(reads.numpy() > 0.9, v, seen)",
        "avg_pool2d",
    ),
    M(
        "places_of_no_weight_unread",
        'if "linear" in a.target or "cubic" in a.target:',
        "if False:",
        "upsample_bilinear2d",
    ),
    M(
        "places_in_reverse",
        "source = np.ravel_multi_index(tuple(wanted), sizes).reshape(-1)",
        "source = np.ravel_multi_index(tuple(wanted), sizes).reshape(-1)[::-1].copy()",
        "index.Tensor",
    ),
    M(
        "moved_dimension_selected",
        'if is_moved(fact.moves[dim]):\n        raise NothingFollows("a dimension whose elements move is read at indices that depend on place")\n    return _read',
        'if False:\n        raise NothingFollows("a dimension whose elements move is read at indices that depend on place")\n    return _read',
        "index_select",
    ),
    M(
        "masked_beside_a_score",
        "both, bound = masked[0] & masked[1], np.maximum(*values)",
        "both, bound = masked[0] | masked[1], np.minimum(*values)",
        "maximum",
    ),
    M(
        "larger_of_what_is_high",
        "return np.where(high, UNSURE, status).astype(np.uint8), np.where(both",
        "return status.astype(np.uint8), np.where(both",
        "maximum",
    ),
    M(
        "line_masked_in_part",
        "bound = np.where(mask_like(fact.known, dtype), value, np.inf).max(axis=dims, keepdims=True)",
        "bound = np.where(mask_like(fact.known, dtype), value, np.inf).min(axis=dims, keepdims=True)",
        "amax",
        "logsumexp",
    ),
    M(
        "short_index",
        "if any(index.shape[d] != fact.shape[d] for d in range(rank) if d != dim):",
        "if False:",
        "gather",
    ),
    M(
        "lowest_level_gathered",
        "np.maximum(first.max(axis=dim, keepdims=True), second)",
        "np.maximum(first.min(axis=dim, keepdims=True), second)",
        "gather",
    ),
]
MOVEMENT = [
    M(
        "free_by_being_long",
        "moves = tuple(FREE if made.shape[d] == 1 and a.shape[d] > 1 else",
        "moves = tuple(FREE if a.shape[d] > 1 else",
        "expand",
    ),
    M("split_permutation", "if not (part == line.reshape(", "if False and (part == line.reshape(", "view", quick=True),
    M("one_free_dimension", "if all(m is FREE for m, _ in real):", "if any(m is FREE for m, _ in real):", "view"),
    M(
        "known_bits",
        "    return unsure(Fact(fact.shape, fact.moves, fact.level))  #",
        "    return fact  #",
        "view.dtype",
    ),
    M(
        "not_transposed",
        "order[i], order[j] = order[j], order[i]",
        "order[i], order[j] = order[i], order[j]",
        "swapaxes",
        "transpose.int",
    ),
    M(
        "inverse_match",
        "result[left] = right",
        "result[right] = left",
        "flip",
        "roll",
        "index_select",
        "cat",
        "index.Tensor",
    ),
    M("joined_that_move_differently", "if any(m is not real[0] for m in real):", "if False:", "slice_scatter"),
    M(
        "free_when_joined",
        "return FREE if len(parts) == 1 and parts[0][0] is FREE and len(source) > 1 else STILL",
        "return FREE if parts[0][0] is FREE and len(source) > 1 else STILL",
        "cat",
        "stack",
    ),
    M("not_flipped", "np.arange(fact.shape[d])[::-1].copy()", "np.arange(fact.shape[d])", "flip"),
    M(
        "rolled_backwards",
        "np.roll(np.arange(fact.shape[d]), shift)",
        "np.roll(np.arange(fact.shape[d]), -shift)",
        "roll",
        quick=True,
    ),
    M(
        "tiled_not_repeated",
        "np.repeat(np.arange(fact.shape[d]), a.args[1])",
        "np.tile(np.arange(fact.shape[d]), a.args[1])",
        "repeat_interleave.self_int",
    ),
    M(
        "padded_with_zeros",
        "np.full(one, value))\n    filler",
        "np.full(one, 0.0))\n    filler",
        "constant_pad_nd",
        "pad",
    ),
    M(
        "padded_on_the_other_side",
        "[np.full(before, size), np.arange(size), np.full(after, size)]",
        "[np.full(after, size), np.arange(size), np.full(before, size)]",
        "pad",
        "constant_pad_nd",
    ),
    M(
        "joined_as_the_first",
        "array.size == 1 and array.flat[0] == arrays[0].flat[0] for array in arrays",
        "array.size == 1 for array in arrays",
        "cat",
        "stack",
    ),
    M("joined_unsettled", "            settle(a, o, moves),\n", "            o.fact.level,\n", "cat", "stack"),
]
REDUCTION = [
    M(
        "lowest_level_reduced",
        "level = fact.level.max(axis=dims, keepdims=keep) if dims",
        "level = fact.level.min(axis=dims, keepdims=keep) if dims",
        "sum.dim_IntList",
        "amax",
        quick=True,
    ),
    M(
        "index_of_a_moved_maximum",
        "for d in dims) and not (both and only_value_used(a)):",
        "for d in dims) and False:",
        "argmax",
        "max.dim",
    ),
    M(
        "unread_index",
        "index = Fact(result.shape, result.moves, np.full((1,) * len(result.shape), ALWAYS, dtype=np.int64))",
        "pass",
        "max.dim",
        "min.dim",
        "median.dim",
    ),
]
SCAN = [
    M(
        "scan_of_what_moves",
        'raise NothingFollows(f"{what} along dimension {dim}, which moves: the result depends on the order")',
        "pass",
        "cumsum",
        "sort",
        quick=True,
    ),
    M(
        "scan_stays_free",
        "\n    return Fact(fact.shape, moves, fact.level)",
        "\n    return fact",
        "cumsum",
        "topk",
        "sort",
    ),
    M("scan_without_the_past", "np.maximum.accumulate(fact.level, axis=dim)", "fact.level", "cumsum"),
    M(
        "sorted_in_place",
        "level = fact.level.max(axis=dim, keepdims=True)\n    shapes",
        "level = fact.level\n    shapes",
        "sort",
        "msort",
    ),
    M(
        "scattered_backwards",
        "place[chosen] = size + np.arange(len(chosen))",
        "place[chosen] = size + np.arange(len(chosen))[::-1]",
        "slice_scatter",
    ),
    M(
        "wide_window",
        "return self.width == 1 and self.stride == 1 and self.padding == 0",
        "return True",
        "conv1d",
        "conv2d",
    ),
    M(
        "lowest_level_of_a_channel",
        "level: Levels = fact.level.max(axis=1, keepdims=True)",
        "level: Levels = fact.level.min(axis=1, keepdims=True)",
        "conv1d",
        "conv2d",
    ),
    M(
        "padded_the_other_way",
        "index = np.arange(size) * self.stride - self.padding +",
        "index = np.arange(size) * self.stride + self.padding +",
        "conv1d",
        "convolution",
    ),
    M("dilation_forgotten", "- self.padding + tap * self.dilation", "- self.padding + tap", "conv1d"),
    M(
        "turned_the_wrong_way",
        "reach = np.arange(size) + self.padding - tap",
        "reach = np.arange(size) - self.padding - tap",
        "convolution",
    ),
    M(
        "every_place_read",
        "return reach // self.stride, reach % self.stride == 0",
        "return reach, reach % 1 == 0",
        "convolution",
    ),
    M(
        "padded_behind",
        "paddings = [(w - 1) * d // 2 for",
        "paddings = [((w - 1) * d + 1) // 2 for",
        "conv1d.padding",
    ),
    M("weight_that_moves", "if not own.unmoved:", "if False:", "conv1d", "conv2d", "convolution"),
    M("channels_that_move", "if is_moved(fact.moves[1]):", "if False:", "conv1d", "conv2d"),
    M(
        "weight_that_depends",
        "level = np.maximum(level, channels.reshape(1, -1, *[1] * len(windows)))",
        "pass",
        "conv1d",
    ),
]
EINSUM = [
    M("ellipsis_from_the_left", "in reversed(range(count if dots else 0))", "in range(count if dots else 0)", "einsum"),
    M("once_or_more", "if letters.count(x) == 1))", "if letters.count(x) == 1)[::-1])", "einsum"),
]
SORTED = [
    M("places_of_a_set", "moves, uniform(len(shapes[1]), ALWAYS))", "moves, level)", "sort", "topk"),
    M(
        "set_that_moves",
        "moves = tuple(STILL if d == dim else m for d, m in enumerate(fact.moves))\n    level",
        "moves = fact.moves\n    level",
        "msort",
    ),
]
WINDOWS = [
    M(
        "window_a_step_short",
        "np.arange(count)[:, None] * step + np.arange(width)",
        "np.arange(count)[:, None] * 1 + np.arange(width)",
        "unfold",
    ),
    M(
        "windows_laid_across",
        "[d for d in range(rank + 1) if d != dim + 1] + [dim + 1])",
        "[d for d in range(rank + 1) if d != dim] + [dim])",
        "unfold",
        quick=True,
    ),
    M("rolled_the_other_way", "np.roll(np.arange(size), shifts[0])", "np.roll(np.arange(size), -shifts[0])", "roll"),
]
DENSE = [
    M(
        "place_that_moves",
        "if label in placed and is_moved(move):",
        "if False:",
        "scatter.src",
        "fft_fft",
        "view_as_complex",
        "index_put",
        quick=True,
    ),
    M(
        "lowest_level_of_a_line",
        "align(level.max(axis=gone) if gone else level, kept, output)",
        "align(level.min(axis=gone) if gone else level, kept, output)",
        "scatter.src",
        "_fft_r2c",
        quick=True,
    ),
    M(
        "index_forgotten",
        "_operand(a, a.args[0], labels, 0), _operand(a, index, line, 2)]",
        "_operand(a, a.args[0], labels, 0)]",
        "scatter.value",
    ),
    M(
        "source_read_at_its_own_place",
        '[x if d != dim else "source" for d, x in enumerate(labels)], 3))',
        "labels, 3))",
        "scatter.src",
        "scatter_add",
    ),
    M(
        "lines_not_covered",
        "if any(shape_of(n)[d] != fact.shape[d] for n in written for d in range(rank) if d != dim):",
        "if False:",
        "scatter.value",
        "scatter.src",
    ),
    M(
        "another_dimension_transformed",
        'inner = [f"in {d}" if d in dims else str(d) for d in range(rank)]',
        "inner = [str(d) for d in range(rank)]",
        "fft_fft",
        "_fft_r2c",
    ),
    M(
        "written_number_is_ordinary",
        "return any(isinstance(v, int | float) and not abs(v) < FLOAT16_LARGE for v in numbers)",
        "return False",
        "scatter.value",
        "index_fill.int_Scalar",
        quick=True,
    ),
    M(
        "bound_of_a_clamp_is_ordinary",
        "if made.known is None or not (low < FLOAT16_LARGE and high > -FLOAT16_LARGE):",
        "if made.known is None:",
        "clamp",
        "clamp_max",
        "hardtanh",
        quick=True,
    ),
    M(
        "masked_entry_clamped",
        "plain = np.full((1,) * len(made.shape), True) if known is None else known.where(UNKNOWN)",
        "plain = np.full((1,) * len(made.shape), True)",
        "clamp",
    ),
    M(
        "sum_with_one_zero",
        "status = np.asarray(zero.all(axis=dims, keepdims=keep))",
        "status = np.asarray(zero.any(axis=dims, keepdims=keep))",
        "sum.dim_IntList",
        "mean.dim",
        "nansum",
    ),
]
ATTENTION = [
    M(
        "mask_upside_down",
        "hidden, visible = mask.where(EXACT) & (mask.value == 0), mask.where(EXACT) & (mask.value != 0)",
        "visible, hidden = mask.where(EXACT) & (mask.value == 0), mask.where(EXACT) & (mask.value != 0)",
        SDPA,
        quick=True,
    ),
    M(
        "upper_triangle",
        "keep = np.tril(np.ones(shape[-2:], dtype=bool))",
        "keep = np.triu(np.ones(shape[-2:], dtype=bool))",
        SDPA,
    ),
    M("mask_that_depends", "level = highest([scores_level, mask_level])", "level = highest([scores_level])", SDPA),
    M(
        "heads_in_another_order",
        "source = np.repeat(np.arange(own), heads // own)",
        "source = np.tile(np.arange(own), heads // own)",
        SDPA,
    ),
    M(
        "softmax_along_the_queries",
        "weights = softmax_along(a, scores, rank - 1, dtype, safe=True)",
        "weights = softmax_along(a, scores, rank - 2, dtype, safe=True)",
        SDPA,
        program="one_value_that_is_not_zero",
    ),
    M(
        "mask_that_is_not_known",
        "np.where(visible, scores.status, LOW)",
        "scores.status",
        program="mask_of_data_on_known_scores",
    ),
    M(
        "infinite_mask_is_ordinary",
        "status = np.where(large & ((status == UNKNOWN) | (status == LOW)), UNSURE, status).astype(np.uint8)",
        "status = status.astype(np.uint8)",
        SDPA,
    ),
]
WALK = [
    M(
        "parameter_read",
        "opaque = (name in self._parameters and not self._trust) or value is None",
        "opaque = value is None",
        "add.Tensor",
        "linear",
        "index_select",
        quick=True,
    ),
    M(
        "random_is_determined",
        'getattr(node.target, "tags", ()) and not _switched_off(node)',
        'getattr(node.target, "tags", ()) and False',
        program="random",
    ),
    M("dropout_in_training", "return train is False or bool(p == 0)", "return True", program="dropout"),
    M(
        "large_constant_is_ordinary",
        "array is not None and bool((~(np.abs(array) < FLOAT16_LARGE)).any())",
        "False",
        "sum",
        "layer_norm",
        "linear",
        "mul.Tensor",
    ),
    M(
        "nan_is_ordinary",
        "array is not None and bool((~(np.abs(array) < FLOAT16_LARGE)).any())",
        "array is not None and bool((np.abs(array) >= FLOAT16_LARGE).any())",
        "linear",
        "batch_norm",
        "matmul",
        "layer_norm",
    ),
    M(
        "pure_function_of_what_moves",
        "if not all(f.unmoved for f in facts):",
        "if False:",
        "sort",
        "argmax",
        "native_group_norm",
        quick=True,
    ),
    M(
        "pure_function_of_the_least",
        "level = max((int(f.level.max()) for f in facts), default=NEVER)",
        "level = min((int(f.level.max()) for f in facts), default=NEVER)",
        "native_group_norm",
        "einsum",
        "gather",
    ),
    M(
        "nothing_tainted",
        "if not masked and not has_large_number(a.node) and not is_uninitialised(a.node):",
        "if True:",
        "layer_norm",
        "sum",
        quick=True,
    ),
    M(
        "memory_as_it_is_passes_for_ordinary",
        "if not masked and not has_large_number(a.node) and not is_uninitialised(a.node):",
        "if not masked and not has_large_number(a.node):",
        program="zeros_times_memory_as_it_is",
        quick=True,
    ),
    M(
        "no_rule_tainted",
        "return made if rule.lemma in _CAREFUL else _tainted(a, made)",
        "return made",
        "layer_norm",
        "sum",
    ),
    M(
        "purity_untainted",
        "            return _tainted(a, pure, pure=True)\n",
        "            return pure\n",
        "native_group_norm",
    ),
    M(
        "nothing_follows_untainted",
        'return _tainted(a, _each(node.meta["val"], lambda shape: still(shape, ALWAYS)))',
        'return _each(node.meta["val"], lambda shape: still(shape, ALWAYS))',
        "slice.Tensor",
    ),
]
LOW_LINES = [
    M(
        "logarithm_of_low",
        "if logarithm and may_mask(known):",
        "if logarithm and known.where(MASKED).any():",
        program="logarithm_of_a_softmax_of_what_data_hide",
    ),
    M("low_plus_large", "sum(literals), low & (any_masked | ~large)", "sum(literals), low", "add.Tensor"),
    M(
        "low_and_masked_has_a_bound",
        "any_masked & ~low, reduce(np.add, values)",
        "any_masked, reduce(np.add, values)",
        program="softmax_of_a_row_that_data_and_a_mask_hide",
    ),
    M(
        "anything_taken_from_low",
        "stays = (knowns[0].status == LOW) & taken & ~large",
        "stays = (knowns[0].status == LOW) & ~large",
        program="low_less_low",
    ),
    M(
        "large_taken_from_low",
        "stays = (knowns[0].status == LOW) & taken & ~large",
        "stays = (knowns[0].status == LOW) & taken",
        "sub.Tensor",
    ),
    M("low_times_large", "        stays = stays & ~large\n", "", "mul.Tensor", "div.Tensor"),
    M("low_times_anything", "low[place] & sure & (np.abs(factor) < np.inf)", "low[place]", "mul.Tensor", "div.Tensor"),
    M(
        "low_beside_unsure",
        "stays = stays & ~unsure & dtype.is_floating_point",
        "stays = stays & dtype.is_floating_point",
        program="low_and_unsure",
    ),
    M(
        "low_passes_for_ordinary",
        "unsure | large | any_masked | low\n    status",
        "unsure | large | any_masked\n    status",
        "neg",
        "sub.Tensor",
        "maximum",
    ),
    M(
        "any_slope_is_tame",
        "tame = name in TAMING and all(x > 0 for x in literals)",
        "tame = name in TAMING",
        program="softplus_of_negative_slope",
    ),
    M(
        "exponential_of_low",
        "return knowns[0].status == MASKED, 0",
        "return knowns[0].status >= MASKED, 0",
        "exp",
        quick=True,
    ),
    M(
        "high_branch_is_low",
        "np.where(risky, np.where(nowhere_high, LOW, UNSURE), UNKNOWN)",
        "np.where(risky, LOW, UNKNOWN)",
        *MASKED,
    ),
    M(
        "one_branch_is_not_high",
        "nowhere_high = not_high(yes) & not_high(no) &",
        "nowhere_high = not_high(yes) &",
        *MASKED,
    ),
    M(
        "known_value_is_not_high",
        "vague | (known.where(EXACT) & (known.value < FLOAT16_LARGE))",
        "vague | known.where(EXACT)",
        *MASKED,
    ),
    M(
        "unsure_is_not_high",
        "(known.status == UNKNOWN) | (known.status == MASKED) | (known.status == LOW)",
        "(known.status != EXACT)",
        *MASKED,
    ),
    M(
        "almost_a_mask_is_ordinary",
        "found: NDArray[np.bool_] = known.where(EXACT) & ~(np.abs(value) < limit)",
        "found: NDArray[np.bool_] = known.where(EXACT) & ~(np.abs(value) < 1e8)",
        program="almost_a_mask_filled_in_where_data_say",
    ),
    M(
        "whole_numbers_are_small",
        "(name in WHOLE and dtype is not torch.bool)",
        "False",
        program="mask_of_whole_numbers_by_multiplication",
    ),
    M(
        "next_to_nothing_is_a_number",
        "large = large | _small(_divisor(a)).any()",
        "pass",
        program="division_by_next_to_nothing",
    ),
    M("unsure_score_is_not_high", "high = scores.status == UNSURE", "high = scores.status > UNSURE + 9", SDPA),
    M(
        "low_mask_added",
        "low = (scores.status == LOW) | (mask.status == LOW)",
        "low = scores.status == LOW",
        program="mask_hidden_by_data",
    ),
    M("large_mask_beside_low", "large & ((status == UNKNOWN) | (status == LOW))", "large & (status == LOW)", SDPA),
    M(
        "line_of_low_is_a_number",
        "(known.status != UNSURE) & (known.status != LOW) & finite & ~overflown",
        "(known.status != UNSURE) & finite & ~overflown",
        "softmax.int",
        "_softmax",
    ),
    M(
        "line_of_unsure_is_a_number",
        "number = (sure.any(axis=dim, keepdims=True) | safe) & ~spoilt",
        "number = sure.any(axis=dim, keepdims=True) | safe",
        "softmax.int",
        "_safe_softmax",
    ),
    M(
        "every_softmax_is_safe",
        "number = (sure.any(axis=dim, keepdims=True) | safe) & ~spoilt",
        "number = ~spoilt",
        "softmax.int",
        "_softmax",
    ),
    M("every_softmax_drops_infinity", "(absent & ~spoilt & safe)", "(absent & ~spoilt)", "softmax.int", "_softmax"),
    M("spoilt_line_drops_infinity", "(absent & ~spoilt & safe)", "(absent & safe)", program="infinity_in_a_safe_line"),
    M(
        "low_is_alive",
        "ordinary = (known.status == UNKNOWN) |",
        "ordinary = (known.status == UNKNOWN) | (known.status == LOW) |",
        "softmax.int",
        "_softmax",
    ),
    M("overflown_is_a_number", "& finite & ~overflown", "& finite", program="mask_twice_over"),
    M(
        "bits_pass_for_ordinary",
        "return unsure(Fact(fact.shape, fact.moves, fact.level))  #",
        "return Fact(fact.shape, fact.moves, fact.level)  #",
        program="bits_read_as_whole_numbers_and_back",
    ),
]
SHARING = [
    M(
        "shared_whatever_the_dtype",
        "return tuple(value.shape), value.dtype",
        "return tuple(value.shape)",
        program="dtypes_of_operands",
    ),
    M(
        "shared_whatever_the_constant",
        'return "constant", x.name',
        'return "constant", _form(x)',
        program="values_of_constants",
    ),
    M(
        "shared_whatever_the_type",
        "return type(x).__name__, repr(x) if isinstance(x, float) else x",
        "return x",
        program="whole_and_boolean_literals",
    ),
    M("shared_whatever_the_sign", "repr(x) if isinstance(x, float) else x", "x", program="signed_zeros"),
    M(
        "weight_shared_with_given",
        'return "opaque", _form(x), self.number(fact)',
        'return "tensor", _form(x), self.number(fact)',
        program="weight_and_given",
    ),
    M(
        "shared_whatever_the_options",
        "self._argument(tuple(sorted(node.kwargs.items())), facts)",
        "None",
        program="options",
    ),
    M(
        "shared_whatever_the_operator",
        "made: Hashable = (node.target, _form(node),",
        "made: Hashable = (_form(node),",
        program="operators",
    ),
    M("shared_whatever_the_level", "                fact.level.tobytes(),\n", "", program="levels"),
    M(
        "shared_whatever_the_moves",
        "                tuple(map(id, fact.moves)),  # moves are interned\n",
        "",
        program="moves",
    ),
    M(
        "shared_whatever_is_known",
        "known and (known.status.shape, known.status.tobytes(), *_value(known.value)),",
        "None,",
        program="known_values",
    ),
    M("shared_whatever_the_value", "*_value(known.value)),", "),", program="known_values"),
]
ASKED = [
    M(
        "others_replaced",
        "level = np.where(slots, 0, NEVER)",
        "level = np.where(slots, NEVER, 0)",
        program="sum_of_the_pads-padding",
    ),
    M("rows_confused", "shape[0] != (shape[0] if rows is None else rows)", "False", program="rows_averaged-batch"),
    M(
        "replaced_asked",
        "slots[:, token.offset : token.offset + tokens] = asked",
        "slots[:, token.offset : token.offset + tokens] = ~asked",
        program="pads_read_at_real_tokens-padding",
    ),
    M(
        "row_in_part_asked",
        "whole: Slots = np.logical_and.reduce(asked, axis=1)",
        "whole: Slots = np.logical_not(np.logical_or.reduce(asked, axis=1))",
        program="rows_exchanged-batch",
    ),
    M(
        "middle_rows_forgotten",
        "for row in (*range(max(rows, 2) - 1), -1))",
        "for row in (0, -1))",
        program="middle_row_of_three-batch",
    ),
]
VISIBLE = [
    M(
        "masked_in_the_first_run_alone",
        "np.broadcast_arrays(fact.level, both_ends(gone, fact.moves, fact.shape))",
        "np.broadcast_arrays(fact.level, gone)",
        program="causal_maximum-order_blind",
        quick=True,
    ),
    M(
        "visible_in_another_line",
        "_ = lines_of(fact.known, dtype_of(a.args[0]), dims)",
        "_ = lines_of(fact.known, dtype_of(a.args[0]), None)",
        "amax",
        "max.dim",
    ),
    M("ordinary_beside_a_large_one", "alive & usual & ~large", "alive & usual", "amax", program="mask_by_amax-causal"),
    M(
        "ordinary_though_low",
        "alive & usual & ~large",
        "alive & ~large",
        program="mask_by_amax_of_low_entries-causal",
    ),
    M("ordinary_though_unsure", "alive & usual & ~large", "usual & ~large", "max.dim", "logsumexp"),
]
MUTANTS = [
    *LOW_LINES,
    *SHARING,
    *ASKED,
    *(
        POINTWISE
        + LABELLED
        + FACT
        + CONTRACTION
        + FIBRE
        + LOOKUP
        + MOVEMENT
        + REDUCTION
        + SCAN
        + DENSE
        + WINDOWS
        + EINSUM
        + SORTED
        + ATTENTION
        + WALK
        + VISIBLE
    ),
]
PROGRAMS = {  # name -> law, function
    "largest_too_few": ("causal", LARGEST_OPEN["fewer_than_are_visible"]),
    "smallest_places": ("causal", LARGEST_BROKEN["the_smallest"]),
    "low_less_low": (
        "causal",
        lambda x: unless_number(weights_beside((hidden_by_data(x) - hidden_by_data(x)).exp(), x), x),
    ),
    "low_and_unsure": (
        "causal",
        lambda x: unless_number(weights_beside((hidden_by_data(x) + x[..., :1] * 1e300 * 1e300).exp(), x), x),
    ),
    "mask_hidden_by_data": (
        "causal",
        lambda x: F.scaled_dot_product_attention(
            x, x, x, attn_mask=torch.where(FUTURE, torch.tensor(-1e9), hidden_by_data(x))
        ),
    ),
    "infinity_in_a_safe_line": (
        "causal",
        lambda x: unless_number(
            torch.ops.aten._safe_softmax(
                torch.cat([x[..., :1] * 1e300 * 1e300, x.new_full((2, TOKENS, TOKENS), -torch.inf)], -1), -1
            )[..., 1:],
            x,
        ),
    ),
    "mask_twice_over": (
        "causal",
        lambda x: unless_number(
            weights_beside(
                (scores(x) + torch.full((TOKENS, TOKENS), -3e38) + torch.full((TOKENS, TOKENS), -3e38)).softmax(-1), x
            ),
            x,
        ),
    ),
    "one_value_that_is_not_zero": (
        "causal",
        lambda x: F.scaled_dot_product_attention(
            torch.ones_like(x), x, x * (torch.arange(TOKENS) == 0).to(x.dtype)[:, None]
        ),
    ),
    "mask_of_data_on_known_scores": (  # the first token is seen or not as a later one decides
        "causal",
        lambda x: F.scaled_dot_product_attention(
            x * torch.zeros(TOKENS, WIDTH),
            x,
            x * (torch.arange(TOKENS) == 0).to(x.dtype)[:, None],
            attn_mask=(x[..., 0] > 0)[:, None, :].expand(-1, TOKENS, -1),
        ),
    ),
    "infinity_less_infinity": (
        "causal",
        lambda x: torch.isnan(torch.where(x.flip(1) > 0, torch.inf, 0.0) + torch.full_like(x, -torch.inf)).to(x.dtype),
    ),
    "zeros_times_memory_as_it_is": ("causal", lambda x: x + torch.empty_like(x) * torch.zeros_like(x)),
    "random": ("causal", lambda x: x + torch.rand(TOKENS, WIDTH)),
    "dropout": ("causal", lambda x: x + F.dropout(torch.ones(TOKENS, WIDTH), 0.5, training=True)),
    "mask_beside_entries_nearly_as_large": (
        "causal",
        attend(lambda s: (s + big(-1e8)).masked_fill(~FUTURE, -99999992.0).softmax(-1)),
    ),
}


@cache
def sources() -> dict[Path, str]:
    """The text of every file of the prover."""
    asking = [FOLDER.parent / "laws" / name for name in ("replacement.py", "batch.py")]
    return {path: path.read_text() for path in [*sorted(FOLDER.rglob("*.py")), *asking]}


def place_of(mutant: Mutant) -> Path:
    """The file that holds the line of a mutant, once."""
    found = [path for path, text in sources().items() for _ in range(text.count(mutant.before))]
    assert len(found) == 1, f"stale: the line is there {len(found)} times"
    return found[0]


def module_of(path: Path) -> ModuleType:
    """The module of a file of the prover."""
    return importlib.import_module(".".join(["orderproof", *path.relative_to(FOLDER.parent).with_suffix("").parts]))


def functions_of(code: CodeType) -> dict[str, CodeType]:
    """The functions and methods of a compiled module, by qualified name."""
    found: dict[str, CodeType] = {}
    for part in code.co_consts:
        if isinstance(part, CodeType) and "<" not in part.co_qualname:
            found |= functions_of(part)
            if part.co_flags & inspect.CO_OPTIMIZED:  # not the body of a class
                found[part.co_qualname] = part
    return found


def function_at(module: ModuleType, name: str) -> FunctionType:
    """A function or method of a module, by qualified name."""
    found: object = module
    for part in name.split("."):
        found = vars(found)[part]
    found = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
    assert isinstance(found, FunctionType)
    return found


def changes(mutant: Mutant) -> list[tuple[FunctionType, CodeType]]:
    """The functions that a mutant changes, and the code they then run."""
    path = place_of(mutant)
    text = sources()[path]
    own, new = (
        functions_of(compile(source, str(path), "exec", dont_inherit=True))
        for source in (text, text.replace(mutant.before, mutant.after))
    )
    found = [(function_at(module_of(path), name), code) for name, code in new.items() if code != own[name]]
    assert found, "the mutant changes no function"
    return found


@contextmanager
def mutated(changed: list[tuple[FunctionType, CodeType]]) -> Iterator[None]:
    """The prover as the mutant has it."""
    before = [function.__code__ for function, _ in changed]
    try:
        for function, code in changed:
            function.__code__ = code
        yield
    finally:
        for (function, _), code in zip(changed, before, strict=True):
            function.__code__ = code


def denied(sample: Sample, count: int) -> list[set[str]]:
    """For each trial what the prover says that runs deny; a rule that fails says nothing."""
    found: list[set[str]] = []
    for tried, rng in trials(sample, count, SAMPLES.index(sample)):
        with np.errstate(all="ignore"):
            found.append({x for x in contradictions(tried, runs_of(tried, rng)) if not x.startswith("internal")})
    return found


def caught_by_sample(sample: Sample, changed: list[tuple[FunctionType, CodeType]]) -> bool:
    """Whether runs deny what the mutant says of a sample, and not what the prover says of it."""
    for count in (TRIALS // 6, TRIALS):
        with mutated(changed):
            found = denied(sample, count)
        if any(found) and any(mutant - own for mutant, own in zip(found, denied(sample, count), strict=True)):
            return True
    return False


@cache
def examined(name: str) -> tuple[str, Examination]:
    """A program's law and examination, which no mutant changes."""
    for case in [*FALSE_PROOFS, *WRONG_FACTS]:
        if f"{case.name}-{case.law}" == name:
            return case.law, examine(build(case))
    if name in PASSED_FOR_ORDINARY:
        return PASSED_FOR_ORDINARY[name].law, examine(build(PASSED_FOR_ORDINARY[name]))
    law, function = PROGRAMS[name]
    return law, examine(Program(function))


def caught_by_program(name: str, changed: list[tuple[FunctionType, CodeType]]) -> bool:
    """Whether the mutant proves a program that breaks the law, or two runs contradict one of its facts."""
    if name in DIFFERENT:
        with mutated(changed):
            return shared(name) != set()
    if name in BROKEN:
        with mutated(changed):
            found = finding(BROKEN[name], BROKEN[name].broken)
        return found.verdict == "proved" or "error in the prover" in found.reason
    law, exam = examined(name)
    with mutated(changed):
        done = walk(exam, laws.get(law))
        return shortfall(exam, done) is None or any(True for _ in violations(exam, done))


def cases() -> list[object]:
    return [pytest.param(m, id=m.name, marks=() if m.quick else pytest.mark.slow) for m in MUTANTS]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("mutant", cases())
def test_mutant_is_caught(mutant: Mutant) -> None:
    list(rules())  # loaded before the first edit
    changed = changes(mutant)
    samples = [s for operator in mutant.operators for s in SAMPLES if s.operator == operator]
    assert any(caught_by_sample(s, changed) for s in samples) or (
        mutant.program != "" and caught_by_program(mutant.program, changed)
    )


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_program_that_sees_a_mutant_is_not_proved_without_it(name: str) -> None:
    law, exam = examined(name)
    assert shortfall(exam, walk(exam, laws.get(law))) is not None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_line_of_a_mutant_is_there_once(mutant: Mutant) -> None:
    assert place_of(mutant).suffix == ".py"
