"""Why a law refutes a fault that was not planted for it."""

from __future__ import annotations

from collections.abc import Mapping

ABSOLUTE = (
    "positions are absolute here (sinusoids added to the tokens): shifting all of them changes the output by design"
)
CHUNKS = "a chunk on a cache is wrong for the same reason as a single token"
DECODED = "tokens decoded after the edit are wrong, as all decoded tokens are"
PADDED = "tokens decoded after the pads are wrong, as all decoded tokens are"
WHOLE = "one forward, with which decoding is compared, is wrong itself"
OTHERS = "calls with other rows and lengths use the state of the first call"
RANKS = "a rank has a part of the row, and values computed from the tokens of a call are wrong for a part"
FROM_ONE = "explicit positions give another output than default positions, and the two are compared"
KEPT = "explicit positions after the first call of a length have no effect"

EXPLAINED: Mapping[str, Mapping[str, str]] = {
    "ContextLeftOut": {"left_padded_decoding": PADDED},
    "StateLeftOut": {"left_padded_decoding": PADDED},
    "ChunkStartsFromEmptyCache": {"left_padded_decoding": PADDED},
    "Wrapped": {"right_padded_decoding": PADDED},
    "SlicedBeforeCounting": {"right_padded_decoding": PADDED},
    "ForgetsPaddingMask": {"right_padded_decoding": PADDED},
    "ClampsPositions": {"right_padded_decoding": PADDED},
    "PositionsInLowPrecision": {"position_precision": "the error of rounded positions grows with the position"},
    "PositionsFromOne": {
        "right_padded_decoding": PADDED,
        "position_shift": ABSOLUTE,
        "cached_decoding": FROM_ONE,
        "chunked_prefill": "the first call counts from one, the calls on its cache from its length",
        "left_padded_decoding": FROM_ONE,
        "batch_composition": FROM_ONE,
        "sequence_parallel": FROM_ONE,
    },
    "PositionsRestartEachCall": {"chunked_prefill": CHUNKS},
    "CausalOnlyWithCache": {
        "right_padded_decoding": PADDED,
        "attention_pattern": "the forward without a cache attends to later tokens",
        "cached_decoding": WHOLE,
        "chunked_prefill": WHOLE,
        "left_padded_decoding": WHOLE,
    },
    "PositionsDependOnLongestCall": {
        "right_padded_decoding": PADDED,
        "default_position_ids": "default positions are scaled, and explicit ones are not",
        "cached_decoding": WHOLE,
        "chunked_prefill": WHOLE,
        "use_cache": "calls with a cache count correctly, those without scale their positions",
        "left_padded_decoding": WHOLE,
        "batch_composition": OTHERS,
        "sequence_parallel": WHOLE,
    },
    "QueriesFromZero": {
        "right_padded_decoding": PADDED,
        "position_shift": "with all positions shifted, keys move and queries do not",
        "chunked_prefill": CHUNKS,
        "left_padded_decoding": PADDED,
        "sequence_parallel": RANKS,
    },
    "RestartingTable": {
        "left_padded_decoding": PADDED,
        "right_padded_decoding": PADDED,
        "position_shift": ABSOLUTE,
        "chunked_prefill": CHUNKS,
    },
    "TopLeft": {
        "right_padded_decoding": PADDED,
        "chunked_prefill": CHUNKS,
        "left_padded_decoding": PADDED,
    },
    "BiasFromZero": {
        "right_padded_decoding": PADDED,
        "chunked_prefill": CHUNKS,
        "left_padded_decoding": PADDED,
        "sequence_parallel": RANKS,
    },
    "BiasOfQueries": {"right_padded_decoding": PADDED, "left_padded_decoding": PADDED},
    "StaleBias": {
        "left_padded_decoding": PADDED,
        "right_padded_decoding": PADDED,
        "ignored_arguments": KEPT,
        "cached_decoding": "a call on a cache gets the bias of another call",
        "chunked_prefill": "a call on a cache gets the bias of another call",
        "cache_editing": "a call on a cache gets the bias of another call",
        "batch_composition": OTHERS,
        "sequence_parallel": RANKS,
    },
    "RollingEarly": {
        "right_padded_decoding": PADDED,
        "chunked_prefill": CHUNKS,
        "left_padded_decoding": PADDED,
    },
    "LongAndShort": {
        "left_padded_decoding": PADDED,
        "right_padded_decoding": PADDED,
        "chunked_prefill": CHUNKS,
        "sequence_parallel": "only the rank with the end of the row uses long frequencies",
    },
    "SharedByCache": {
        "right_padded_decoding": PADDED,
        "cached_decoding": WHOLE,
        "chunked_prefill": WHOLE,
        "left_padded_decoding": WHOLE,
    },
    "KeyedByLength": {
        "right_padded_decoding": PADDED,
        "ignored_arguments": KEPT,
        "chunked_prefill": CHUNKS,
        "left_padded_decoding": PADDED,
        "batch_composition": OTHERS,
        "sequence_parallel": RANKS,
    },
    "CountedFromEnd": {
        "right_padded_decoding": PADDED,
        "position_shift": ABSOLUTE,
        "cached_decoding": WHOLE,
        "chunked_prefill": WHOLE,
        "left_padded_decoding": WHOLE,
        "batch_composition": "the first position depends on the number of tokens, including pads",
        "sequence_parallel": WHOLE,
    },
    "PadsCounted": {"position_shift": ABSOLUTE},
    "PositionsOfLastRow": {"position_shift": ABSOLUTE},
    "PadsRead": {
        "right_padded_decoding": "a pad in a call of several tokens on a cache is read",
        "ignored_arguments": "the mask has no effect",
    },
    "WideConvolution": {"ignored_arguments": "the mask has no effect at the tokens that it does not mask"},
    "AllZero": {"position_shift": ABSOLUTE, "batch_composition": FROM_ONE, "sequence_parallel": FROM_ONE},
    "TableOfBfloat16": {"position_shift": ABSOLUTE},
    "AnglesByMatmul": {"position_precision": "the error of rounded angles grows with the position"},
    "AnglesInDtype": {"distinct_positions": "positions that are rounded to one number are equal"},
    "OffsetKept": {
        "right_padded_decoding": PADDED,
        "position_shift": ABSOLUTE,
    },
    "Inverted": {
        "batch_composition": "the last query of a row attends to its first token, and pads make another query the last"
    },
}

BY_DESIGN: Mapping[tuple[str, str], str] = {("default_position_ids", "position_shift"): ABSOLUTE}
