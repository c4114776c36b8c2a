"""What a measured law is: two ways of working out the same numbers, and a control that must move them.

A law gives trials. Each is one comparison of two calls, or series of calls, of the model that should give the same;
whether a difference is rounding is told by running the trial again in float64. A trial that finds nothing says
nothing unless something that must matter is seen to matter: the control.

A trial may also be of two calls that must differ. That they differ is then seen, and needs no control; that they
do not says nothing against a model that answers the same whatever is changed, and so the control is asked there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor

from orderproof.driver import Driver
from orderproof.laws.measured.bench import Bench
from orderproof.record import Expectation

Sides = tuple[Tensor, Tensor]  # what is expected, and what came


class Noted(NamedTuple):
    """Two sides, and what was seen in words: which positions are one, how a call was refused."""

    expected: Tensor
    found: Tensor
    note: str


@dataclass(frozen=True)
class Trial:
    """One comparison, by name; it can be run on a bench of either precision."""

    what: str
    run: Callable[[Bench], Sides | Noted]
    advice: str = ""  # what to do where it fails, if not what the law says
    advisory: bool = False  # whether a difference is told and not judged
    must_differ: bool = False  # the two calls must not give the same


@dataclass(frozen=True)
class MeasuredLaw(ABC):
    """One law: what it says, what it needs of a driver, when it should hold and what to do where it does not."""

    code: str
    name: str
    statement: str
    expectation: Mapping[str, Expectation]  # by kind of subject; a kind that is missing expects anything
    fix: str
    honest: Callable[[], Driver]  # a small model that obeys it
    faulty: Callable[[], Driver]  # the same with a planted fault
    diff: str = ""  # the same as lines of code, - before and + after, where it is mechanical
    needs: frozenset[str] = field(default=frozenset())  # of what a driver takes

    exact = False  # what differs at all, beyond the last bit of float64, breaks it
    optional = False  # whether a driver that supports none of its trials is not asked, rather than left undecided
    ladder = True  # whether rounding may differ between the sides; where not, float64 has nothing to tell

    def expected(self, kind: str) -> Expectation:
        """Whether the law should hold for this kind of subject."""
        return self.expectation.get(kind, "any")

    def not_asked(self, driver: Driver) -> str | None:
        """Why the law asks nothing of a model; None where it does."""
        if "positions" in self.needs and not driver.placed:
            return "it has no encoding of positions"
        missing = sorted(self.needs - set(driver.takes))
        words = {"cache": "cache", "positions": "position ids", "mask": "attention mask"}
        return f"it takes no {' and no '.join(words[m] for m in missing)}" if missing else None

    @abstractmethod
    def trials(self, bench: Bench) -> Iterator[Trial]:
        """The comparisons, the cheapest first."""

    @abstractmethod
    def control(self, bench: Bench) -> Sides:
        """Two outputs that must differ: something was changed that must matter to what the trials compare."""
