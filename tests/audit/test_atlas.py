"""The atlas: one row an architecture whatever it does, none lost and none repeated, and one page for the same rows."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from orderproof.auditing import atlas, atlas_rows
from orderproof.auditing.atlas import Asked, rows_of, run, to_json, wanted
from orderproof.auditing.atlas_child import Limits
from orderproof.auditing.atlas_counts import code, places, summary, undecided
from orderproof.auditing.atlas_page import page
from orderproof.auditing.atlas_rows import LawRow, Row, blank, failure, make_row, one_line
from orderproof.auditing.atlas_store import Store
from orderproof.cli import main
from orderproof.errors import UsageError
from orderproof.record import Entry

ROOT = Path(__file__).parents[2]


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children that load nothing."""
    monkeypatch.setattr(atlas, "warm_up", lambda: None)
    monkeypatch.setattr(atlas_rows, "same_as", lambda name: "")


def ended(pid: int) -> bool:
    """Whether a process is gone, or about to be."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


def rows_in(path: Path) -> list[str]:
    return [json.loads(line)["name"] for line in path.read_text().splitlines()]


# ---------------------------------------------------------------- end to end


def test_architectures_are_audited_and_the_page_says_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*more: str) -> str:
        arguments = ["atlas", "gemma3", "bert", "bark", "--store", str(tmp_path / "store"), "--workers", "2", *more]
        monkeypatch.setattr(sys, "argv", ["orderproof", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code in (0, None)
        return capsys.readouterr().out

    shown = call("--json", str(tmp_path / "rows"), "--markdown", str(tmp_path / "page"))
    assert "4 of 4 architectures finished" in shown
    assert sorted(rows_in(tmp_path / "store")) == ["bark", "bert", "gemma3", "gemma3_text"]

    made = json.loads((tmp_path / "rows").read_text())
    bark, bert, gemma, text = (Row.model_validate(each) for each in made["rows"])
    verdicts = {each.law: each.verdict for each in bert.laws}
    assert {verdicts[name] for name in ("order_blind", "prompt_blind", "mirror_blind", "causal")} == {"refuted"}
    assert bert.laws[0].entries_complete is True
    assert [(e.operator, e.origin) for e in bert.entries] == [
        ("aten.add.Tensor", "model.embeddings.position_embeddings.weight")
    ]
    assert {each.output for each in bert.others} == {"pooler_output"}
    assert (gemma.same_as, gemma.laws) == ("gemma3_text", ())
    causal = next(each for each in text.laws if each.code == "OP201")
    assert (text.kind, causal.verdict, causal.expected, causal.met) == ("causal_lm", "proved", "holds", True)
    assert not any("over the real numbers" in each for each in causal.assumptions)  # the page says it once for all
    called = {(each.law, each.setting): each.verdict for each in text.laws}
    assert called["padding", "padded"] == called["packing", "packed"] == called["batch", ""] == "proved"
    assert made["operators"]["aten.linear.default"] == 2
    assert bark.failed is not None
    assert bark.failed.category == "not text or vision"

    before = (tmp_path / "store").read_bytes()
    first = (tmp_path / "page").read_text()
    assert "| bert | encoder | R | R | R | P |" in first
    assert "| gemma3 | gemma3_text |" in first
    monkeypatch.setattr(atlas_rows, "make_row", None)  # nothing may be made again
    call("--json", str(tmp_path / "again.json"), "--markdown", str(tmp_path / "again"))
    assert (tmp_path / "store").read_bytes() == before
    assert (tmp_path / "again").read_text() == first
    assert (tmp_path / "again.json").read_text() == (tmp_path / "rows").read_text()


def test_a_name_unknown_to_transformers_is_refused() -> None:
    with pytest.raises(UsageError, match=r"expected the name of an architecture .*; got 'bertt'; did you mean .*bert"):
        wanted(["bertt"])
    assert wanted(["arch:gpt2", "bert", "bert"]) == ("bert", "gpt2")
    assert len(wanted([])) > 400


@pytest.mark.parametrize(
    ("name", "category", "text"),
    [
        ("sam_prompt_encoder", "no base model", "transformers has no base model for SamPromptEncoderConfig"),
        ("no_such", "cannot be built", "has no architecture"),
    ],
)
def test_what_cannot_be_loaded_has_a_category(name: str, category: str, text: str) -> None:
    row = make_row(name, None)
    assert row.failed is not None
    assert row.failed.category == category
    assert text in row.failed.reason


def test_attention_that_a_model_lacks_is_a_reason() -> None:
    row = make_row("mamba", "sdpa")
    assert row.failed is not None
    assert "has no SDPA attention" in row.failed.reason


# ---------------------------------------------------------------- children that misbehave


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
    "crash": (crash, "crash", r"ended by SIGSEGV in crash (test_atlas.py:"),
    "eat": (eat, "memory", "MemoryError"),
    "eat_torch": (eat_torch, "memory", "can't allocate memory"),
    "abort_when_fed": (abort_when_fed, "memory", "ended by SIGABRT with "),
    "leave": (leave, "crash", "SystemExit: gone"),
    "vanish": (vanish, "crash", "ended with exit code 3 and left no row in vanish"),
    "raises": (raises, "cannot be run", "RecursionError: too deep at 0x... in modeling_x.py more"),
}


def test_no_folder_of_this_machine_is_named() -> None:
    cut = "no X in <module 'a' from '/home/someone/lib/a/__in"
    assert atlas_rows.one_line(cut) == "no X in <module 'a' from '__in"
    assert atlas_rows.one_line("in /opt/lib/modeling_x.py:3") == "in modeling_x.py:3"
    assert atlas_rows.one_line("1/2 of [batch]/heads, a/b/c") == "1/2 of [batch]/heads, a/b/c"


ROOM = 2.4  # [GiB] of address space, of which the libraries that the tests have loaded take nearly one


def test_each_misbehaving_architecture_costs_one_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cold: None
) -> None:
    # Filling the memory takes as long as the machine is busy: of these none may meet the limit of time instead.
    monkeypatch.setattr(atlas_rows, "load", lambda spec, **_: BAD[spec.removeprefix("arch:")][0]())
    asked = Asked(tuple(BAD), workers=4, limits=Limits(seconds=300, memory=ROOM))
    with Store(tmp_path / "store") as store:
        run(asked, store)
        rows, total = rows_of(asked, store)
    assert (len(rows), total) == (len(BAD), len(BAD))
    for row in rows:
        _, category, text = BAD[row.name]
        if row.name == "vanish":
            text = text.removesuffix(" in vanish")
        assert row.failed is not None
        assert (row.name, row.failed.category) == (row.name, category)
        assert text in row.failed.reason
        assert "\n" not in row.failed.reason
        assert row.failed.limit == {"memory": ROOM}.get(category)
        assert row.seconds > 0


def test_an_architecture_that_hangs_costs_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cold: None) -> None:
    monkeypatch.setattr(atlas_rows, "load", lambda spec, **_: hang())
    asked = Asked(("hang",), limits=Limits(seconds=2, memory=1.6))
    with Store(tmp_path / "store") as store:
        run(asked, store)
        (row,), _ = rows_of(asked, store)
    assert row.failed is not None
    assert (row.failed.category, row.failed.limit) == ("timeout", 2)
    assert "not done after 2 s" in row.failed.reason


def test_what_a_child_starts_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cold: None) -> None:
    def spawn(name: str, attention: str | None) -> NoReturn:
        pid = os.fork()
        if pid:
            (tmp_path / "pid").write_text(str(pid))
        hang()

    monkeypatch.setattr(atlas_rows, "make_row", spawn)
    with Store(tmp_path / "store") as store:
        run(Asked(("a",), limits=Limits(seconds=2)), store)
    assert ended(int((tmp_path / "pid").read_text()))


def test_more_time_or_memory_asks_again_and_nothing_else_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cold: None
) -> None:
    made = tmp_path / "made"

    def row_of(name: str, attention: str | None) -> Row:
        with made.open("a") as stream:
            stream.write(name + "\n")
        return failure(blank(name, attention), "crash", "again")

    monkeypatch.setattr(atlas_rows, "make_row", row_of)
    for limits, more in ((Limits(5, 2), []), (Limits(9, 2), ["slow"]), (Limits(9, 3), ["slow", "fat"])):
        made.unlink(missing_ok=True)
        (tmp_path / "store").unlink(missing_ok=True)
        with Store(tmp_path / "store") as store:
            store.append(failure(blank("slow", None), "timeout", "5 s", limit=5))
            store.append(failure(blank("fat", None), "memory", "2 GiB", limit=2))
            store.append(failure(blank("bad", None), "crash", "SIGSEGV"))
            run(Asked(("slow", "fat", "bad"), limits=limits), store)
        assert (made.read_text().split() if made.exists() else []) == more
        with Store(tmp_path / "store") as store:
            assert len(store.rows) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "expected --workers above 0; got 0"),
        ({"limits": Limits(seconds=-1)}, "expected --timeout above 0; got -1"),
        ({"limits": Limits(memory=0)}, "expected --memory above 0; got 0"),
    ],
)
def test_limits_are_above_zero(options: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Asked(("bert",), **options)


# ---------------------------------------------------------------- killed and started again

SCRIPT = """
import os, sys, time
from orderproof.auditing import atlas, atlas_rows
from orderproof.cli import main

def make(name, attention):
    with open("begun", "a") as stream:
        stream.write(f"{name} {os.getpid()}\\n")
    time.sleep(0.25)
    return atlas_rows.blank(name, attention)

atlas.warm_up = lambda: None
atlas.wanted = lambda names: tuple(names)
atlas_rows.make_row = make
names = [f"m{k:02}" for k in range(12)]
sys.argv = ["orderproof", "atlas", *names, "--store", "store", "--workers", "3", "--markdown", "page"]
main()
"""


def started(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def wait_for_rows(path: Path, count: int) -> None:
    for _ in range(1200):
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} has no {count} rows")


def begun(folder: Path) -> list[tuple[str, int]]:
    return [(a, int(b)) for a, b in (line.split() for line in (folder / "begun").read_text().splitlines())]


def test_killed_and_started_again_nothing_is_lost_or_repeated(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for rows in (2, 6):
        process = started(tmp_path)
        wait_for_rows(store, rows)
        process.kill()
        process.communicate()
        assert all(ended(pid) for _, pid in begun(tmp_path))
        finished = rows_in(store)
        done_before = Counter(name for name, _ in begun(tmp_path))
        if rows == 6:  # torn in the middle of a row as well
            with store.open("ab") as stream:
                stream.write(b'{"atlas":1,"name":"m')
    process = started(tmp_path)
    _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")
    assert sorted(rows_in(store)) == [f"m{k:02}" for k in range(12)]
    assert rows_in(store)[: len(finished)] == finished
    done = Counter(name for name, _ in begun(tmp_path))
    assert all(done[name] == done_before[name] for name in finished), "a finished row was made again"
    assert sum(done.values()) <= 12 + 2 * 3  # what was being made when it was killed, and nothing more
    assert "finished: all of 12 architectures" in (tmp_path / "page").read_text()


def test_interrupted_it_stops_its_children_and_writes_what_it_has(tmp_path: Path) -> None:
    process = started(tmp_path)
    wait_for_rows(tmp_path / "store", 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert all(ended(pid) for _, pid in begun(tmp_path))
    finished = len(rows_in(tmp_path / "store"))
    assert 2 <= finished < 12
    assert f"{finished} of 12 architectures finished" in out
    assert f"finished: **{finished}, the others are not yet done** of 12" in (tmp_path / "page").read_text()


# ---------------------------------------------------------------- the store


def kept(path: Path, *names: str) -> bytes:
    with Store(path) as store:
        for name in names:
            store.append(blank(name, None))
    return path.read_bytes()


def test_a_torn_last_line_is_dropped_wherever_it_is_torn(tmp_path: Path) -> None:
    content = kept(tmp_path / "store", "first", "second")
    end = content.index(b"\n") + 1
    for cut in range(end, len(content)):
        (tmp_path / "store").write_bytes(content[:cut])
        with Store(tmp_path / "store") as store:
            assert [row.name for row in store.rows.values()] == ["first"]
            store.append(blank("third", None))
        assert rows_in(tmp_path / "store") == ["first", "third"]


@pytest.mark.parametrize("text", ["# a page\n", "{}\n", '{"rows": []}\n', "not a store", '{"atlas":2}\n', "[1]\n"])
def test_a_file_that_is_no_store_is_refused_and_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.md"
    path.write_text(text)
    with pytest.raises(UsageError, match="is no store of the atlas: line 1 is not one of its rows"):
        Store(path)
    assert path.read_text() == text


def test_rows_of_another_format_or_version_are_kept_and_not_used(tmp_path: Path) -> None:
    row = blank("bert", None).model_copy(update={"transformers": "4.0"})
    (tmp_path / "store").write_text('{"atlas":99,"other":true}\n' + row.to_line() + "\n")
    with Store(tmp_path / "store") as store:
        assert rows_of(Asked(("bert",)), store) == ((), 1)
    assert (tmp_path / "store").read_text().startswith('{"atlas":99,')


def test_two_runs_cannot_share_a_store(tmp_path: Path) -> None:
    with Store(tmp_path / "store"), pytest.raises(UsageError, match="in use by another run"):
        Store(tmp_path / "store")
    Store(tmp_path / "store").close()
    with pytest.raises(UsageError, match="cannot open the store .*: No such file"):
        Store(tmp_path / "absent" / "store")


def test_a_disk_that_is_full_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(28, "No space left on device")

    with Store(tmp_path / "store") as store:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(UsageError, match="cannot write to the store .*: No space left on device"):
            store.append(blank("bert", None))
        assert store.rows == {}


# ---------------------------------------------------------------- the page


def law(code: str, name: str, verdict: str, **more: object) -> LawRow:
    given: dict = {"expected": "fails", "met": verdict == "refuted", "output": "last_hidden_state", **more}
    return LawRow(code=code, law=name, verdict=verdict, **given)  # type: ignore[arg-type]


def sample_rows() -> list[Row]:
    entries = (
        Entry(kind="constant", operator="aten.mul.Tensor", source="modeling_a.py:3", origin="model.rope.inv_freq"),
        Entry(kind="constant", operator="aten.add.Tensor", source="modeling_a.py:9", origin="model.rope.inv_freq"),
        Entry(kind="operator", operator="aten.conv1d.default", source="modeling_a.py:7"),
    )
    stuck = {"operator": "aten.sort.default", "met": False, "expected": "holds"}
    held = ("for tensors of 7 tokens",)
    why = "aten.sort.default (x, y): token 3 sees 12; no witness was found"
    found = {
        "a": (
            law("OP101", "order_blind", "refuted", entries_complete=True),
            law("OP201", "causal", "undecided", cause="token 3 sees 12", reason=why, **stuck),
        ),
        "b": (
            law("OP101", "order_blind", "proved", vacuous=True, reason="vacuous: no | `token`", assumptions=held),
            law("OP201", "causal", "undecided", cause="token 4 sees 12", reason="aten.sort.default: ...", **stuck),
        ),
    }
    rows = [blank(n, None).model_copy(update={"kind": "causal_lm", "laws": laws}) for n, laws in found.items()]
    rows[0] = rows[0].model_copy(update={"entries": entries, "seconds": 1.25})
    return [
        *rows,
        failure(blank("c", None), "crash", "ended by SIGSEGV"),
        failure(blank("d", None), "no base model", "arch:d: none"),
        failure(blank("f", None), "memory", "arch:f: can't allocate; wrap it", limit=2.5),
        blank("e", None).model_copy(update={"same_as": "a"}),
    ]


def test_the_page_counts_groups_and_lists() -> None:
    rows = sample_rows()
    made = page(rows, asked=7, date="2026-01-02", machine="x86_64, 2 cores")
    assert "date: 2026-01-02" in made
    assert "finished: **6, the others are not yet done** of 7 architectures" in made
    assert "of these 2 have verdicts, 1 are another one by another name, 3 have none" in made
    assert "| OP101 order_blind | causal_lm | fail | 2 | 1 | 1 | 0 |" in made
    assert "| OP201 causal | causal_lm | hold | 2 | 0 | 0 | 2 |" in made
    assert "| 2 | OP201 causal | `aten.sort.default` | `token 3 sees 12` | a, b |" in made
    assert "| b | causal_lm | OP101 order_blind | proved, should fail | `vacuous: no \\| 'token'` |  |" in made
    assert "b (OP101 order_blind)" in made
    assert "`rope.inv_freq: mul, add, modeling_a.py:3 and 1 other line`" in made
    assert "`operator: conv1d, modeling_a.py:7`" in made
    assert "| c | - | `ended by SIGSEGV` |" in made
    assert "| f | - | `can't allocate (limit 2.5 GiB)` |" in made
    assert "| e | a |" in made
    assert "| 1 | OP101 order_blind | for tensors of N tokens |" in made
    assert "Faults of orderproof" not in made
    assert [(n, len(who)) for _, n, _, who in undecided(rows)] == [("aten.sort.default", 2)]
    assert "failures: 1 no base model, 1 memory, 1 crash" in summary(rows, asked=7)


def test_a_contradicted_proof_stands_out() -> None:
    wrong = law("OP201", "causal", "undecided", reason="a proof was found, but two runs differ by 0.1: this is an error"
                " in the prover; please report it")  # fmt: skip
    rows = [blank("a", None).model_copy(update={"kind": "encoder", "laws": (wrong,)})]
    assert "## Faults of orderproof" in page(rows, asked=1, date="-", machine="-")


def test_the_same_rows_give_the_same_page_whatever_their_order(tmp_path: Path) -> None:
    rows = sample_rows()
    asked = Asked(tuple(row.name for row in rows))
    pages = []
    for order in (rows, rows[::-1]):
        (tmp_path / "store").unlink(missing_ok=True)
        with Store(tmp_path / "store") as store:
            for row in order:
                store.append(row)
            found, total = rows_of(asked, store)
        with Store(tmp_path / "store") as store:
            assert rows_of(asked, store) == (found, total)
        pages.append(
            (page(found, asked=total, date="-", machine="-"), to_json(found, asked=total, date="-", machine="-"))
        )
    assert pages[0] == pages[1]
    assert [Row.model_validate(each) for each in json.loads(pages[0][1])["rows"]] == sorted(rows, key=lambda r: r.name)


def test_an_empty_atlas_has_a_page(tmp_path: Path) -> None:
    assert "finished: **0, the others" in page([], asked=3, date="-", machine="-")
    assert json.loads(to_json([], asked=3, date="-", machine="-"))["rows"] == []


def test_nothing_in_a_reason_can_act() -> None:
    assert code("a|b`c](http://x)") == "`a\\|b'c] (http://x)`"
    assert code("") == ""
    assert "\x1b" not in one_line("red \x1b[31m text")
    assert len(one_line("x" * 9999)) == 400
    assert (
        places([Entry(kind="constant", operator="aten.mul.Tensor", origin=f"o{k}") for k in range(5)])[-1]
        == "and 2 more"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--json", "-", "--markdown", "-"], "expected one file on standard output (-); got 2"),
        (["--date", "yesterday"], "expected --date YYYY-MM-DD; got 'yesterday'"),
        (["bertt"], "expected the name of an architecture of transformers; got 'bertt'"),
        (["bert", "--workers", "0"], "expected --workers above 0; got 0"),
    ],
)
def test_wrong_usage_is_one_line_and_leaves_no_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str],
    message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["orderproof", "atlas", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line
    assert list(tmp_path.iterdir()) == []
