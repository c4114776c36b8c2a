"""Compare releases of engines before and after a fix that their history names, and count what is found and named.

    python tools/release_pairs.py RESULTS.json docs/evidence/ports/releases.md

The environments of both releases are made by `orderproof engines install ENGINE@VERSION`. A pair that is in
RESULTS.json is not run again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from orderproof import audit
from orderproof._version import __version__

LAWS = ("loads_checkpoint", "same_prefill", "same_cached_decoding", "same_chunked_prefill")
PAIRS = Path(__file__).with_name("release_pairs.json")
HEAD = """# Releases before and after a fix

Written by `python tools/release_pairs.py`; not edited by hand. [How to compare two
versions](../../how_to/audit_a_serving_engine.md#two-versions-or-two-engines).

Each row is a fix of a numerical bug that the history of an engine names, a release before the fix and one after it.
Both read one tiny checkpoint with random weights. *Found*: a law says that the releases differ. *Named*: the settings
of the release that changed explain its difference from transformers, up to rounding. The fix itself is not looked at.
*No difference*: both compute the same on this checkpoint, which may not reach the code of the fix, or the release
before it did not have the bug. *Nothing compared*: a release does not load the checkpoint.

In copies of one environment only mlx-lm was exchanged, so that MLX 0.32.4 and transformers are the same in both. The
fixes were chosen by reading the log of mlx-lm for changes of a model that a checkpoint of two layers can reach.
"""


def compare(pair: dict[str, Any]) -> dict[str, Any]:
    """The findings of one pair, as rows of plain data."""
    rows = []
    for finding in audit(pair["subject"], against=pair["pair"], laws=list(LAWS)).findings:
        port = finding.port
        causes = [
            {"setting": c.setting, "reference": c.stated, "engine": c.engine, "value": c.assumed, "left": c.remaining}
            for c in (port.causes if port is not None else ())
        ]
        rows.append(
            {
                "law": finding.law, "verdict": finding.verdict, "reason": finding.reason, "causes": causes,
                "explained": port is not None and port.explained, "largest": finding.deviation.float32,
            }
        )  # fmt: skip
    return {**pair, "orderproof": __version__, "findings": rows}


def table_row(result: dict[str, Any]) -> tuple[str, bool, bool]:
    """The line of the table, and whether the difference was found and named."""
    refuted = [each for each in result["findings"] if each["verdict"] == "refuted"]
    named = next((each for each in refuted if each["explained"]), None)
    shown = named or next((each for each in refuted if each["causes"]), None) or next(iter(refuted), None)
    if shown is None:
        open_ = next((each["reason"] for each in result["findings"] if each["verdict"] != "held"), "")
        verdict, said = "nothing compared" if open_ else "no difference", open_[:160]
    else:
        verdict = "found and named" if named else "found"
        settings = [
            f"`{c['setting']}`: {c['reference']} in transformers, {c['value']} in {c['engine']}"
            for c in shown["causes"]
        ]
        said = "; ".join(settings) or shown["reason"][:200]
    laws = ", ".join(each["law"] for each in refuted) or "-"
    fix = f"[{result['title']}]({result['fix']})"
    architecture = result["subject"].partition("?")[0].removeprefix("arch:")
    releases = result["pair"].replace(",", " and ")
    said = said.replace("|", "\\|").replace("\n", " ")
    return f"| {fix} | {releases} | {architecture} | {laws} | {verdict} | {said} |", bool(refuted), named is not None


def page(results: list[dict[str, Any]]) -> str:
    """The page."""
    rows = [table_row(result) for result in results]
    fixes, found, named = (
        len({result["fix"] for result, row in zip(results, rows, strict=True) if row[index]}) for index in (0, 1, 2)
    )
    lines = [
        HEAD,
        f"Of {fixes} fixes ({len(rows)} pairs) the difference is found for {found}, and named for {named}.\n",
        "| fix | releases | architecture | laws that differ | result | what is said |",
        "| --- | --- | --- | --- | --- | --- |",
        *(row[0] for row in rows),
    ]
    return "\n".join(lines) + "\n"


def main(store: Path, target: Path) -> None:
    """Run the pairs that are not in the store, and write the page."""
    pairs = json.loads(PAIRS.read_text(encoding="utf-8"))
    kept = json.loads(store.read_text(encoding="utf-8")) if store.exists() else []
    results = []
    for pair in pairs:
        done = next((each for each in kept if all(each.get(key) == value for key, value in pair.items())), None)
        results.append(done or compare(pair))
        store.write_text(json.dumps([*results, *(each for each in kept if each not in results)]), encoding="utf-8")
    target.write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
