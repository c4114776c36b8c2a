"""The record of a study from its runs: which runs form a cell, its label, and its numbers."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from orderproof.errors import UsageError
from orderproof.lab import literature_results as published_module
from orderproof.lab.literature_results import RESULTS_BY_QUESTION, literature_results
from orderproof.lab.question import Batch, Measure, Question
from orderproof.lab.registry import questions
from orderproof.lab.statistics import BinomialAccuracy
from orderproof.lab.summary import flatten_config, group_cells, summarise
from orderproof.records.study import Study


class StubQuestion(Question):
    """A question with metadata only."""

    name: ClassVar[str] = "stub"
    statement: ClassVar[str] = "Is it so?"
    source: ClassVar[str] = "ours"
    train_lengths: ClassVar[tuple[int, int]] = (2, 9)
    test_lengths: ClassVar[tuple[int, ...]] = (4, 8, 16)

    vocabulary: ClassVar[int] = 2  # type: ignore[assignment]

    def tokens(self, length: int) -> int:
        return length

    def draw(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        raise NotImplementedError


class InNats(StubQuestion):
    measure: ClassVar[Measure] = "nats"


def run(
    seed: int = 0, *, scores: tuple[float, ...] = (0.9, 0.8, 0.6), ident: str = "", **config: Any
) -> dict[str, Any]:
    question = {"name": "stub", **config.pop("question", {})}
    settings = {"encoding": "rotary", "causal": True, "layers": 2, "width": 32, "seed": seed, "question": question}
    settings |= {"learning_rate": 0.003}
    return {
        "id": ident or f"r{seed}",
        "config": {**settings, **config},
        "curve": [{"step": step, "loss": 1.0, "score": scores[0] * step / 20} for step in (10, 20)],
        "lengths": [
            {
                "length": n,
                "trained": n < 10,
                "score": s,
                "right": int(100 * s + 0.5) if s == s else 0,
                "scored": 100,
                "ceiling": c,
            }
            for n, s, c in zip((4, 8, 16), scores, (0.5, 0.625, 0.75), strict=True)
        ],
        "parameters": 1000,
        "seconds": 2.0 + seed,
        "tokens_per_second": 100.0 + seed,
    }


def study_of(*runs: dict[str, Any], question: type[Question] = StubQuestion, **more: Any) -> Study:
    return summarise(runs, study="a_study", question=question, **more)


def test_runs_that_differ_only_in_the_seed_form_a_cell():
    grouped = group_cells([run(s, encoding=e, ident=f"{e}{s}") for s in (1, 0) for e in ("rotary", "none")])
    assert {label: [r["id"] for r in group] for label, group in grouped.items()} == {
        "rotary": ["rotary0", "rotary1"], "none": ["none0", "none1"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "labels"),
    [
        ({}, {"encoding": "none"}, ["rotary", "none"]),
        ({}, {"causal": False}, ["causal", "bidirectional"]),
        ({"layers": 1}, {}, ["1 layer", "2 layers"]),
        ({}, {"width": 64, "encoding": "none"}, ["rotary, width 32", "none, width 64"]),
        ({}, {"question": {"nouns": 3}}, ["rotary", "nouns 3"]),
        ({"train_lengths": (1, 4)}, {"train_lengths": [1, 8]}, ["train lengths [1, 4]", "train lengths [1, 8]"]),
        ({"schedule": "cosine"}, {"schedule": "flat"}, ["schedule cosine", "schedule flat"]),
        (
            {},
            {"encoding": "none", "causal": False, "layers": 1},
            ["rotary, causal, 2 layers", "none, bidirectional, 1 layer"],
        ),
    ],
)
def test_a_label_has_the_varied_settings_only(first, second, labels):
    assert list(group_cells([run(**first), run(**second)])) == labels


def test_a_study_of_one_cell_is_labelled_by_its_encoding():
    assert list(group_cells([run(0), run(1)])) == ["rotary"]


def test_other_varied_settings_are_kept_with_their_keys():
    found = study_of(run(question={"nouns": 3}), run(question={"nouns": 4}, width=64))
    assert [cell.grid_values for cell in found.cells] == [
        {"width": 32, "question.nouns": 3}, {"width": 64, "question.nouns": 4},
    ]  # fmt: skip
    assert {(cell.encoding, cell.causal, cell.layers) for cell in found.cells} == {("rotary", True, 2)}


def test_a_configuration_is_flattened_with_dots_and_tuples_are_lists():
    assert flatten_config({"a": {"b": {"c": 1}}, "d": (1, 2)}) == {"a.b.c": 1, "d": [1, 2]}


def test_every_number_of_a_cell():
    runs = [run(seed, scores=(s, s - 0.1, s - 0.3)) for seed, s in enumerate((0.7, 0.9, 0.8, 1.0, 0.4))]
    (cell,) = study_of(*runs).cells
    assert (cell.seeds, cell.seconds, cell.tokens_per_second) == (5, 20.0, 102.0)
    assert [(p.length, p.in_training_range, p.ceiling, p.scored_count) for p in cell.lengths] == [
        (4, True, 0.5, 500), (8, True, 0.625, 500), (16, False, 0.75, 500),
    ]  # fmt: skip
    # the best and the worst of five are dropped
    assert [p.iqm for p in cell.lengths] == pytest.approx([0.8, 0.7, 0.5])
    assert [p.correct_count for p in cell.lengths] == [380, 330, 230]
    assert all(p.low < p.iqm < p.high for p in cell.lengths)
    width = 4.302653 * np.std([0.7, 0.7, 0.8, 0.9, 0.9], ddof=1) / (0.6 * 5**0.5)  # Student's quantile, 2 degrees
    assert (cell.lengths[0].low, cell.lengths[2].low) == (pytest.approx(0.8 - width), pytest.approx(0.5 - width))
    assert all(p.low >= 0 and p.high <= 1 for p in cell.lengths)
    # 70, 80, 90, 100 of 100 are above 1/2; 80 and 90 above 5/8, 70 is not beyond chance; none above 3/4
    assert [p.seeds_above_ceiling for p in cell.lengths] == [4, 2, 0]
    assert [(p.step, p.iqm) for p in cell.curve] == [(10, pytest.approx(0.4)), (20, pytest.approx(0.8))]
    assert cell.trained_lengths_score is not None
    assert cell.longer_lengths_score is not None
    assert (cell.trained_lengths_score.iqm, cell.trained_lengths_score.ceiling) == (
        pytest.approx(0.75),
        pytest.approx(0.5625),
    )
    assert (cell.longer_lengths_score.iqm, cell.longer_lengths_score.ceiling) == (pytest.approx(0.5), 0.75)


def test_a_run_is_averaged_over_lengths_before_runs_are():
    """Two good and two bad at each length, but no run is good or bad at both: then there is no spread over runs."""
    scores = [(1.0, 0.0, 0.5), (0.0, 1.0, 0.5), (1.0, 0.0, 0.5), (0.0, 1.0, 0.5)]
    (cell,) = study_of(*(run(seed, scores=s) for seed, s in enumerate(scores))).cells
    assert cell.trained_lengths_score is not None
    assert (cell.trained_lengths_score.low, cell.trained_lengths_score.high) == (0.5, 0.5)
    assert cell.lengths[0].low < cell.lengths[0].high


def test_one_seed_has_no_interval():
    uncounted = run()
    for point in uncounted["lengths"]:
        point["right"] = None
    (cell,) = study_of(uncounted, question=InNats).cells
    assert all(p.low == p.iqm == p.high for p in (*cell.lengths, *cell.curve))
    (cell,) = study_of(run()).cells  # a share of 100 rows has that of the rows
    assert all(p.low < p.iqm < p.high for p in cell.lengths)


def test_an_unknown_ceiling_and_scores_that_are_not_counted_stay_unknown():
    unknown = run()
    for point in unknown["lengths"]:
        point.update(ceiling=None, right=None)
    (cell,) = study_of(unknown).cells
    assert {(p.ceiling, p.correct_count, p.seeds_above_ceiling) for p in cell.lengths} == {(None, None, None)}
    assert cell.trained_lengths_score is not None
    assert cell.trained_lengths_score.ceiling is None


def test_cells_are_compared_over_the_lengths_beyond_training_and_lower_nats_are_better():
    runs = [run(s, scores=(0.9, 0.9, 0.2)) for s in range(3)]
    runs += [run(s, scores=(0.1, 0.1, 0.7), encoding="none") for s in range(3)]
    assert study_of(*runs).differences == ()  # without positions the trained lengths are not solved
    (lower,) = study_of(*runs, question=InNats).differences
    assert (lower.first, lower.second, lower.lengths) == ("rotary", "none", (16,))
    assert (lower.difference, lower.better, lower.worse) == (pytest.approx(0.5), 3, 0)


def test_cells_are_compared_within_a_seed():
    """The seeds differ by 0.3, the cells by 0.02 in every seed: paired, the difference is certain."""
    runs = [run(s, scores=(1.0, 1.0, 0.3 * s), ident=f"a{s}") for s in range(3)]
    runs += [run(s, scores=(1.0, 1.0, 0.3 * s + 0.02), encoding="none", ident=f"b{s}") for s in range(3)]
    (found,) = study_of(*runs).differences
    assert found.difference == pytest.approx(-0.02)
    assert found.high < 0
    assert (found.better, found.ties, found.worse) == (0, 0, 3)


def test_a_learning_rate_that_a_sweep_chose_is_no_setting_of_a_cell():
    swept = [run(learning_rate=0.01), run(encoding="none", learning_rate=0.003)]
    assert list(group_cells(swept)) == ["rotary", "none"]
    assert [cell.learning_rate for cell in study_of(*swept).cells] == [0.01, 0.003]
    assert list(group_cells([run(learning_rate=0.01), run(learning_rate=0.003)])) == [
        "learning rate 0.01", "learning rate 0.003",
    ]  # fmt: skip


def test_arguments_of_an_encoding_are_in_the_label():
    runs = [run(encoding="fire", encoding_arguments={"threshold": 64, "learned_threshold": True}), run()]
    assert list(group_cells(runs)) == ["fire, threshold 64, learned threshold", "rotary"]


def test_a_run_that_stopped_early_keeps_its_last_score_on_the_curve():
    stopped = run(1)
    stopped["curve"] = stopped["curve"][:1]
    (cell,) = study_of(run(0), stopped).cells
    assert [(p.step, p.iqm) for p in cell.curve] == [(10, pytest.approx(0.45)), (20, pytest.approx((0.9 + 0.45) / 2))]


def test_runs_that_agree_have_the_interval_of_all_their_test_rows_unless_every_row_was_tested():
    runs = [run(s, scores=(1.0, 1.0, 1.0)) for s in range(3)]
    (cell,) = study_of(*runs).cells
    assert (cell.lengths[0].low, cell.lengths[0].high) == BinomialAccuracy(right=300, scored=300).interval()
    (exact,) = study_of(*runs, exhaustive=lambda record, length: True).cells
    assert (exact.lengths[0].low, exact.lengths[0].high) == (1.0, 1.0)


def test_the_interval_of_all_rows_contains_a_mean_that_drops_the_only_seed_with_right_answers():
    runs = [run(s, scores=(1.0, 1.0, 0.2 if s == 0 else 0.0)) for s in range(10)]
    (cell,) = study_of(*runs).cells
    low, high = BinomialAccuracy(right=20, scored=1000).interval()
    assert low > 0
    assert (cell.lengths[2].low, cell.lengths[2].iqm, cell.lengths[2].high) == (0.0, 0.0, high)


def test_a_length_shorter_than_those_trained_is_not_beyond_them():
    runs = [run(scores=s, encoding=e, train_lengths=[8, 8]) for s, e in (((0, 0.5, 1), "none"), ((1, 0.5, 0), "t5"))]
    for each in runs:
        each["lengths"][0]["trained"] = False
    found = study_of(*runs)
    assert [cell.longer_lengths_score.iqm for cell in found.cells if cell.longer_lengths_score is not None] == [1, 0]
    assert [cell.solves_trained_lengths for cell in found.cells] == [False, False]


def test_where_no_length_is_beyond_training_the_trained_ones_are_compared():
    runs = [run(scores=(0.9, 0.1, 0.0)), run(scores=(0.8, 0.2, 0.0), encoding="none")]
    for each in runs:
        each["lengths"] = each["lengths"][:2]
    runs += [{**copy.deepcopy(each), "id": f"{each['id']}s"} for each in runs]
    for each in runs[2:]:
        each["config"]["seed"] = 1
    (found,) = study_of(*runs, question=InNats).differences
    assert (found.lengths, found.difference) == ((4, 8), pytest.approx(0.0))
    assert all(cell.longer_lengths_score is None for cell in study_of(*runs).cells)


def test_the_metadata_of_a_study():
    found = study_of(
        run(),
        proved={"rotary": ["causal", "causal"]},
        command="orderproof compare a_study",
        versions={"torch": "2"},
        machine={"cores": "2"},
    )
    assert (found.question, found.statement, found.measure) == ("stub", "Is it so?", "accuracy")
    assert (found.trained_lengths, found.seconds, found.cells[0].proved_laws) == ((2, 9), 2.0, ("causal",))
    assert found.command == "orderproof compare a_study"
    assert (found.versions, found.machine) == ({"torch": "2"}, {"cores": "2"})
    assert study_of(run(train_lengths=[1, 5]), run(1, train_lengths=[3, 7])).trained_lengths == (1, 7)


def test_a_study_is_read_back_from_its_json_as_it_was():
    found = study_of(run(), run(encoding="none", width=64))
    assert Study.model_validate_json(found.to_json()) == found
    assert '"schema": 3' in found.to_json()


def test_the_same_runs_in_another_order_of_seeds_give_the_same_study():
    runs = [run(seed, scores=tuple(np.random.default_rng(seed).random(3))) for seed in range(4)]
    assert study_of(*runs).cells == study_of(*reversed(runs)).cells


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], "expected at least one finished run; got none"),
        ([run(ident="a"), run(ident="b")], "expected each seed of 'rotary' once; a and b have seed 0"),
        ([run(question={"name": "other"})], "expected runs of the question stub; run r0 has other"),
        ([run(scores=(0.5, float("nan"), 0.5))], "run r0 has nan: it diverged at length 8; remove"),
        (
            [{**run(), "curve": [{"step": 5, "loss": 1.0, "score": None}]}],
            "run r0 has None: it diverged at step 5; remove",
        ),
        (
            [run(0), {**run(1), "lengths": []}],
            "to have the same lengths; r0 and r1 of 'rotary' differ",
        ),
    ],
)
def test_invalid_runs_are_refused(runs, message):
    with pytest.raises(UsageError, match=message):
        study_of(*runs)


def test_laws_for_an_unknown_cell_are_refused():
    with pytest.raises(UsageError, match="expected laws for cells named rotary; got some for none"):
        study_of(run(), proved={"none": ["causal"]})


def test_literature_results_have_a_source_and_unknown_questions_none(monkeypatch):
    assert literature_results("stub") == ()
    for name, rows in RESULTS_BY_QUESTION.items():
        assert name in questions()
        for row in rows:
            assert "arXiv:" in row.source
            assert any(c.isdigit() for c in row.text)
    monkeypatch.setitem(published_module.RESULTS_BY_QUESTION, "stub", RESULTS_BY_QUESTION["copy"])
    assert study_of(run()).published == RESULTS_BY_QUESTION["copy"]
