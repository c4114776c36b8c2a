"""The cache of an ONNX file: inputs that take keys, values or states, and the outputs that give them back.

A cache is one argument of the module, a mapping that a call returns and the next one takes. Calls decide whether it is
one, as of every module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from orderproof.models.caches.names import is_cache_name, is_state_name
from orderproof.models.onnx_file.entries import Entry, is_past, is_row_name
from orderproof.models.onnx_file.sizes import size_of

KEYS_AND_VALUES, STATES = "past_key_values", "states"  # the argument that takes it
_BEFORE_OR_AFTER = frozenset(
    ("past", "present", "previous", "prev", "next", "new", "cached", "cache", "updated", "in", "out", "input", "output")
)


@dataclass
class FileCache:
    """The cache of a file.

    Attributes:
        name: The argument that takes it.
        outputs: By each input, the output that gives it back.
        sizes: Sizes of these inputs by name, where only they have them; None: the number of rows.
        row_axis: The axis of rows of the other inputs.

    """

    name: str
    outputs: dict[str, str]
    sizes: dict[str, int | None] = field(default_factory=dict)
    row_axis: int = 0

    def empty(self, entry: Entry, rows: int) -> Tensor:
        """The value of an input without tokens: none of them, or zeros."""
        known = {name: rows if size is None else size for name, size in self.sizes.items()}
        sizes = [size_of(size, known, rows if is_row_name(size) else 1) for size in entry.sizes]
        return torch.zeros(sizes, dtype=entry.dtype)

    def tokens(self, entries: Sequence[Entry], given: Mapping[str, Tensor]) -> int:
        """The number of tokens in it."""
        for entry in entries:
            if entry.name in self.outputs:
                axis = next((k for k, size in enumerate(entry.sizes) if is_past(size)), None)
                if axis is not None:
                    return int(given[self.outputs[entry.name]].shape[axis])
        return 0


def file_cache(entries: Sequence[Entry], outputs: Sequence[str]) -> FileCache | None:
    """The cache of a file with these inputs and outputs; None if no output gives an input back."""
    by_core: dict[str, list[str]] = {}
    for name in outputs:
        by_core.setdefault(_core(name), []).append(name)
    found = {}
    for entry in entries:
        given_back = by_core.get(_core(entry.name), [])
        if may_be_cached(entry) and len(given_back) == 1:
            found[entry.name] = given_back[0]
    if len(set(found.values())) < len(found) or not found:
        return None
    has_tokens = any(is_cache_name(name) or name.startswith("past") for name in found)
    return FileCache(KEYS_AND_VALUES if has_tokens else STATES, found)


def may_be_cached(entry: Entry) -> bool:
    """True for numbers whose name, or the name of whose sizes, is that of a cache or a state."""
    name = entry.name.lower().replace(".", "_")
    named = is_state_name(name) or "cached" in name or any(map(is_past, entry.sizes))
    return named and entry.dtype.is_floating_point


def find_sizes(
    cache: FileCache, entries: Sequence[Entry], examples: Mapping[str, Tensor], call: Callable[[], Mapping[str, Tensor]]
) -> None:
    """Find sizes that only the cache has, from a call: its outputs have them too."""
    own = [entry for entry in entries if entry.name in cache.outputs]
    shared = {size for entry in entries if entry.name not in cache.outputs for size in entry.sizes}
    open_sizes = {
        size: (entry, axis)
        for entry in own
        for axis, size in enumerate(entry.sizes)
        if isinstance(size, str) and size not in shared and not is_past(size) and not is_row_name(size)
    }
    if not open_sizes:
        return
    for axis_of_rows, tried in ((0, None), (1, None), (0, 1)):
        cache.row_axis, cache.sizes = axis_of_rows, dict.fromkeys(open_sizes, tried)
        rows = next((x.shape[axis_of_rows] for x in examples.values() if x.dim() > max(axis_of_rows, 1)), 1)
        try:
            with torch.no_grad():
                found = call()
        except Exception:  # noqa: BLE001 - the graph may refuse other sizes in any way
            continue
        for size, (entry, axis) in open_sizes.items():
            actual = int(found[cache.outputs[entry.name]].shape[axis])
            cache.sizes[size] = None if tried is None and actual == rows else actual
        return


def _core(name: str) -> str:
    """The part of a name that an input and the output that gives it back share."""
    parts = [part for part in re.split(r"[^a-z0-9]+", name.lower()) if part]
    if parts[:1] and parts[0] in ("past", "present") and parts[1:3] == ["key", "values"]:
        parts = parts[3:]
    parts = [part for part in parts if part not in _BEFORE_OR_AFTER]
    return ".".join(re.sub(r"(?<=[a-z])(n|0|in|out)$", "", part) for part in parts)
