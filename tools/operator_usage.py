"""Write the operator counts of an atlas, which `orderproof list rules` shows.

python tools/operator_usage.py docs/evidence/atlas/atlas.json.gz
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from orderproof.atlas.document import read_document

TARGET = Path(__file__).parents[1] / "src/orderproof/atlas/operator_usage.json"


def main(arguments: list[str]) -> int:
    """Copy the counts from the atlas document."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    document = read_document(arguments[0])
    exported = [row for row in document.rows if row.laws and row.failure is None]
    counts = {
        "date": document.date,
        "transformers": exported[0].transformers,
        "architectures": len(exported),
        "operators": document.operators,
        "pointwise": [name for name in document.operators if is_pointwise(name)],
    }
    TARGET.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    return 0


def is_pointwise(operator: str) -> bool:
    """True if torch tags an operator, such as aten.add.Tensor, as pointwise."""
    space, _, name = operator.partition(".")
    packet, _, overload = name.partition(".")
    target = getattr(getattr(getattr(torch.ops, space), packet, None), overload, None)
    return torch.Tag.pointwise in getattr(target, "tags", ())


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
