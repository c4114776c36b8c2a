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
MODELS, EXAMPLES = (Path(__file__).with_name(f"jax_zoo_{name}.py") for name in ("models", "examples"))
RESULTS, PAGE = ROOT / "build" / "jax_zoo", ROOT / "docs" / "evidence" / "jax" / "models.md"
LAWS = ("causal", "batch", "permutation")
SECONDS = 300.0  # for each law


def names() -> list[str]:
    """The models, in their order: this Python need not have jax."""
    tree = ast.parse(MODELS.read_text(encoding="utf-8"))
    functions = _functions(MODELS)
    (table,) = (n.value for n in tree.body if isinstance(n, ast.AnnAssign) and ast.unparse(n.target) == "KERAS_HUB")
    assert isinstance(table, ast.Dict)
    backbones = [f"keras_hub_{ast.literal_eval(key)}" for key in table.keys if key is not None]
    return [*functions, *backbones, *_functions(EXAMPLES)]


def _functions(file: Path) -> list[str]:
    """The functions of a file that return models."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.decorator_list]


def file_of(name: str) -> Path:
    """The file of a model."""
    return EXAMPLES if name in _functions(EXAMPLES) else MODELS


def audited(process: Any, name: str) -> dict[str, Any]:
    """The verdicts of a model, or the reason that it has none."""
    import orderproof
    from orderproof.errors import OrderproofError
    from orderproof.models.jax_function.load_function import subject_of

    began = time.process_time()
    try:
        process.load(f"{file_of(name)}:{name}")
        subject = subject_of(process)
        loaded = time.process_time()
        report = orderproof.audit(subject, laws=LAWS, expect=dict.fromkeys(LAWS, "any"), timeout=SECONDS)
    except OrderproofError as error:
        return {"name": name, "error": str(error).replace(f"{process.spec}: ", "").replace(f"{ROOT}/", "")}
    verdicts: dict[str, Any] = {}
    shown = _output_of_tokens(report.findings)
    for finding in report.findings:
        if finding.output in (shown, ""):  # a law that ran out of time names none
            verdicts.setdefault(finding.law, _in_words(finding, subject.notes).replace(f"{ROOT}/", ""))
    proving = time.process_time() - loaded
    return {"name": name, "verdicts": verdicts, "loading": loaded - began, "proving": proving, "notes": subject.notes}


def _output_of_tokens(findings: Any) -> str:
    """The first output that has tokens; the first one without such an output."""
    named = [f for f in findings if f.output]
    per_token = [f.output for f in named if f.law == "causal" and "no token dimension" not in (f.reason or "")]
    return str([*per_token, *(f.output for f in named), ""][0])


def _in_words(finding: Any, notes: Any) -> str:
    place = f", {Path(finding.fix_source).name}" if finding.fix_source else ""
    if finding.verdict == "proved":
        theorem = finding.theorem
        if theorem is not None and theorem.proved and theorem.open_length:
            least = "" if theorem.greatest_length is None else f", at most {theorem.greatest_length:,} tokens"
            return f"proved, every length{least}"
        return _plain(f"proved, one length: {'' if theorem is None else theorem.reason}", notes)
    if finding.verdict == "refuted":
        return f"refuted{place}"
    return f"undecided: {finding.reason}"


def _plain(text: str, notes: Any) -> str:
    """A verdict; one at one length with what JAX says, if JAX does not leave the length open."""
    fixed = next((note for note in notes if "JAX cannot leave" in note or "each shape apart" in note), None)
    return f"proved, one length: {fixed}" if fixed and text.startswith("proved, one length") else text


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
        "Tiny models of Flax, Equinox, Haiku, Penzai and keras-hub, the examples of Flax and Haiku, and functions of",
        "JAX as papers write them, with random weights: see [Audit a model of JAX](../../how_to/audit_jax.md). Made by",
        "`python tools/jax_zoo.py`, which needs an interpreter with jax. A line is that of a file of `tools/`, or of",
        "the library. Seconds are of this program's processor, without those of JAX.", "",
        "*Refuted* is a fact and not a fault: attention without a mask is not causal. `lm1b` hides the id 0, the pad.",
        "A row of scores in which all is hidden gets equal weights for all tokens, later ones too: its outputs at",
        "pads are not causal. Counts in float32 are exact up to 16,777,216. Where JAX cannot leave a size open, the",
        "row says why, and the proof is for the length of a call. Some rows are of runs with earlier versions of the",
        "code: today more may be proved.", "",
        f"The tool has {len(names())} models. {len(rows)} were run, and {len(done)} could be audited. Of these,",
        f"causal is proved for every length of {every} and at one length of {one}, refuted of {refuted}, and",
        f"undecided of {undecided}.", "",
        "| model | causal | batch | permutation | seconds |", "| --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for row in done:
        row["verdicts"] = {law: _plain(text, row["notes"]) for law, text in row["verdicts"].items()}
        cells = [row["verdicts"].get(law, "not audited").replace("|", "/")[:260] for law in LAWS]
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
            process = process if process.is_alive else JaxProcess(jax_python())
            row = audited(process, name)
            (RESULTS / f"{name}.json").write_text(json.dumps(row), encoding="utf-8")
            print(name, row.get("error") or row["verdicts"], f"{row.get('proving', 0):.1f} s", flush=True)
    if chosen in ([], ["--page"]):
        write_page()


if __name__ == "__main__":
    main(sys.argv[1:])
