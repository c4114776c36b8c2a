"""Mutants of the rule for convolutions."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "convolution",
    M(
        "wide_window",
        "self.$width == 1 and self.$stride == 1 and (self.$padding == 0) and (self.$further == 0)",
        "True",
        "conv1d",
        "conv2d",
    ),
    M(
        "lowest_level_of_a_channel",
        "$fact.$dependence.max(axis=1, keepdims=True)",
        "$fact.$dependence.min(axis=1, keepdims=True)",
        "conv1d",
        "conv2d",
    ),
    M(
        "padded_the_other_way",
        "np.arange($size) * self.$stride - self.$padding",
        "np.arange($size) * self.$stride + self.$padding",
        "conv1d",
        "convolution",
    ),
    M(
        "dilation_forgotten",
        "np.arange($size) * self.$stride - self.$padding + $tap * self.$dilation",
        "np.arange($size) * self.$stride - self.$padding + $tap",
        "conv1d",
    ),
    M(
        "turned_the_wrong_way",
        "np.arange($size) + self.$padding",
        "np.arange($size) - self.$padding",
        "convolution",
    ),
    M(
        "every_place_read",
        "($reach // self.$stride, $reach % self.$stride == 0)",
        "($reach, $reach % 1 == 0)",
        "convolution",
    ),
    M(
        "padded_behind",
        "($w - 1) * $d",
        "($w - 1) * $d + 1",
        "conv1d.padding",
    ),
    M(
        "weight_that_moves",
        """
            if not $own.$unmoved:
                raise $NothingFollows($_text)
        """,
        """
            if False:
                raise $NothingFollows($_text)
        """,
        "conv1d",
        "conv2d",
        "convolution",
    ),
    M(
        "channels_that_move",
        "$is_moved($fact.$moves[1])",
        "False",
        "conv1d",
        "conv2d",
    ),
    M(
        "weight_that_depends",
        "$dependence = np.maximum($dependence, $channels.reshape(1, -1, *[1] * len($windows)))",
        "pass",
        "conv1d",
    ),
)
