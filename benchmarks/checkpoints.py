"""Processor time and peak memory of `orderproof audit FOLDER --as decoder`, for checkpoints of growing size.

    python benchmarks/checkpoints.py                                     100, 250, 500, 1000 and 3000 million parameters
    python benchmarks/checkpoints.py --millions 234 500                  other sizes
    python benchmarks/checkpoints.py --before /tmp/before/src            and of an earlier build, in turn
    python benchmarks/checkpoints.py --measured sizes.json               keep what is measured, and go on from there
    python benchmarks/checkpoints.py --markdown docs/evidence/benchmarks/checkpoints.md    and write the page

The checkpoints are decoders of the kind of Qwen2 with random weights in bfloat16, written by this command.

file      the safetensors of the checkpoint
peak      the largest sum, at one time, of the memory of all processes of the command, where a page that several
          processes share counts once: pages of the mapped file count too
seconds   processor time of the command and all processes that it starts, imports included, on one thread
forward   processor seconds of one call of the model with 64 tokens in float32, and in float64, without the time in
          which the weights of a layer are cast: no more than one layer is in this dtype at a time
growth    the seconds by which a size takes longer than the one above it, for each 100 million further parameters, and
          over the time by which its call in float64 takes longer
Each number is of one run, unless --repeats is given: then the least time and the largest memory.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import linear_regression

sys.path.insert(0, str(Path(__file__).parent))

from audit_cost import SAMPLING_INTERVAL, memory_at_one_time
from processor import processor

COMMAND = "python benchmarks/checkpoints.py --markdown docs/evidence/benchmarks/checkpoints.md"
MILLIONS = (100, 250, 500, 1000, 3000)
VOCABULARY = 32_000
WIDTHS = ((700, 1024), (1500, 2048), (4000, 3072))  # (parameters in millions up to which, features)
WIDEST = 4096
HEAD_WIDTH = 64
MOST_IN_FILE = 1e9  # [bytes] of weights
ADDED_MEMORY = 1.0  # [GB] the most that is wanted, besides the file
ADDED_FORWARDS = 12  # the most float64 calls of further parameters that is wanted for them
FORWARD_TOKENS = 64
NEXT_SIZE = 8e9  # parameters, to which the sizes are continued
SAMPLING_SHARE = 20  # times as long as it takes to read the memory of a process: of a large one it takes long
FORWARD = """
import sys, time, torch, transformers
torch.set_num_threads(1)
dtype = getattr(torch, sys.argv[3])
model = transformers.AutoModel.from_pretrained(sys.argv[1], dtype="auto").eval()
tokens = torch.randint(0, model.config.vocab_size, (1, int(sys.argv[2])))
casting = 0.0

def cast(module, _):
    global casting
    start = time.process_time()
    for parameter in module.parameters(recurse=False):
        parameter.in_file = parameter.data
        parameter.data = parameter.data.to(dtype)
    casting += time.process_time() - start

def forget(module, *_):
    global casting
    start = time.process_time()
    for parameter in module.parameters(recurse=False):
        parameter.data = parameter.in_file
    casting += time.process_time() - start

for module in model.modules():
    module.register_forward_pre_hook(cast)
    module.register_forward_hook(forget)
with torch.no_grad():
    model(tokens)
    found = []
    for _ in range(3):
        start, casting = time.process_time(), 0.0
        model(tokens)
        found.append(time.process_time() - start - casting)
print(min(found))
"""
IDEAS = "## Ideas tried"
HEADER = (
    "parameters", "file [GB]", "peak [GB]", "peak - file [GB]", "seconds", "forward [s]", "seconds / forward",
    "in float64 [s]", "growth [s]", "growth / float64",
)  # fmt: skip
HEADER_BEFORE = ("before: peak [GB]", "before: seconds", "ratio")


@dataclass(frozen=True)
class Cost:
    """What the command cost."""

    seconds: float
    gigabytes: float
    exit_code: int


@dataclass(frozen=True)
class Size:
    """The measurements of one size."""

    parameters: int
    gigabytes: float  # of the file
    float32: float  # [s] of one call
    float64: float
    costs: dict[str, Cost]  # by build

    def growth(self, smaller: Size | None) -> tuple[str, str]:
        """The cells of the growth from a smaller size."""
        if smaller is None:
            return "", ""
        seconds = self.costs["now"].seconds - smaller.costs["now"].seconds
        added = f"{seconds / (self.parameters - smaller.parameters) * 1e8:.1f}"
        return added, f"{seconds / (self.float64 - smaller.float64):.0f}"

    def cells(self, smaller: Size | None) -> tuple[str, ...]:
        """The row of the table."""
        now, before = self.costs["now"], self.costs.get("before")
        cells = (
            f"{self.parameters / 1e6:.0f} million", f"{self.gigabytes:.2f}", f"{now.gigabytes:.2f}",
            f"{now.gigabytes - self.gigabytes:.2f}", f"{now.seconds:.1f}", f"{self.float32:.2f}",
            f"{now.seconds / self.float32:.0f}", f"{self.float64:.2f}",
            *self.growth(smaller),
        )  # fmt: skip
        if before is None:
            return cells
        return (*cells, f"{before.gigabytes:.2f}", f"{before.seconds:.1f}", f"{now.seconds / before.seconds:.2f}")


def continued(sizes: Sequence[Size]) -> str:
    """What a larger size needs, by least squares over all sizes."""
    if len(sizes) < 2:
        return ""
    of = [(size.gigabytes, size.costs["now"].gigabytes, size.costs["now"].seconds) for size in sizes]
    lines = [linear_regression([size.parameters for size in sizes], values) for values in zip(*of, strict=True)]
    file, peak, seconds = (line.intercept + line.slope * NEXT_SIZE for line in lines)
    return (
        f"By the same line, {NEXT_SIZE / 1e9:g} billion parameters have a file of {file:.1f} GB and "
        f"need {peak:.1f} GB of memory, the file included, and {seconds:.0f} s."
    )


def fitted(sizes: Sequence[Size]) -> str:
    """The growth over all sizes, by least squares: a row and the one above it have unlike numbers of layers."""
    if len(sizes) < 2:
        return ""
    seconds = [size.costs["now"].seconds for size in sizes]
    by_parameters = linear_regression([size.parameters / 1e8 for size in sizes], seconds).slope
    by_calls = linear_regression([size.float64 for size in sizes], seconds).slope
    return (
        f"By least squares over all sizes, each further 100 million parameters take {by_parameters:.1f} s, and "
        f"{by_calls:.0f} times as long as a call in float64 takes longer."
    )


def configuration(millions: float) -> object:
    """The configuration of a model with about this many parameters, without those of the head."""
    import transformers

    width = next((width for most, width in WIDTHS if millions <= most), WIDEST)
    heads, inner = width // HEAD_WIDTH, 3 * width
    layer = 3 * width * width + 3 * width * inner  # half as many heads of keys and values as of queries
    layers = max(round((millions * 1e6 - VOCABULARY * width) / layer), 1)
    return transformers.Qwen2Config(
        hidden_size=width, intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=heads // 2, vocab_size=VOCABULARY, max_position_embeddings=32_768,
        tie_word_embeddings=False, dtype="bfloat16", bos_token_id=None, eos_token_id=None,
    )  # fmt: skip


def write_checkpoint(folder: Path, millions: float) -> int:
    """Write a checkpoint with random weights, file by file; the number of parameters of the model without head."""
    import torch
    import transformers
    from safetensors.torch import save_file

    config = configuration(millions)
    config.architectures = ["Qwen2ForCausalLM"]  # type: ignore[attr-defined]
    with torch.device("meta"):
        model = transformers.Qwen2ForCausalLM(config)
    generator = torch.Generator().manual_seed(0)
    parts: list[dict[str, torch.Tensor]] = [{}]
    sizes = model.state_dict()
    names: dict[str, int] = {}
    size = 0.0
    for name, value in sizes.items():
        if size + 2 * value.numel() > MOST_IN_FILE and parts[-1]:
            _save(save_file, folder, len(parts), parts[-1])
            parts.append({})
            size = 0.0
        drawn = torch.randn(value.shape, generator=generator, dtype=torch.float32) * 0.02
        parts[-1][name] = (drawn + 1 if "norm" in name else drawn).bfloat16()
        names[name] = len(parts)
        size += 2 * value.numel()
    _save(save_file, folder, len(parts), parts[-1])
    index = {"metadata": {}, "weight_map": {name: _file_name(number) for name, number in names.items()}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    config.save_pretrained(folder)  # type: ignore[attr-defined]
    return sum(value.numel() for name, value in sizes.items() if not name.startswith("lm_head"))


def _file_name(number: int) -> str:
    return f"model-{number:05}.safetensors"


def _save(save_file: object, folder: Path, number: int, tensors: dict[str, object]) -> None:
    save_file(tensors, folder / _file_name(number), metadata={"format": "pt"})  # type: ignore[operator]
    tensors.clear()


def audit(folder: Path, source: Path, arguments: Sequence[str] = ()) -> Cost:
    """Run the command once, with the package of a source folder."""
    paths = [source, source.parent / "recheck" / "src"]
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "orderproof", "audit", str(folder), "--as", "decoder", "--quiet", *arguments]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder
    )
    most = 0.0
    while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        began = time.process_time()
        most = max(most, memory_at_one_time(process.pid))
        time.sleep(max(SAMPLING_INTERVAL, SAMPLING_SHARE * (time.process_time() - began)))
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(usage.ru_utime + usage.ru_stime, most / 1e3, process.returncode)


def forward_seconds(folder: Path, dtype: str) -> float:
    """The processor time [s] of one call in a dtype, in a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", FORWARD, str(folder), str(FORWARD_TOKENS), dtype]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def measured(millions: float, builds: dict[str, Path], repeats: int) -> Size:
    """The measurements of one size."""
    with tempfile.TemporaryDirectory(prefix="orderproof-checkpoint-") as name:
        folder = Path(name)
        parameters = write_checkpoint(folder, millions)
        size = sum(file.stat().st_size for file in folder.glob("*.safetensors")) / 1e9
        forward, wide = (forward_seconds(folder, dtype) for dtype in ("float32", "float64"))
        runs: dict[str, list[Cost]] = {build: [] for build in builds}
        for _ in range(repeats):
            for build, source in builds.items():
                runs[build].append(audit(folder, source))
    for build, costs in runs.items():
        if any(cost.exit_code not in (0, 1, 3) for cost in costs):
            sys.exit(f"{build}: expected an audit of {parameters} parameters; got exit code {costs[-1].exit_code}")
    best = {
        build: Cost(min(c.seconds for c in costs), max(c.gigabytes for c in costs), costs[-1].exit_code)
        for build, costs in runs.items()
    }
    return Size(parameters, size, forward, wide, best)


def read_sizes(path: Path | None) -> dict[str, Size]:
    """The sizes that were measured before, by their millions of parameters."""
    if path is None or not path.is_file():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    return {
        millions: Size(**{**size, "costs": {build: Cost(**cost) for build, cost in size["costs"].items()}})
        for millions, size in found.items()
    }


def page(header: Sequence[str], rows: Sequence[Sequence[str]], command: str, more: str = "") -> str:
    """The page in Markdown."""
    explained = (__doc__ or "").split("\n\n")
    lines = [
        "# Benchmarks of checkpoints",
        f"Written by `{command}`; only *Ideas tried* is edited by hand.",
        " ".join(processor()),
        f"{explained[0]} {explained[2]}",
        "```text\n" + explained[3].strip() + "\n```",
        "\n".join(f"| {' | '.join(each)} |" for each in (header, ["---:"] * len(header), *rows)),
        f"Wanted: a peak of at most the file and {ADDED_MEMORY:g} GB, and a growth of at most {ADDED_FORWARDS} calls.",
        more,
    ]
    return "\n\n".join(filter(None, lines)) + "\n"


def ideas_of(path: Path) -> str:
    """The section of a page that is written by hand, which stays; empty if there is none."""
    _, heading, ideas = path.read_text(encoding="utf-8").partition(IDEAS) if path.is_file() else ("", "", "")
    return f"\n{heading}{ideas}" if heading else ""


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=float, nargs="+", default=MILLIONS, help="parameters in millions")
    parser.add_argument("--before", type=Path, help="the src folder of an earlier build")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--measured", type=Path, metavar="PATH", help="a JSON file of sizes that are measured already")
    parser.add_argument("--markdown", type=Path, metavar="PATH", help="write the page to this file")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="only write the first checkpoint to this folder")
    chosen = parser.parse_args(arguments)
    if chosen.write:
        chosen.write.mkdir(parents=True, exist_ok=True)
        print(write_checkpoint(chosen.write, chosen.millions[0]))
        return 0
    builds = {"now": Path(__file__).parents[1] / "src"}
    if chosen.before:
        builds["before"] = chosen.before
    header = (*HEADER, *(HEADER_BEFORE if chosen.before else ()))
    print("\t".join(header), flush=True)
    known, sizes, rows = read_sizes(chosen.measured), list[Size](), []
    for millions in chosen.millions:
        size = known.get(f"{millions:g}") or measured(millions, builds, chosen.repeats)
        known[f"{millions:g}"] = size
        if chosen.measured:
            text = json.dumps({key: asdict(each) for key, each in known.items()}, indent=1)
            chosen.measured.write_text(text + "\n", encoding="utf-8")
        rows.append(size.cells(sizes[-1] if sizes else None))
        sizes.append(size)
        print("\t".join(rows[-1]), flush=True)
    ending = "\n\n".join(filter(None, (fitted(sizes), continued(sizes))))
    print(ending)
    if chosen.markdown:
        options = (
            "" if tuple(chosen.millions) == MILLIONS else f" --millions {' '.join(f'{m:g}' for m in chosen.millions)}"
        )
        options += " --before BEFORE/src" if chosen.before else ""
        text = page(header, rows, COMMAND.replace(" --markdown", f"{options} --markdown"), ending)
        text += ideas_of(chosen.markdown)
        chosen.markdown.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
