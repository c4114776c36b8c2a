"""Ray, on a cluster of two local nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ray.cluster_utils import Cluster

from orderproof.errors import UsageError
from orderproof.lab.engines.engine import RunOutcome
from orderproof.lab.engines.ray_engine import RayEngine
from orderproof.lab.result import RunResult
from tests.lab.small_study import reproducible_part, tiny_study
from tests.ray_workers import one_killed_worker


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """One node with one processor."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    started = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield started
    started.shutdown()


@pytest.mark.slow
def test_a_cluster_gives_the_same_results(cluster: Cluster, tmp_path: Path, undisturbed: dict[str, RunResult]) -> None:
    check(list(RayEngine(cluster.address, None).run(tiny_study().runs(), tmp_path)), undisturbed)


@pytest.mark.slow
def test_two_nodes_and_a_killed_worker_give_the_same_results(
    cluster: Cluster, tmp_path: Path, undisturbed: dict[str, RunResult]
) -> None:
    cluster.add_node(num_cpus=1)
    with one_killed_worker("run_job") as killed:
        outcomes = list(RayEngine(cluster.address, None).run(tiny_study().runs(), tmp_path))
    assert killed
    check(outcomes, undisturbed)


def check(outcomes: list[RunOutcome], undisturbed: dict[str, RunResult]) -> None:
    """Each run has the result of a run in this process."""
    assert all(isinstance(result, RunResult) for result in outcomes), outcomes
    assert {result.id: reproducible_part(result) for result in outcomes} == {  # type: ignore[arg-type]
        name: reproducible_part(result) for name, result in undisturbed.items()
    }


@pytest.mark.parametrize(
    ("address", "why"),
    [
        (
            "127.0.0.1:1",
            "cannot connect to the Ray cluster at 127.0.0.1:1: Connection refused; expected --engine ray:HOST:PORT",
        ),
        ("ray://127.0.0.1:1", "cannot connect to the Ray cluster at ray://127.0.0.1:1: Connection refused"),
        ("nowhere", "'nowhere' is not the address of a Ray cluster; expected --engine ray:HOST:PORT, ray:auto or ray"),
        ("host:port", "'host:port' is not the address of a Ray cluster"),
    ],
)
def test_an_unreachable_cluster_is_one_line_at_once(address: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why):
        next(iter(RayEngine(address, None).run(tiny_study().runs(), tmp_path)))
