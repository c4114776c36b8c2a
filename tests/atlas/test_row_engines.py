"""Rows from a Ray cluster, and from the warm process that its workers start, are those of a local run."""

from __future__ import annotations

import io
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from ray.cluster_utils import Cluster

from orderproof.atlas import row as atlas_row
from orderproof.atlas.engines.local import ServedRow, started
from orderproof.atlas.ports.runner import PortStore, requests
from orderproof.atlas.ports.runner import update_store as update_store_of_ports
from orderproof.atlas.ports.worker import PortRequest
from orderproof.atlas.row import AtlasRow, empty_row
from orderproof.atlas.row_server import serve
from orderproof.atlas.runner import AtlasRequest, update_store
from orderproof.atlas.store import AtlasStore
from orderproof.atlas.worker import Limits, RowRequest
from orderproof.errors import UsageError
from orderproof.ports.engines.registry import find_engine
from tests.ray_workers import one_killed_worker

NAMES = ("decision_transformer", "layoutxlm")  # no audit: a time series, and no base model


def test_a_server_answers_each_request_and_survives_a_crash(monkeypatch: pytest.MonkeyPatch, cold: None) -> None:
    def make(name: str, attention: str | None, law_seconds: float) -> AtlasRow:
        if name == "b":
            os.kill(os.getpid(), signal.SIGKILL)
        return empty_row(name, attention).model_copy(update={"model_kind": f"{attention} {law_seconds:g}"})

    monkeypatch.setattr(atlas_row, "make_row", make)
    limits = Limits(seconds=500, memory_gib=3)
    requests = [RowRequest(name=name, attention="eager", limits=limits).model_dump_json() + "\n" for name in "abc"]
    answers = io.StringIO()
    serve(RowRequest, io.StringIO("".join(requests)), answers)
    rows = [AtlasRow.model_validate_json(line) for line in answers.getvalue().splitlines()]
    assert [(row.name, row.model_kind) for row in rows] == [("a", "eager 200"), ("b", ""), ("c", "eager 200")]
    assert rows[1].failure is not None
    assert (rows[1].failure.category, rows[1].failure.limit) == ("memory", 3)


@pytest.mark.slow
def test_a_cluster_with_a_killed_worker_gives_the_rows_of_a_local_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = rows_of(tmp_path / "local", "local")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        with one_killed_worker("make_row_json") as killed:
            on_ray = rows_of(tmp_path / "ray", f"ray:{cluster.address}")
    finally:
        cluster.shutdown()
    assert killed
    assert on_ray == local
    assert [row["failure"]["category"] for row in on_ray] == ["not text or vision", "no base model"]


def rows_of(store: Path, engine: str) -> list[dict]:
    with AtlasStore(store) as opened:
        update_store(AtlasRequest(NAMES, engine=engine), opened)
    rows = [json.loads(line) for line in store.read_text().splitlines()]
    assert all(row.pop("processor_seconds") > 0 for row in rows)
    return sorted(rows, key=lambda row: row["name"])


@pytest.mark.slow
@pytest.mark.parametrize(("where", "workers"), [("local", 2), ("ray", 1)])
def test_ports_are_compared_on_several_workers_as_on_one(
    where: str, workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows(name: str, **options: Any) -> list[dict]:
        wanted = list(requests(["vit", "bart", "levit"], [find_engine("onnx")], scalings=False))
        with PortStore(tmp_path / name) as store:
            found = update_store_of_ports(wanted, store, lambda running, done, total: None, **options)
        assert [row.name for row in found] == ["vit", "bart", "levit"]
        return [row.model_dump(exclude={"processor_seconds"}) for row in found]

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    one = rows("one")
    assert "no causal language model" in one[0]["failure"]
    assert rows("several", engine=where, workers=workers) == one


def test_a_row_server_that_is_killed_costs_its_row_only(tmp_path: Path) -> None:
    with started(PortRequest, None, 2, lambda: None) as engine:
        (first, *_) = requests(["vit"], [find_engine("onnx")], scalings=False)
        task = engine.start(first)
        assert isinstance(task, ServedRow)
        task._client._process.kill()
        while (row := task.poll()) is None:
            time.sleep(0.02)
        assert row.failure == "the row server ended with exit code -9"
        again = engine.start(first)
        while (row := again.poll()) is None:
            time.sleep(0.02)
        assert "no causal language model" in row.failure


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("slurm", "expected --engine, one of local, ray; got 'slurm'"),
        ("local:4", "expected --engine local; got --engine local:4"),
        ("ray:127.0.0.1:1", "cannot connect to the Ray cluster at 127.0.0.1:1: Connection refused; expected --engine"),
    ],
)
def test_an_engine_that_cannot_be_used_is_one_line(engine: str, message: str, tmp_path: Path) -> None:
    with AtlasStore(tmp_path / "store") as store, pytest.raises(UsageError, match=message):
        update_store(AtlasRequest(("bert",), engine=engine), store)
