"""The axes of a module's outputs: which one runs over the rows of the batch, and which ones over tokens.

They are stated by the user, or derived from calls: an axis runs over tokens if it has one entry more for each further
token and none more for a further row. An axis that merely has as many entries as there are tokens runs over nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from orderproof.errors import UsageError
from orderproof.registry import did_you_mean
from orderproof.subject_spec import StatedAxes

ROWS, TOKENS = "batch", "token"  # the names of axes that have a meaning; every other name is the user's own
Shape = tuple[int, ...]
FROM_GRAPH = "from the graph"
FROM_CALLS = "from calls with other numbers of tokens and rows"
STATED = "as stated"
_TOKEN_NAME = re.compile(r"(?:(?P<before>\d+)\+)?token(?:\+(?P<after>\d+))?")
_BY_HAND = "state its axes with --output-axes (in Python outputs=)"


@dataclass(frozen=True)
class TokenRun:
    """An axis that runs over tokens, with `extra` further entries.

    Attributes:
        axis: The axis.
        extra: The number of entries that are no tokens.
        before: How many of them precede the tokens; None if that is not known.

    """

    axis: int
    extra: int = 0
    before: int | None = None

    @property
    def name(self) -> str:
        """`token`, `1+token` or `token+1`; `token and 1 more` if the side is not known."""
        if not self.extra:
            return TOKENS
        if self.before is None:
            return f"{TOKENS} and {self.extra} more"
        after = self.extra - self.before
        return f"{f'{self.before}+' if self.before else ''}{TOKENS}{f'+{after}' if after else ''}"


@dataclass(frozen=True)
class OutputAxes:
    """The axes of one output.

    Attributes:
        shape: Its shape in the call from which they are known.
        row: The axis that runs over the rows of the batch; None if there is none, or if it is not known.
        tokens: The axes that run over tokens.
        source: How they are known.
        unknown_rows: Why it is not known which axis runs over rows; empty if it is.
        pairs_rows: Two axes run over rows, as of scores of each row with each.
        unknown_tokens: Why it is not known which axes run over tokens; empty if it is.
        fixed: Tokens are unknown because the module takes one number of tokens only.
        ends: The number of tokens from which on further ones get no entries; None if all do.

    """

    shape: Shape
    row: int | None = None
    tokens: tuple[TokenRun, ...] = ()
    source: str = FROM_CALLS
    unknown_rows: str = ""
    pairs_rows: bool = False
    unknown_tokens: str = ""
    fixed: bool = False
    ends: int | None = None

    @property
    def text(self) -> str:
        """The axes in one line: `[batch, token, 16], from calls with other numbers of tokens and rows`."""
        names = [str(size) for size in self.shape]
        for token in self.tokens:
            names[token.axis] = token.name
        if self.row is not None:
            names[self.row] = ROWS
        unknown = dict.fromkeys(text for text in (self.unknown_rows, self.unknown_tokens) if text)
        return f"[{', '.join(names)}], {'; '.join(unknown) or self.source}"

    def rows_first(self) -> OutputAxes:
        """The axes after the row axis was moved to the front."""
        if not self.row:
            return self
        order = [self.row, *(d for d in range(len(self.shape)) if d != self.row)]
        tokens = tuple(replace(token, axis=order.index(token.axis)) for token in self.tokens)
        return replace(self, shape=tuple(self.shape[d] for d in order), row=0, tokens=tokens)


@dataclass(frozen=True)
class CalledShapes:
    """The shapes of one output in calls of several sizes.

    Attributes:
        shape: With `tokens` tokens and `rows` rows.
        more_tokens: With more tokens each time; empty if the module could not be called so.
        more_rows: With one row more; None if it could not.
        tokens: The number of tokens.
        rows: The number of rows; None if the inputs have no axis of rows.
        no_tokens: Why it could not be called with more tokens.
        no_rows: Why it could not be called with more rows.
        step: The number of tokens that each call of `more_tokens` has more than the one before it.

    """

    shape: Shape
    more_tokens: tuple[Shape, ...]
    more_rows: Shape | None
    tokens: int
    rows: int | None
    no_tokens: str = ""
    no_rows: str = ""
    step: int = 1

    @property
    def merged_axis(self) -> int | None:
        """The axis that runs over the rows and over the same number of entries of each; None if there is none."""
        if not self.rows or self.rows < 2 or self.more_rows is None or len(self.more_rows) != len(self.shape):
            return None
        grown = [axis for axis in range(len(self.shape)) if self._row_step(axis)]
        each = self._row_step(grown[0]) if len(grown) == 1 else 0
        return grown[0] if each > 1 and self.shape[grown[0]] == self.rows * each else None

    def axes(self, name: str) -> OutputAxes:
        """The axes of the output with this name."""
        found = OutputAxes(self.shape)
        ranks = {len(shape) for shape in (self.shape, *self.more_tokens, *([self.more_rows] if self.more_rows else []))}
        if len(ranks) > 1:
            text = f"output {name!r} has another number of axes at other sizes; {_BY_HAND}"
            return replace(found, unknown_rows=text, unknown_tokens=text)
        return self._with_rows(self._with_tokens(found, name), name)

    def _with_tokens(self, found: OutputAxes, name: str) -> OutputAxes:
        if not self.more_tokens:
            text = f"which axes of output {name!r} run over tokens is not known: {self.no_tokens}; {_BY_HAND}"
            return replace(found, unknown_tokens=text, fixed=True)
        tokens = []
        for axis in range(len(self.shape)):
            steps, by_row = self._token_steps(axis), self._row_step(axis)
            if steps == {0}:
                continue
            if self.step == 1 and not by_row and (end := self._end(axis)):
                tokens.append(TokenRun(axis, self.shape[axis] - self.tokens))
                found = replace(found, ends=end)
                continue
            if steps != {1} or by_row:
                text = f"axis {axis} of output {name!r} has {self._sizes(axis)}; {_BY_HAND}"
                return replace(found, unknown_tokens=text)
            tokens.append(TokenRun(axis, self.shape[axis] - self.tokens))
        return replace(found, tokens=tuple(tokens))

    def _with_rows(self, found: OutputAxes, name: str) -> OutputAxes:
        if self.rows is None:
            return found
        if self.more_rows is None:
            text = f"which axis of output {name!r} runs over rows is not known: {self.no_rows}; {_BY_HAND}"
            return replace(found, unknown_rows=text)
        grown = [axis for axis in range(len(self.shape)) if self._row_step(axis)]
        if not grown:
            return found
        axis = grown[0]
        if (
            len(grown) > 1
            or self._row_step(axis) != 1
            or self._token_steps(axis) - {0}
            or self.shape[axis] != self.rows
        ):
            text = f"axis {axis} of output {name!r} has {self._sizes(axis)}"
            if len(grown) > 1:
                text = f"axes {grown[0]} and {grown[1]} of output {name!r} grow with the rows"
            return replace(found, unknown_rows=f"{text}; {_BY_HAND}", pairs_rows=len(grown) > 1)
        return replace(found, row=axis)

    def _token_steps(self, axis: int) -> set[Fraction]:
        """The numbers of entries more for each further token."""
        sizes = [shape[axis] for shape in (self.shape, *self.more_tokens)]
        return {Fraction(b - a, self.step) for a, b in pairwise(sizes)}

    def _end(self, axis: int) -> int | None:
        """The number of tokens at which an axis that has an entry for each token stops to grow; None if it does not."""
        sizes = [shape[axis] for shape in (self.shape, *self.more_tokens)]
        grown = next((k for k, (a, b) in enumerate(pairwise(sizes)) if a == b), 0)
        follows = all(b - a == (k < grown) for k, (a, b) in enumerate(pairwise(sizes)))
        return self.tokens + grown if grown and follows else None

    def _row_step(self, axis: int) -> int:
        return 0 if self.more_rows is None else self.more_rows[axis] - self.shape[axis]

    def _sizes(self, axis: int) -> str:
        rows = self.rows or 1
        sizes = [f"{self.shape[axis]} entries with {rows} rows of {self.tokens} tokens"]
        if self.more_tokens and self.more_tokens[0][axis] != self.shape[axis]:
            sizes.append(f"{self.more_tokens[0][axis]} with {self.tokens + self.step} tokens")
        if self._row_step(axis):
            assert self.more_rows is not None
            sizes.append(f"{self.more_rows[axis]} with {rows + 1} rows")
        return ", ".join(sizes)


def input_text(shape: Shape, token: int | None, row: int | None, *, stated: bool) -> str:
    """The axes of an input in one line."""
    names = [str(size) for size in shape]
    if row is not None:
        names[row] = ROWS
    if token is None:
        return f"[{', '.join(names)}], the same in both runs"
    names[token] = TOKENS
    return f"[{', '.join(names)}], {STATED if stated else 'by its form'}"


def unknown_axes(name: str, shape: Shape, reason: str) -> OutputAxes:
    """Axes of which nothing is known."""
    text = f"which axes of output {name!r} run over rows and tokens is not known: {reason}; {_BY_HAND}"
    return OutputAxes(shape, unknown_rows=text, unknown_tokens=text)


def stated_axes(
    stated: StatedAxes, shapes: Mapping[str, Shape], tokens: int, rows: int | None
) -> dict[str, OutputAxes]:
    """The axes that a user states, by output, for the numbers of tokens and rows of the call that gave the shapes.

    Raises `UsageError` if they do not fit the outputs.
    """
    if isinstance(stated, str):
        stated = tuple(axis.strip() for axis in stated.split(","))
    by_name: dict[str, Sequence[str] | str] = dict(stated) if isinstance(stated, Mapping) else {"": tuple(stated)}
    if "" in by_name:
        if len(shapes) != 1:
            raise UsageError(f"expected the axes of an output by its name, one of {', '.join(shapes)}")
        by_name[next(iter(shapes))] = by_name.pop("")
    found = {}
    for name, axes in by_name.items():
        if name not in shapes:
            raise UsageError(
                f"expected an output, one of {', '.join(shapes)}; got {name!r}{did_you_mean(name, shapes)}"
            )
        names = [axis.strip() for axis in axes.split(",")] if isinstance(axes, str) else list(axes)
        found[name] = axes_of = _stated_axes_of(name, names, shapes[name], tokens)
        if axes_of.row is not None and shapes[name][axes_of.row] != rows:
            raise UsageError(
                f"axis {axes_of.row} of output {name!r} has {shapes[name][axes_of.row]} entries with {rows} rows, "
                f"which is not {ROWS!r}"
            )
    return found


def _stated_axes_of(name: str, axes: Sequence[str], shape: Shape, tokens: int) -> OutputAxes:
    if len(axes) != len(shape):
        raise UsageError(f"expected {len(shape)} axes for output {name!r} of shape {shape}; got {', '.join(axes)}")
    rows = [place for place, axis in enumerate(axes) if axis == ROWS]
    if len(rows) > 1:
        raise UsageError(f"expected one axis {ROWS!r} of output {name!r}; got {', '.join(axes)}")
    runs = []
    for place, axis in enumerate(axes):
        if match := _TOKEN_NAME.fullmatch(axis):
            before, after = int(match["before"] or 0), int(match["after"] or 0)
            if shape[place] != before + tokens + after:
                raise UsageError(
                    f"axis {place} of output {name!r} has {shape[place]} entries with {tokens} tokens, "
                    f"which is not {axis!r}"
                )
            runs.append(TokenRun(place, before + after, before))
    return OutputAxes(shape, rows[0] if rows else None, tuple(runs), STATED)
