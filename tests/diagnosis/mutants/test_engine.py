"""The patterns of mutants: what they match, what they refuse, and how the change is made."""

from __future__ import annotations

import ast
import types

import pytest

from tests.diagnosis.mutants import engine
from tests.diagnosis.mutants.engine import Mutant, StaleMutantError, change, mutated, mutated_tree

SOURCE = '''
import numpy as np


def first(one, other, flag):
    """The larger one."""
    if flag and other > 1:
        one = other
    return np.maximum(one, other)


class Box:
    def second(self, one, level):
        one.level = level
        one.level = one.level + 1
        return one
'''


@pytest.fixture(autouse=True)
def _module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "tree_of", lambda _: ast.parse(SOURCE))


def changed(before: str, after: str) -> str:
    """The function that the mutant changes, as source."""
    name, tree = mutated_tree(Mutant("tried", before, after, module="made up"))
    function = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name.split(".")[-1])
    return ast.unparse(function)


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("$a and $b > 1", "$a", "if flag:"),
        ("$a and $b > 1", "$b > 1", "if other > 1:"),
        ("np.maximum($a, $b)", "np.minimum($b, $a)", "return np.minimum(other, one)"),
        ("np.maximum($_a, $_b)", "$_b", "return other"),
        ("return $f.maximum($a, $b)", "return $f.minimum($a, $b)", "return np.minimum(one, other)"),
        ("$x.$level = $y", "$x.$level = -$y", "one.level = -level"),
        ("$x.$level = $_y\n$x.$level = $_z", "$x.$level = $_z", "one.level = one.level + 1\n"),
        ("$x.$level = $x.$level + 1", "pass", "pass"),
        ("$_target.$level = $_target.$level + 1", "$_target.$level = 1", "one.level = 1"),
    ],
)
def test_replacement(before: str, after: str, line: str) -> None:
    assert line in changed(before, after)


@pytest.mark.parametrize(
    ("before", "after", "error"),
    [
        ("$a or $b", "$a", "nothing in the module matches"),
        ("np.maximum($a, $a)", "$a", "nothing in the module matches"),  # one placeholder, two identifiers
        ("$x = $x", "pass", "nothing in the module matches"),
        ("$x.$level = $_value", "pass", r"2 places match, in Box\.second"),
        ("$a and $b > 1", "$b > 1 and $c", "the variable .c of the replacement"),
        ("np.maximum($a, $b)", "np.maximum($a, $b)", "leaves the code as it is"),
    ],
)
def test_stale_mutant_is_refused(before: str, after: str, error: str) -> None:
    with pytest.raises(StaleMutantError, match=error):
        changed(before, after)


def test_two_placeholders_are_two_identifiers() -> None:
    with pytest.raises(StaleMutantError, match="nothing in the module matches"):
        changed("$x.$level = $x.$other + 1", "pass")


def test_changed_code_runs_until_the_block_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("made_up")
    module.__file__ = "made_up.py"
    exec(compile(SOURCE, "made_up.py", "exec"), vars(module))
    monkeypatch.setattr(engine, "module_of", lambda _: module)
    monkeypatch.setattr(engine.inspect, "getfile", lambda _: "made_up.py")
    with mutated(change(Mutant("tried", "np.maximum($a, $b)", "np.minimum($a, $b)", module="made up"))):
        assert module.first(1, 0, False) == 0
    assert module.first(1, 0, False) == 1
