"""Mutants of the rules for convolutions, pooling and other resolutions."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = [
    *mutants_of(
        "theorems.operators.convolution.windows",
        M(
            "dilation_forgotten",
            "own * self.stride - self.padding + tap * self.dilation",
            "own * self.stride - self.padding + tap",
            program="dilated convolution",
            quick=True,
        ),
        M(
            "zero_weights_of_large_numbers",
            "weight is not None and loose is FALSE",
            "weight is not None",
            program="taps of large numbers",
            quick=True,
        ),
        M(
            "padding_forgotten",
            "own * self.stride - self.padding + tap * self.dilation",
            "own * self.stride + tap * self.dilation",
            program="cut convolution",
            quick=True,
        ),
        M(
            "own_channel_only",
            "count if channels and d == first - 1 else place",
            "place",
            program="rows as channels in one group",
            quick=True,
        ),
        M(
            "transposed_reads_its_place",
            "equal(window.place(at, tap), own)",
            "equal(at, own)",
            program="transposed convolution with a cut start",
            quick=True,
        ),
        M(
            "transposed_place_not_proved",
            "same | found if call.context.proves(body, sizes, found) else same",
            "same | found",
            program="transposed convolution from the end",
            quick=True,
        ),
        M("window_around_moves", "still(dim, $_what)", "pass", program="moved: pooled tokens", quick=True),
    ),
    *mutants_of(
        "theorems.operators.convolution.convolution",
        M(
            "groups_of_several_channels",
            "groups is not None and all(call.context.equal_sizes(groups, size) for size in channels)",
            "groups is not None",
            program="rows as channels in one group",
            quick=True,
        ),
        M(
            "weights_that_differ",
            "any(other.same is not TRUE for other in others)",
            "False",
            program="kernel of the mean",
            quick=True,
        ),
        M(
            "large_weights",
            "any(r.hidden is not FALSE or r.unbounded is not FALSE for r in ranges)",
            "False",
            program="convolution with a large weight",
            quick=True,
        ),
    ),
    *mutants_of(
        "theorems.operators.convolution.pooling",
        M(
            "windows_of_padding",
            "any(window.padding > 0 and window.dilation > 1 for window in taken)",
            "False",
            program="windows of padding",
            quick=True,
        ),
    ),
    *mutants_of(
        "theorems.operators.convolution.resolution",
        M(
            "place_of_the_largest_token",
            "replace(found, written=NOTHING)",
            "found",
            program="moved: place of the largest token by pooling",
            quick=True,
        ),
        M(
            "few_numbers_as_one",
            "not all(size.is_constant and size.constant == 1 for size in sizes)",
            "False",
            program="moved: pooled features",
            quick=True,
        ),
    ),
]
