"""Ray, on a cluster of two nodes of this machine."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from ray.cluster_utils import Cluster

from orderproof.lab.engines.on_ray import OnRay
from orderproof.lab.result import RunResult
from tests.lab.running import descendants, tiny, told, until


def test_two_nodes_and_a_killed_worker_give_the_same_results(
    tmp_path: Path, undisturbed: dict[str, RunResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    killed: list[int] = []

    def kill() -> None:
        until(lambda: list(tmp_path.glob("*.safetensors")))
        killed.extend(pid for pid in descendants(os.getpid()) if _at_a_run(pid))
        for pid in killed[:1]:
            os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        came = list(OnRay(cluster.address, None).compute(tiny().runs(), tmp_path))
        killer.join()
    finally:
        cluster.shutdown()
    assert killed
    assert all(isinstance(result, RunResult) for result in came), came
    assert {result.id: told(result) for result in came} == {  # type: ignore[arg-type]
        name: told(result) for name, result in undisturbed.items()
    }


def _at_a_run(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::compute")
    except OSError:
        return False
