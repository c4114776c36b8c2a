"""Why a law that a fault was not planted for rightly sees it too."""

from __future__ import annotations

from collections.abc import Mapping

ABSOLUTE = "positions are absolute here, by waves added to the tokens: moving all of them shows, by design"
CHUNKS = "a chunk on a cache is wrong in the way that a single token is"
DECODED = "what is decoded after the edit is wrong, as all that is decoded is"
PADDED = "what is decoded after the pads is wrong, as all that is decoded is"
WHOLE = "one forward, which decoding is held against, is wrong itself"
OTHERS = "other rows and lengths are called after the first, and what was kept of it is used for them"
RANKS = "a rank holds a part of the row, and what goes by the tokens of a call is wrong for a part"
FROM_ONE = "with stated positions it answers otherwise than without, and the two are compared"
KEPT = "positions stated after the first call of a length change nothing"

EXPLAINED: Mapping[str, Mapping[str, str]] = {
    "Coarse": {"precision": "positions that are rounded are wrong the more, the farther out they are"},
    "FromOne": {
        "shift": ABSOLUTE,
        "cache": FROM_ONE,
        "cache_chunks": "the first call counts from one, the calls on its cache from its length",
        "cache_edits": "the first call counts from one, the calls on its cache from its length",
        "cache_padded": FROM_ONE,
        "batch_mates": FROM_ONE,
        "sharded": FROM_ONE,
    },
    "Restarting": {"cache_chunks": CHUNKS},
    "Unmasked": {
        "influence": "the forward without a cache shows the future",
        "cache": WHOLE,
        "cache_chunks": WHOLE,
        "cache_edits": WHOLE,
        "cache_padded": WHOLE,
    },
    "Remembering": {
        "default_positions": "the default spreads positions, and stated ones are as they are",
        "cache": WHOLE,
        "cache_chunks": WHOLE,
        "cache_edits": WHOLE,
        "cache_switch": "calls with a cache count rightly, those without spread their positions",
        "cache_padded": WHOLE,
        "batch_mates": OTHERS,
        "sharded": WHOLE,
    },
    "QueriesFromZero": {
        "shift": "with all positions moved on, queries stay where they were and keys do not",
        "cache_chunks": CHUNKS,
        "cache_edits": DECODED,
        "cache_padded": PADDED,
        "sharded": RANKS,
    },
    "RestartingTable": {"shift": ABSOLUTE, "cache_chunks": CHUNKS, "cache_edits": DECODED},
    "TopLeft": {"cache_chunks": CHUNKS, "cache_edits": DECODED, "cache_padded": PADDED},
    "BiasFromZero": {"cache_chunks": CHUNKS, "cache_edits": DECODED, "cache_padded": PADDED, "sharded": RANKS},
    "BiasOfQueries": {"cache_edits": DECODED, "cache_padded": PADDED},
    "StaleBias": {
        "live": KEPT,
        "cache": "a call on a cache gets the bias of another",
        "cache_chunks": "a call on a cache gets the bias of another",
        "cache_edits": "a call on a cache gets the bias of another",
        "batch_mates": OTHERS,
        "sharded": RANKS,
    },
    "RollingEarly": {"cache_chunks": CHUNKS, "cache_edits": DECODED, "cache_padded": PADDED},
    "LongAndShort": {
        "cache_chunks": CHUNKS,
        "sharded": "the rank that has the end of the row chooses long frequencies, and the other does not",
    },
    "SharedByCache": {
        "cache": WHOLE,
        "cache_chunks": WHOLE,
        "cache_edits": WHOLE,
        "cache_padded": WHOLE,
    },
    "KeyedByLength": {
        "live": KEPT,
        "cache_chunks": CHUNKS,
        "cache_edits": DECODED,
        "cache_padded": PADDED,
        "batch_mates": OTHERS,
        "sharded": RANKS,
    },
    "CountedFromEnd": {
        "shift": ABSOLUTE,
        "cache": WHOLE,
        "cache_chunks": WHOLE,
        "cache_edits": WHOLE,
        "cache_padded": WHOLE,
        "batch_mates": "where positions are counted from depends on the number of tokens, pads among them",
        "sharded": WHOLE,
    },
    "PadsCounted": {"shift": ABSOLUTE},
    "PositionsOfLastRow": {"shift": ABSOLUTE},
    "PadsRead": {"live": "the mask changes nothing"},
    "WideConvolution": {"live": "the mask changes nothing at the tokens that it does not hide"},
    "AllZero": {"shift": ABSOLUTE, "batch_mates": FROM_ONE, "sharded": FROM_ONE},
    "TableOfBfloat16": {"shift": ABSOLUTE},
    "AnglesByMatmul": {"precision": "angles that are rounded are wrong the more, the farther out they are"},
    "AnglesInDtype": {"distinct": "positions that are rounded to one number are one position"},
    "OffsetKept": {
        "shift": ABSOLUTE,
        "cache_edits": "calls after the first decoding count on from it, and are what edits are held against",
    },
    "Inverted": {
        "batch_mates": "the last query of a row sees its first token, and pads after it make another the last"
    },
}

BY_DESIGN: Mapping[tuple[str, str], str] = {("default_positions", "shift"): ABSOLUTE}
