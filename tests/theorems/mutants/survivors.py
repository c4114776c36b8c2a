"""Mutants that no program and no test notices, each with the reason: a side condition that is tested by nothing.

A program that notices one moves it to the file of its family.
"""

from __future__ import annotations

from tests.diagnosis.mutants.engine import Mutant


def mutant(module: str, name: str, before: str, after: str) -> Mutant:
    """A mutant without a program."""
    return Mutant(name, before, after, module=module)


SURVIVORS: list[tuple[Mutant, str]] = [
    (
        mutant(
            "theorems.operators.softmax.masked_rows",
            "hidden_entries_next_to_an_unbounded_one",
            "conjunction(ranges.hidden, bounded, visible)",
            "conjunction(ranges.hidden, visible)",
        ),
        "an unbounded entry is not visible, so that another one must be; no program has a row with NaN next to a mask",
    ),
    (
        mutant(
            "theorems.operators.softmax.masked_rows",
            "hidden_entries_need_not_agree_in_rows_without_a_visible_one",
            "placed.same | vanishing",
            "placed.same | ranges.hidden",
        ),
        "weights that are not zero need agreement when they are summed; no program uses one weight of such a row alone",
    ),
    (
        mutant(
            "theorems.operators.softmax.masked_rows",
            "witness_outside_of_the_row",
            "all(context.proves(f, sizes) for f in inside)",
            "any(context.proves(f, sizes) for f in inside)",
        ),
        "no program has fewer keys than queries and a row whose only visible key is missing",
    ),
    (
        mutant(
            "theorems.operators.softmax.masked_rows",
            "no_entry_is_unbounded",
            "TRUE if ranges.unbounded is FALSE else context.for_all(~ranges.unbounded, sizes, first_bound)",
            "TRUE",
        ),
        "an unbounded entry is not visible; no program has a row with NaN next to a visible one",
    ),
    (
        mutant(
            "theorems.operators.attention.fused_attention",
            "zero_weights_next_to_unbounded_scores",
            "zero = b.zero & bounded",
            "zero = b.zero",
        ),
        "no program has unbounded scores under a mask of which only some booleans are known",
    ),
    (
        mutant(
            "theorems.operators.attention.fused_attention",
            "shared_heads_in_turn",
            "floor_division(index_along(fact, dim, heads), shared)",
            "floor_division(index_along(fact, dim, heads), shared + 1)",
        ),
        "the programs with shared heads have masks and values that agree in all heads",
    ),
    (
        mutant(
            "theorems.operators.contraction.products",
            "zero_times_anything",
            "conjunction(one.zero, *(other.finite for other in ranges if other is not one))",
            "conjunction(one.zero)",
        ),
        "no program multiplies zeros of a mask by infinity or NaN in one product",
    ),
    (
        mutant(
            "theorems.operators.contraction.products",
            "bias_that_is_hidden",
            "(r.hidden | s.hidden) & ~unbounded",
            "r.hidden & ~unbounded",
        ),
        "no program adds a mask as the bias of a linear map",
    ),
    (
        mutant(
            "theorems.operators.convolution.resolution",
            "one_place_fewer",
            "range(first, call.rank)",
            "range(first + 1, call.rank)",
        ),
        "an element that reads places by their own index only is a resolution that keeps them, where the claim is true",
    ),
    (
        mutant(
            "theorems.operators.creation.filled",
            "memory_as_it_is",
            "OpenFact(dims_of(call.shape), call.dtype, same=FALSE, unbounded=TRUE)",
            "OpenFact(dims_of(call.shape), call.dtype, same=TRUE, unbounded=TRUE)",
        ),
        "what a run reads of unwritten memory is often zero, so that runs cannot show the difference",
    ),
    (
        mutant(
            "theorems.operators.creation.filled",
            "memory_counts_as_written",
            "replace(uniform(call.shape, Motion.FREE), written=NOTHING)",
            "uniform(call.shape, Motion.FREE)",
        ),
        "as above, for tensors that move",
    ),
    (
        mutant(
            "theorems.operators.lookup.indexing",
            "only_some_dimensions_unknown",
            "unknown or not substitution",
            "not substitution",
        ),
        "the index of an unknown element stays a variable without a range, of which nothing is proved",
    ),
    (
        mutant(
            "theorems.operators.lookup.gathering",
            "part_of_a_dimension",
            "d != dim and axes != other and fact.uses(d)",
            "False",
        ),
        "no program gathers from rows that are longer than those of the indices",
    ),
    (
        mutant(
            "theorems.operators.lookup.gathering",
            "slices_of_a_part",
            "d != along and not call.context.equal_sizes(size(one), size(other))",
            "False",
        ),
        "sizes that differ are also refused where axes are brought together",
    ),
    (
        mutant(
            "theorems.operators.movement.parts",
            "index_that_leaves_its_tensor",
            "conjunction(at_most(0, place), less(place, size))",
            "conjunction()",
        ),
        "a call with such an index raises; the recording states its condition",
    ),
    (
        mutant(
            "theorems.operators.movement.shifts",
            "diagonal_of_the_other_side",
            "max(0, -offset if d == first else offset)",
            "max(0, offset if d == first else -offset)",
        ),
        "no program reads a diagonal with an offset of products of tokens",
    ),
    (
        mutant(
            "theorems.operators.movement.shifts",
            "windows_without_steps",
            "(index(place) if own else as_term(0)) * step + last",
            "(index(place) if own else as_term(0)) + last",
        ),
        "no program takes windows of tokens in steps",
    ),
    (
        mutant(
            "theorems.operators.movement.shape",
            "bits_of_another_dtype",
            'isinstance(call.argument(1, "size"), torch.dtype)',
            "False",
        ),
        "the shape differs, or a recording has no such view",
    ),
    (
        mutant(
            "theorems.operators.normalization.normalization",
            "channels_that_move",
            "still(other.dims[0], $_what)",
            "pass",
        ),
        "weights that move with the tokens: no program computes them from tokens",
    ),
    (
        mutant(
            "theorems.operators.pointwise.value_ranges",
            "zero_where_one_is",
            "Ranges(hidden, a.zero & b.zero, unbounded, low)",
            "Ranges(hidden, a.zero | b.zero, unbounded, low)",
        ),
        "no program chooses between zero and another number by tokens in front of a sum",
    ),
    (
        mutant(
            "theorems.operators.pointwise.value_ranges",
            "zero_times_infinity",
            "(a.zero & b.finite) | (b.zero & a.finite)",
            "a.zero | b.zero",
        ),
        "no program multiplies zeros of a mask by infinity or NaN",
    ),
    (
        mutant(
            "theorems.operators.pointwise.value_ranges",
            "divided_by_zero",
            "disjunction(_anything([a, b]), b.zero, b.tiny)",
            "disjunction(_anything([a, b]), b.tiny)",
        ),
        "no program divides scores by zeros of a mask",
    ),
    (
        mutant(
            "theorems.operators.pointwise.value_ranges",
            "weak_scale",
            "1 / greatest_scale() <= factor <= greatest_scale()",
            "0 <= factor <= greatest_scale()",
        ),
        "scalings below 1/64 are refused as a product of all scalings too",
    ),
    (
        mutant(
            "theorems.operators.pointwise.value_ranges",
            "less_a_hidden_number",
            "disjunction(a.unbounded, b.unbounded, b.hidden)",
            "disjunction(a.unbounded, b.unbounded)",
        ),
        "no program subtracts masked scores from others in front of a softmax",
    ),
    (
        mutant(
            "theorems.operators.reduction.reduction",
            "largest_without_a_visible_entry",
            "~(rows.bounded & rows.visible)",
            "~rows.bounded",
        ),
        "no program uses the largest entry of a row without a visible one",
    ),
    (
        mutant(
            "theorems.operators.reduction.scan",
            "zeros_in_a_product",
            'fact.ranges().zero if call.name in ("cumsum", "sub") else FALSE',
            "fact.ranges().zero",
        ),
        "no program multiplies from the start numbers that are zero where they differ",
    ),
    (
        mutant(
            "theorems.operators.reduction.reduction",
            "count_of_what_differs",
            "not isinstance(fact.value, Formula | Term) or result.same is not TRUE or call.context.loops",
            "not isinstance(fact.value, Formula | Term)",
        ),
        "a value that is known is the same in both runs",
    ),
    (
        mutant(
            "theorems.operators.scatter.scatter",
            "written_to_a_part",
            "isinstance(label, int) and f.uses(d) and size_of(f.dims[d]) is not size_of(fact.dims[label])",
            "False",
        ),
        "sizes that differ are also refused where axes are brought together",
    ),
    (
        mutant(
            "theorems.operators.composition.replaced_parts",
            "one_element_more",
            "less(at, start + extent * step)",
            "less(at, start + extent * step + 1)",
        ),
        "the element after the part is written later in every program",
    ),
    (
        mutant(
            "theorems.operators.composition.replaced_parts",
            "gap_in_memory",
            "max(covered, end) if begin <= covered else covered",
            "max(covered, end)",
        ),
        "what a run reads of unwritten memory is often zero, so that runs cannot show the difference",
    ),
    (
        mutant(
            "logic.ordering",
            "parts_without_their_number",
            'b"(%d:" % len(part) + b"".join(map(_encoded, part))',
            'b"".join(map(_encoded, part))',
        ),
        "no two expressions of one kind have parts that only their nesting tells apart",
    ),
]
