"""A child process that hangs, crashes or runs out of memory costs one row."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from orderproof.atlas import row as atlas_row
from orderproof.atlas.row import AtlasRow, empty_row, with_failure
from orderproof.atlas.runner import AtlasRequest, requested_document, update_store
from orderproof.atlas.store import AtlasStore
from orderproof.atlas.worker import Limits
from orderproof.errors import UsageError
from tests.atlas.processes import ended


def hang() -> NoReturn:
    while True:
        time.sleep(60)


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def eat() -> None:
    hoard = []
    while True:
        hoard.append(bytearray(2**26))


def eat_torch() -> None:
    import torch

    hoard = []
    while True:
        hoard.append(torch.ones(2**24))


def abort_when_fed() -> None:
    with contextlib.suppress(MemoryError):
        hoard = []
        while True:
            hoard.append(bytearray(2**24))
    os.abort()


def leave() -> None:
    sys.exit("gone")


def vanish() -> None:
    os._exit(3)


def raises() -> None:
    raise RecursionError("too deep at 0x7f00deadbeef in /home/someone/lib/modeling_x.py\nmore")


BAD: dict[str, tuple[Callable[[], object], str, str]] = {
    "crash": (crash, "crash", r"ended by SIGSEGV in crash (test_child_processes.py:"),
    "eat": (eat, "memory", "MemoryError"),
    "eat_torch": (eat_torch, "memory", "can't allocate memory"),
    "abort_when_fed": (abort_when_fed, "memory", "ended by SIGABRT with "),
    "leave": (leave, "crash", "SystemExit: gone"),
    "vanish": (vanish, "crash", "ended with exit code 3 and left no row in vanish"),
    "raises": (raises, "cannot be run", "RecursionError: too deep at 0x... in modeling_x.py more"),
}


def test_folders_and_addresses_are_removed_from_reasons() -> None:
    cut = "no X in <module 'a' from '/home/someone/lib/a/__in"
    assert atlas_row.one_line(cut) == "no X in <module 'a' from '__in"
    assert atlas_row.one_line("in /opt/lib/modeling_x.py:3") == "in modeling_x.py:3"
    assert atlas_row.one_line("1/2 of [batch]/heads, a/b/c") == "1/2 of [batch]/heads, a/b/c"


MEMORY_LIMIT = 2.4  # [GiB] of address space; the libraries loaded by the tests use almost one


def test_each_misbehaving_architecture_costs_one_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cold: None
) -> None:
    # On a busy machine, filling the memory takes long; the time limit must not end it first.
    monkeypatch.setattr(atlas_row, "load", lambda spec, **_: BAD[spec.removeprefix("arch:")][0]())
    request = AtlasRequest(tuple(BAD), workers=4, limits=Limits(seconds=300, memory_gib=MEMORY_LIMIT))
    with AtlasStore(tmp_path / "store") as store:
        update_store(request, store)
        document = requested_document(request, store)
    assert (len(document.rows), document.requested) == (len(BAD), len(BAD))
    for row in document.rows:
        _, category, text = BAD[row.name]
        if row.name == "vanish":
            text = text.removesuffix(" in vanish")
        assert row.failure is not None
        assert (row.name, row.failure.category) == (row.name, category)
        assert text in row.failure.reason
        assert "\n" not in row.failure.reason
        assert row.failure.limit == {"memory": MEMORY_LIMIT}.get(category)
        assert row.processor_seconds > 0


def test_hanging_architecture_costs_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cold: None) -> None:
    monkeypatch.setattr(atlas_row, "load", lambda spec, **_: hang())
    request = AtlasRequest(("hang",), limits=Limits(seconds=2, memory_gib=1.6))
    with AtlasStore(tmp_path / "store") as store:
        update_store(request, store)
        (row,) = requested_document(request, store).rows
    assert row.failure is not None
    assert (row.failure.category, row.failure.limit) == ("timeout", 2)
    assert "not done after 2 s" in row.failure.reason


def test_processes_started_by_a_worker_are_killed_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cold: None
) -> None:
    def spawn(name: str, attention: str | None, law_seconds: float) -> NoReturn:
        pid = os.fork()
        if pid:
            (tmp_path / "pid").write_text(str(pid))
        hang()

    monkeypatch.setattr(atlas_row, "make_row", spawn)
    with AtlasStore(tmp_path / "store") as store:
        update_store(AtlasRequest(("a",), limits=Limits(seconds=2)), store)
    assert ended(int((tmp_path / "pid").read_text()))


def test_only_a_higher_limit_repeats_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cold: None) -> None:
    made = tmp_path / "made"

    def row_of(name: str, attention: str | None, law_seconds: float) -> AtlasRow:
        with made.open("a") as stream:
            stream.write(name + "\n")
        return with_failure(empty_row(name, attention), "crash", "again")

    monkeypatch.setattr(atlas_row, "make_row", row_of)
    for limits, more in ((Limits(5, 2), []), (Limits(9, 2), ["slow"]), (Limits(9, 3), ["slow", "fat"])):
        made.unlink(missing_ok=True)
        (tmp_path / "store").unlink(missing_ok=True)
        with AtlasStore(tmp_path / "store") as store:
            store.append(with_failure(empty_row("slow", None), "timeout", "5 s", limit=5))
            store.append(with_failure(empty_row("fat", None), "memory", "2 GiB", limit=2))
            store.append(with_failure(empty_row("bad", None), "crash", "SIGSEGV"))
            update_store(AtlasRequest(("slow", "fat", "bad"), limits=limits), store)
        assert (made.read_text().split() if made.exists() else []) == more
        with AtlasStore(tmp_path / "store") as store:
            assert len(store.rows) == 3


def test_limit_of_each_law_grows_with_that_of_the_process() -> None:
    assert [Limits(seconds=s).law_seconds for s in (60, 300, 1500)] == [120, 120, 600]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "expected --workers above 0; got 0"),
        ({"limits": Limits(seconds=-1)}, "expected --timeout above 0; got -1"),
        ({"limits": Limits(memory_gib=0)}, "expected --memory above 0; got 0"),
    ],
)
def test_limits_are_above_zero(options: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        AtlasRequest(("bert",), **options)
