"""Processor time and memory of proofs, of this build and of an earlier one, in one run.

    git worktree add /tmp/before 754dcf34
    python benchmarks/builds.py --before /tmp/before/src

Each job runs in a process of its own, first with one build and then with the other, three times in turn. The figure is
the least processor time of the three, without the imports; memory is the largest resident size of the process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

PREPARE = """
import json, resource, sys, time
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
from orderproof import prove
"""
FINISH = """
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"seconds": time.process_time() - start, "megabytes": usage.ru_maxrss / 1024, "found": found}))
"""
JOBS = {  # by what is run: preparation, the measured part, and the largest ratio that is wanted
    "four laws of an x-transformers decoder with ALiBi (2 layers)": (
        (
            "import x_transformers\n"
            "model = x_transformers.Decoder(dim=32, depth=2, heads=2, alibi_pos_bias=True).eval()\n"
            "tokens = torch.randn(2, 7, 32)"
        ),
        "found = [prove(model, law, inputs=tokens).verdict for law in ('permutation', 'reversal', 'causal', 'batch')]",
        0.1,
    ),
    "causal, a Llama of 16 layers": (
        (
            "from transformers import LlamaConfig, LlamaForCausalLM\n"
            "model = LlamaForCausalLM(LlamaConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=16,\n"
            "                                     num_attention_heads=4, vocab_size=64)).eval()"
        ),
        "found = prove(model, 'causal').verdict",
        0.6,
    ),
    "orderproof prove arch:llama --law causal (full width, no weights)": (
        "",
        (
            "import contextlib, io\n"
            "from orderproof.cli import main\n"
            "sys.argv = ['orderproof', 'prove', 'arch:llama', '--law', 'causal', '--quiet']\n"
            "found = None\n"
            "with contextlib.redirect_stdout(io.StringIO()):\n"
            "    try:\n"
            "        main()\n"
            "    except SystemExit as end:\n"
            "        found = end.code"
        ),
        0.75,
    ),
}


def measured(job: str, source: Path) -> dict[str, object]:
    """The processor seconds, the megabytes and the verdicts of a job with the package in a folder."""
    prepare, work, _ = JOBS[job]
    code = f"{PREPARE}\n{prepare}\nstart = time.process_time()\n{work}\n{FINISH}"
    paths = [source, source.parent / "recheck" / "src"]
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{job}: {done.stderr[-2000:]}")
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="the src folder of the earlier build")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    builds = {"before": options.before, "now": Path(__file__).parents[1] / "src"}
    print("| job | before [s] | now [s] | ratio | wanted | before [MB] | now [MB] | verdicts |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    for job, (_, _, wanted) in JOBS.items():
        runs: dict[str, list[dict[str, object]]] = {name: [] for name in builds}
        for _ in range(options.rounds):
            for name, source in builds.items():
                runs[name].append(measured(job, source))
        seconds, megabytes = (
            {name: min(float(str(run[key])) for run in found) for name, found in runs.items()}
            for key in ("seconds", "megabytes")
        )
        same = len({json.dumps(run["found"]) for found in runs.values() for run in found}) == 1
        print(
            f"| {job} | {seconds['before']:.2f} | {seconds['now']:.2f} | {seconds['now'] / seconds['before']:.3f} | "
            f"{wanted} | {megabytes['before']:.0f} | {megabytes['now']:.0f} | {'the same' if same else 'DIFFERENT'} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
