"""Audit the tiny models of `jax_zoo_models.py` and write `docs/evidence/jax/models.md`.

    ORDERPROOF_JAX_PYTHON=... python tools/jax_zoo.py [NAME ...]

The interpreter needs jax, flax, equinox, dm-haiku and keras-hub. With names only these are audited, and no page is
written. `--page` writes the page from the results of earlier calls, which are in `build/jax_zoo/`.
"""

from __future__ import annotations

import ast
import json
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
MODELS = Path(__file__).with_name("jax_zoo_models.py")
RESULTS, PAGE = ROOT / "build" / "jax_zoo", ROOT / "docs" / "evidence" / "jax" / "models.md"
LAWS = ("causal", "batch", "permutation")
SECONDS = 60.0  # for each law


def names() -> list[str]:
    """The models, in their order: this Python need not have jax."""
    tree = ast.parse(MODELS.read_text(encoding="utf-8"))
    functions = [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.decorator_list]
    (table,) = (n.value for n in tree.body if isinstance(n, ast.AnnAssign) and ast.unparse(n.target) == "KERAS_HUB")
    assert isinstance(table, ast.Dict)
    return functions + [f"keras_hub_{ast.literal_eval(key)}" for key in table.keys if key is not None]


def audited(process: Any, name: str) -> dict[str, Any]:
    """The verdicts of a model, or the reason that it has none."""
    import orderproof
    from orderproof.errors import OrderproofError
    from orderproof.models.jax_function.load_function import subject_of

    began = time.process_time()
    try:
        process.load(f"{MODELS}:{name}")
        subject = subject_of(process)
        loaded = time.process_time()
        report = orderproof.audit(subject, laws=LAWS, expect=dict.fromkeys(LAWS, "any"), timeout=SECONDS)
    except OrderproofError as error:
        return {"name": name, "error": str(error).replace(f"{MODELS}:{name}: ", "")}
    verdicts: dict[str, Any] = {}
    for finding in report.findings:
        if finding.output == report.findings[0].output:
            verdicts.setdefault(finding.law, _in_words(finding))
    proving = time.process_time() - loaded
    return {"name": name, "verdicts": verdicts, "loading": loaded - began, "proving": proving, "notes": subject.notes}


def _in_words(finding: Any) -> str:
    place = f", {Path(finding.fix_source).name}" if finding.fix_source else ""
    if finding.verdict == "proved":
        theorem = finding.theorem
        if theorem is not None and theorem.proved and theorem.open_length:
            return "proved, every length"
        return f"proved, one length: {'' if theorem is None else theorem.reason}"
    if finding.verdict == "refuted":
        return f"refuted{place}"
    return f"undecided: {finding.reason}"


def write_page() -> None:
    """The page of all results."""
    rows = [json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8")) for name in names()
            if (RESULTS / f"{name}.json").exists()]  # fmt: skip
    done = [row for row in rows if "verdicts" in row]
    causal = [row["verdicts"].get("causal", "") for row in done]
    every, one, refuted, undecided = (
        sum(c.startswith(start) for c in causal) for start in ("proved, every", "proved, one", "refuted", "undecided")
    )
    text = [
        "# Models of JAX", "",
        "Tiny models of Flax, Equinox, Haiku and keras-hub, and functions of JAX as papers write them, with random",
        "weights: see [Audit a model of JAX](../../how_to/audit_jax.md). Made by `python tools/jax_zoo.py`, which",
        "needs an interpreter with jax. A line is that of `tools/jax_zoo_models.py`, or of keras-hub. Seconds are of",
        "this program's processor, without those of JAX.", "",
        f"The tool has {len(names())} models. {len(rows)} were run, and {len(done)} could be audited. Of these,",
        f"causal is proved for every length of {every} and at one length of {one}, refuted of {refuted}, and",
        f"undecided of {undecided}.", "",
        "| model | causal | batch | permutation | seconds |", "| --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for row in done:
        cells = [row["verdicts"].get(law, "does not apply").replace("|", "/") for law in LAWS]
        text.append(f"| `{row['name']}` | {' | '.join(cells)} | {row['proving']:.1f} |")
    if refused := [row for row in rows if "error" in row]:
        text += ["", "## Not audited", "", "| model | reason |", "| --- | --- |"]
        text += [f"| `{row['name']}` | {row['error'].replace('|', '/')[:200]} |" for row in refused]
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text("\n".join(text) + "\n", encoding="utf-8")


def main(chosen: list[str]) -> None:
    """Audit models, and write the page if none is named."""
    from orderproof.models.jax_function.load_function import jax_python
    from orderproof.models.jax_function.process import JaxProcess

    RESULTS.mkdir(parents=True, exist_ok=True)
    if chosen != ["--page"]:
        process = JaxProcess(jax_python())
        for name in chosen or names():
            row = audited(process, name)
            (RESULTS / f"{name}.json").write_text(json.dumps(row), encoding="utf-8")
            print(name, row.get("error") or row["verdicts"], f"{row.get('proving', 0):.1f} s", flush=True)
    if chosen in ([], ["--page"]):
        write_page()


if __name__ == "__main__":
    main(sys.argv[1:])
