"""The page of the comparison."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from tests.models.onnx_file.sweep.compare import NO_KERNEL, OTHER, REFUSED, RUNTIME_FAILS, SAME, UNITS, Outcome

_TYPE = re.compile(r"numbers of type (STRING|UINT\d+)|not implemented for '(UInt\d+)'|has (text)s")
COMMAND = "python -m tests.models.onnx_file.sweep --markdown docs/evidence/onnx/operators.md"

NOTES = """
## Where the runtime and the standard differ

What the translation does is in brackets.

- `Attention` with a causal flag or lengths and a mask of integers: `findings/onnxruntime_integer_mask_causal.sh`
  (refused).
- `Attention` and a mask of the least number: `findings/onnxruntime_least_number_row.sh`.
- `MultiHeadAttention`, `unidirectional`, more keys than queries: `findings/onnxruntime_last_query_sees_all.sh`
  (refused).
- `DynamicQuantizeLSTM` with several threads: `findings/onnxruntime_quantized_lstm_threads.sh` (one thread is compared).
- `Slice` backward to the largest integer: the standard cuts that end to the last place, which gives one entry or none;
  the runtime goes to the first place (as the runtime).
- Sums of nothing: `MatMulInteger` and `QLinearMatMul` leave numbers unset, `Einsum` of integers and
  `InstanceNormalization` end the process, and `ReduceMean` gives 0 (not drawn; `ReduceMean` is refused).
- `Sign` of NaN is NaN (0 in torch). `Clip` without a limit cuts infinite numbers to the largest one, as the standard
  says (they stay).
"""


def page(found: Mapping[tuple[str, str], Sequence[Outcome]], calls: int) -> str:
    """The page, in Markdown."""
    every = [x for each in found.values() for x in each]
    count = Counter(x.result for x in every)
    head = f"""# Operators of ONNX next to ONNX Runtime

Written by `{COMMAND}`; not edited by hand.
Versions: {", ".join(f"{name} {version(name)}" for name in ("onnx", "onnxruntime", "torch"))}.

Each translated operator runs in a file of its own, by its translation and by ONNX Runtime on a processor: {calls}
random calls for each combination of types that the schema of the operator allows, with random attributes, inputs that
are given or stored, and axes of 1, 3 and 7 entries; in every second call some axes may have none. *Compared* are the
types for which the runtime has a kernel and both ran. Integers are equal; real numbers differ by at most {UNITS} units
in the last place of the largest one. Types that torch lacks are refused where a file is read.

{len(found)} operators: {count[SAME]} calls have the same outputs, and {count[OTHER]} have others.
{count[REFUSED]} calls are refused with one line, and {count[RUNTIME_FAILS]} fail in the runtime.
For {count[NO_KERNEL]} combinations of types the runtime has no kernel.
"""
    lines = [
        head,
        "| operator | same | types compared | sizes | refused | no kernel |",
        "| --- | ---: | --- | --- | --- | --- |",
    ]
    for (domain, name), each in found.items():
        same = [x for x in each if x.result == SAME]
        sizes = ", ".join(map(str, sorted({n for x in same for n in x.sizes})))
        refused = "; ".join(sorted({_plain(x.reason) for x in each if x.result == REFUSED} - {""}))
        lacking = sorted(
            {kind for x in each if x.result == REFUSED and not _plain(x.reason) for kind in _types(x.reason)}
        )
        refused = "; ".join(filter(None, [", ".join(lacking), refused]))
        kinds = _kinds(same)
        missing = _kinds([x for x in each if x.result == NO_KERNEL], without=same)
        label = f"{domain}.{name}" if domain else name
        lines.append(f"| {label} | {len(same)} | {kinds} | {sizes} | {refused} | {missing} |")
    wrong = [((domain, name), x) for (domain, name), each in found.items() for x in each if x.result == OTHER]
    lines += ["", "## Differences", ""]
    lines += [f"- {name}, {dict(x.kinds)}, version {x.version}: {x.reason}" for (_, name), x in wrong] or ["None."]
    return "\n".join(lines) + "\n" + NOTES


def _kinds(found: Sequence[Outcome], without: Sequence[Outcome] = ()) -> str:
    """The types by type variable, those of other outcomes left out."""
    other = {(key, kind) for x in without for key, kind in x.kinds.items()}
    pairs = sorted({(key, kind) for x in found for key, kind in x.kinds.items()} - other)
    keys = sorted({key for key, _ in pairs})
    return "; ".join(f"{key}: {', '.join(kind for own, kind in pairs if own == key)}" for key in keys)


def _types(reason: str) -> list[str]:
    """The types in a reason that names a type, in small letters."""
    return ["string" if kind == "text" else kind.lower() for found in _TYPE.findall(reason) for kind in found if kind]


def _plain(reason: str) -> str:
    """A reason without the operator and the places; empty for one that names a type of integers or texts."""
    if _types(reason):
        return ""
    reason = reason.rpartition("Error: ")[2].partition(" is not supported with ")[2] or reason
    reason = re.sub(r"^.*cannot run in torch: \w+: ", "", reason)
    return re.sub(r"(?<!\w)-?\d+", "n", reason).split(". ")[0].rstrip(".")
