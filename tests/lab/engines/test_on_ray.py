"""Ray, on a cluster of two nodes of this machine."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from ray.cluster_utils import Cluster

from orderproof.errors import UsageError
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


@pytest.mark.parametrize(
    ("address", "why"),
    [
        (
            "127.0.0.1:1",
            "cannot reach a Ray cluster at 127.0.0.1:1: Connection refused; expected --engine ray:HOST:PORT",
        ),
        ("ray://127.0.0.1:1", "cannot reach a Ray cluster at ray://127.0.0.1:1: Connection refused"),
        ("nowhere", "'nowhere' is no address of a Ray cluster; expected --engine ray:HOST:PORT, ray:auto or ray"),
        ("host:port", "'host:port' is no address of a Ray cluster"),
    ],
)
def test_a_cluster_that_is_not_there_is_one_line_at_once(address: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why):
        next(iter(OnRay(address, None).compute(tiny().runs(), tmp_path)))


def _at_a_run(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::compute")
    except OSError:
        return False
