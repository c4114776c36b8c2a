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
    "PositionsInLowPrecision": {"position_precision": "the error of rounded positions grows with the position"},
    "PositionsFromOne": {
        "position_shift": ABSOLUTE,
        "cached_decoding": FROM_ONE,
        "chunked_prefill": "the first call counts from one, the calls on its cache from its length",
        "cache_editing": "the first call counts from one, the calls on its cache from its length",
        "left_padded_decoding": FROM_ONE,
        "batch_composition": FROM_ONE,
        "sequence_parallel": FROM_ONE,
    },
    "PositionsRestartEachCall": {"chunked_prefill": CHUNKS},
    "CausalOnlyWithCache": {
        "attention_pattern": "the forward without a cache attends to later tokens",
        "cached_decoding": WHOLE,
        "chunked_prefill": WHOLE,
        "cache_editing": WHOLE,
        "left_padded_decoding": WHOLE,
    },
    "PositionsDependOnLongestCall": {
        "default_position_ids": "default positions are scaled, and explicit ones are not",
        "cached_decoding": WHOLE,
        "chunked_prefill": WHOLE,
        "cache_editing": WHOLE,
        "use_cache": "calls with a cache count correctly, those without scale their positions",
        "left_padded_decoding": WHOLE,
        "batch_composition": OTHERS,
        "sequence_parallel": WHOLE,
    },
    "QueriesFromZero": {
        "position_shift": "with all positions shifted, keys move and queries do not",
        "chunked_prefill": CHUNKS,
        "cache_editing": DECODED,
        "left_padded_decoding": PADDED,
        "sequence_parallel": RANKS,
    },
    "RestartingTable": {"position_shift": ABSOLUTE, "chunked_prefill": CHUNKS, "cache_editing": DECODED},
    "TopLeft": {"chunked_prefill": CHUNKS, "cache_editing": DECODED, "left_padded_decoding": PADDED},
    "BiasFromZero": {
        "chunked_prefill": CHUNKS,
        "cache_editing": DECODED,
        "left_padded_decoding": PADDED,
        "sequence_parallel": RANKS,
    },
    "BiasOfQueries": {"cache_editing": DECODED, "left_padded_decoding": PADDED},
    "StaleBias": {
        "ignored_arguments": KEPT,
        "cached_decoding": "a call on a cache gets the bias of another call",
        "chunked_prefill": "a call on a cache gets the bias of another call",
        "cache_editing": "a call on a cache gets the bias of another call",
        "batch_composition": OTHERS,
        "sequence_parallel": RANKS,
    },
    "RollingEarly": {"chunked_prefill": CHUNKS, "cache_editing": DECODED, "left_padded_decoding": PADDED},
    "LongAndShort": {
        "chunked_prefill": CHUNKS,
        "sequence_parallel": "only the rank with the end of the row uses long frequencies",
    },
    "SharedByCache": {
        "cached_decoding": WHOLE,
        "chunked_prefill": WHOLE,
        "cache_editing": WHOLE,
        "left_padded_decoding": WHOLE,
    },
    "KeyedByLength": {
        "ignored_arguments": KEPT,
        "chunked_prefill": CHUNKS,
        "cache_editing": DECODED,
        "left_padded_decoding": PADDED,
        "batch_composition": OTHERS,
        "sequence_parallel": RANKS,
    },
    "CountedFromEnd": {
        "position_shift": ABSOLUTE,
        "cached_decoding": WHOLE,
        "chunked_prefill": WHOLE,
        "cache_editing": WHOLE,
        "left_padded_decoding": WHOLE,
        "batch_composition": "the first position depends on the number of tokens, including pads",
        "sequence_parallel": WHOLE,
    },
    "PadsCounted": {"position_shift": ABSOLUTE},
    "PositionsOfLastRow": {"position_shift": ABSOLUTE},
    "PadsRead": {"ignored_arguments": "the mask has no effect"},
    "WideConvolution": {"ignored_arguments": "the mask has no effect at the tokens that it does not mask"},
    "AllZero": {"position_shift": ABSOLUTE, "batch_composition": FROM_ONE, "sequence_parallel": FROM_ONE},
    "TableOfBfloat16": {"position_shift": ABSOLUTE},
    "AnglesByMatmul": {"position_precision": "the error of rounded angles grows with the position"},
    "AnglesInDtype": {"distinct_positions": "positions that are rounded to one number are equal"},
    "OffsetKept": {
        "position_shift": ABSOLUTE,
        "cache_editing": "calls after the first decoding add its offset, and edits are compared with them",
    },
    "Inverted": {
        "batch_composition": "the last query of a row attends to its first token, and pads make another query the last"
    },
}

BY_DESIGN: Mapping[tuple[str, str], str] = {("default_position_ids", "position_shift"): ABSOLUTE}
