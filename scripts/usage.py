"""Write how often the architectures of the atlas use each operator: `python scripts/usage.py docs/atlas.json`.

`orderproof list rules` shows the counts.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

TARGET = Path(__file__).parent.parent / "src" / "orderproof" / "prover" / "usage.json"


def main(arguments: list[str]) -> int:
    """Copy the counts out of an atlas."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    atlas = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    recorded = [row for row in atlas["rows"] if row.get("laws") and not row.get("failed")]
    made = {
        "date": atlas["date"],
        "transformers": recorded[0]["transformers"],
        "architectures": len(recorded),
        "operators": atlas["operators"],
    }
    TARGET.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
