"""The forms of a subject, as on the command line, and the checks of them that need neither torch nor transformers."""

from __future__ import annotations

import importlib.util
import re
import sys
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import metadata
from pathlib import Path
from typing import Literal

from orderproof.checkpoint_forms import ADAPTER_FILE, CONFIG_FILE, GGUF_SUFFIX, checkpoint_form
from orderproof.errors import CheckpointError, SubjectError, UsageError
from orderproof.object_names import check_name, function_names, on_import_path
from orderproof.registry import did_you_mean

SpecForm = Literal["architecture", "folder", "object", "onnx", "program", "script", "hub"]

ARCH_PREFIX = "arch:"
MIN_LENGTH = 2  # [tokens]
TOKEN_AXIS_OPTION = "--token-axis (in Python token_axis=)"
MODES = ("eval", "train")
ROLES = {
    "mask": "a padding mask; calls decide how it marks pads",
    "mask:real": "a padding mask with 1 or True at real tokens",
    "mask:pads": "a padding mask with 1 or True at pads",
    "positions": "position ids",
    "documents": "document ids of packed rows",
    "companion": "moves and grows with the tokens",
    "held": "the same in every call",
    "pads:ID": "token ids, with this id at pads; pads:none: no id marks pads",
    "cache": "given back for further tokens",
}
NO_ARGUMENT = "none"  # stated where a module takes no position ids
MARKED_TOKENS = {"real": False, "pads": True}  # the tokens at which a mask has 1 or True -> these are pads
MODEL_KINDS = {"decoder": "causal_lm", "encoder": "encoder"}  # as a user names a kind -> as the laws do
WEIGHTS_FILE = "model.safetensors"
PICKLE_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
CHECKPOINT_SUFFIXES = (*PICKLE_SUFFIXES, ".safetensors", ".py", ".json", ".gguf", ".h5", ".onnx", ".pt2")
ONNX_SUFFIX, PROGRAM_SUFFIX = ".onnx", ".pt2"
JAX_PYTHON_VARIABLE = "ORDERPROOF_JAX_PYTHON"  # names the interpreter for models of JAX
SPEC_FORMS = "a checkpoint folder, a hub id, arch:NAME, file.py:name, package.module:name, file.onnx or file.pt2"
_FILE = re.compile(r"(?P<place>.+\.py):(?P<name>[A-Za-z_][\w.]*)")
_MODULE = re.compile(r"(?P<place>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_][\w.]*)")
_PAD_ID = re.compile(r"pads:(\d+|none)")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")
_CONFIG_NAME = re.compile(r'(?<!\[)"([\w.-]+)"\s*[,:]\s*"\w+Config"')  # ("bert", "BertConfig") or "bert": "BertConfig"


def check_spec(
    spec: str, *, tiny: bool = False, attention: str | None = None, dtype: str | None = None,
    allow_network: bool = False,
) -> SpecForm:  # fmt: skip
    """The form of a subject, after the checks that read no model: it exists, and the options fit its form.

    Raises `UsageError`, `SubjectError` and `CheckpointError`.
    """
    if not spec:
        raise UsageError(f"expected a subject, {SPEC_FORMS}; got an empty text")
    if attention not in (None, "sdpa", "eager"):
        raise UsageError(f"attention must be 'sdpa' or 'eager'; got {attention!r}")
    form = _form_of(spec, tiny=tiny, attention=attention, allow_network=allow_network)
    if dtype is not None and form not in ("folder", "hub"):
        raise UsageError(f"expected a checkpoint folder or a hub id with --dtype; got {spec}")
    return form


def _form_of(spec: str, *, tiny: bool, attention: str | None, allow_network: bool) -> SpecForm:
    if spec.startswith(ARCH_PREFIX):
        name = spec.removeprefix(ARCH_PREFIX).partition("?")[0]
        if (known := architectures_in_source()) and name not in known:
            raise unknown_architecture(name, known)
        return "architecture"
    if tiny:
        raise UsageError(f"--tiny shrinks an architecture, written arch:NAME; got {spec}")
    path = Path(spec).expanduser()
    if path.suffix.lower() == ONNX_SUFFIX and not path.is_dir():
        check_model_file(path, attention)
        return "onnx"
    if path.suffix.lower() == PROGRAM_SUFFIX and not path.is_dir():
        check_model_file(path, attention)
        return "program"
    if path.is_file() and _is_torch_script(path):
        check_model_file(path, attention)
        return "script"
    if path.exists():
        check_folder(path, path.resolve().name)
        return "folder"
    if _FILE.fullmatch(spec) or _MODULE.fullmatch(spec):
        if attention is not None:
            raise UsageError(f"attention can be chosen for transformers models only; got {spec}")
        object_location(spec)
        return "object"
    if _HUB_ID.fullmatch(spec) and path.suffix.lower() not in CHECKPOINT_SUFFIXES:
        if not (allow_network or _may_be_cached(spec)):
            raise not_cached(spec, architectures_in_source())
        return "hub"
    raise CheckpointError(f"{spec}: no such folder; a subject is {SPEC_FORMS}")


def kind_assumption(kind: str | None) -> dict[str, str] | None:
    """The assumption `model_kind` for a kind as a user names it; None for None. Raises `UsageError`."""
    if kind is None:
        return None
    if kind not in MODEL_KINDS:
        raise UsageError(
            f"expected kind to be {' or '.join(MODEL_KINDS)}; got {kind!r}{did_you_mean(kind, MODEL_KINDS)}"
        )
    return {"model_kind": MODEL_KINDS[kind]}


StatedAxes = Mapping[str, Sequence[str] | str] | Sequence[str] | str  # of outputs by name, or of the only output


@dataclass(frozen=True)
class StatedMask:
    """The argument of a padding mask; `marks_pads` is None if it is not said which tokens have 1 or True."""

    name: str
    marks_pads: bool | None = None


@dataclass(frozen=True)
class StatedPads:
    """The input with token ids, and the id of pads among them; None if there is none."""

    name: str
    id: int | None


@dataclass(frozen=True)
class Layout:
    """Statements of a user about the axes, the arguments and the mode of a module.

    Attributes:
        token_axis: The token axis of the first input with tokens, or one entry for each input.
        outputs: The axes of outputs.
        together: Inputs of one length are one sequence.
        mask: The argument that takes a padding mask.
        position_ids: The argument that takes position ids, or `NO_ARGUMENT`.
        mode: One of `MODES`: the mode in which the module is audited.
        roles: By the name of an example input, one of `ROLES`.
        pads: The token id of pads in the first input.
        shapes: By the name of an input of a file, its sizes.
        example: A file (.npz) with example inputs.

    """

    token_axis: int | Sequence[int | None] | None = None
    outputs: StatedAxes | None = None
    together: bool = False
    mask: StatedMask | None = None
    position_ids: str | None = None
    mode: str = "eval"
    roles: Mapping[str, str] = field(default_factory=dict)
    pads: StatedPads | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    example: str | None = None

    @property
    def stated(self) -> str:
        """The stated parts, for a message: `token_axis and outputs`; empty if nothing is."""
        none = Layout()
        return " and ".join(f.name for f in fields(self) if getattr(self, f.name) != getattr(none, f.name))

    @property
    def named_arguments(self) -> tuple[str, ...]:
        """The arguments that are stated not to be the tokens."""
        mask = self.mask.name if self.mask else None
        return (*self.roles, *(name for name in (mask, self.position_ids) if name not in (None, NO_ARGUMENT)))

    def with_roles(self, roles: Mapping[str, str] | None) -> Layout:
        """The layout with the roles of arguments, each one of `ROLES`. Raises `UsageError`."""
        layout, rest = self, dict(self.roles)
        for name, role in (roles or {}).items():
            kind, _, marked = role.partition(":")
            if role not in ROLES and not _PAD_ID.fullmatch(role):
                raise UsageError(f"expected a role, one of {', '.join(ROLES)}; got {role!r}{did_you_mean(role, ROLES)}")
            if (kind == "mask" and layout.mask) or (kind == "positions" and layout.position_ids):
                raise UsageError(f"expected the role {kind} for one argument; got it for {name!r} too")
            if kind == "mask":
                layout = replace(layout, mask=StatedMask(name, MARKED_TOKENS.get(marked)))
            elif kind == "pads":
                layout = replace(layout, pads=StatedPads(name, None if marked == NO_ARGUMENT else int(marked)))
            elif kind == "positions":
                layout = replace(layout, position_ids=name)
            else:
                rest[name] = role
        return replace(layout, roles=rest)


NO_LAYOUT = Layout()


def parse_layout(
    token_axis: str | None,
    outputs: Sequence[str] | None,
    *,
    together: bool = False,
    mode: str = "eval",
    roles: Sequence[str] | None = None,
    shapes: Sequence[str] | None = None,
    example: str | None = None,
) -> Layout:
    """The layout that options state. Raises `UsageError`."""
    axes: list[int | None] = []
    for text in (token_axis or "").split(",") if token_axis is not None else ():
        if not re.fullmatch(r"-?\d+|none", text.strip()):
            raise UsageError(f"expected --token-axis as 1, or one for each input as none,1; got {token_axis!r}")
        axes.append(None if text.strip() == "none" else int(text))
    token_axes = axes[0] if len(axes) == 1 else tuple(axes) or None
    layout = Layout(
        token_axes, parse_stated_axes(outputs), together, mode=mode, shapes=parse_shapes(shapes), example=example
    )
    return layout.with_roles(parse_roles(roles))


def parse_roles(texts: Sequence[str] | None) -> dict[str, str]:
    """`["keep=mask:real"]` as a mapping. Raises `UsageError`."""
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, role = text.partition("=")
        if not (name and equals and role):
            raise UsageError(f"expected a role as NAME=ROLE; got {text!r}")
        if name in found:
            raise UsageError(f"expected the role of {name!r} once; got {text!r} too")
        found[name] = role
    return found


def parse_shapes(texts: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """`["mel=2x80x320"]` as a mapping. Raises `UsageError`."""
    found: dict[str, tuple[int, ...]] = {}
    for text in texts or ():
        name, equals, sizes = text.rpartition("=")
        if not (name and equals and re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", sizes)):
            raise UsageError(f"expected --shape as NAME=2x80x320, a size of at least 1 for each axis; got {text!r}")
        if name in found:
            raise UsageError(f"expected the shape of {name!r} once; got {text!r} too")
        found[name] = tuple(map(int, sizes.split("x")))
    return found


def as_shapes(shapes: Mapping[str, Sequence[int]] | None) -> dict[str, tuple[int, ...]]:
    """Shapes by name, as Python states them. Raises `UsageError`."""
    found = {}
    for name, shape in (shapes or {}).items():
        given: object = shape
        if not isinstance(given, list | tuple) or not given or not all(type(x) is int and x > 0 for x in shape):
            raise UsageError(f"expected the shape of {name!r} as (2, 80, 320), sizes of at least 1; got {shape!r}")
        found[name] = tuple(shape)
    return found


def parse_stated_axes(texts: Sequence[str] | None) -> dict[str, tuple[str, ...]] | None:
    """`["output.1=layer,batch,feature"]`, or `["batch,token,feature"]` for the only output, as a mapping.

    The name of the only output is empty. Raises `UsageError`.
    """
    if not texts:
        return None
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, axes = text.rpartition("=")
        names = tuple(axis.strip() for axis in axes.split(","))
        if (equals and not name) or "" in names:
            raise UsageError(f"expected axes as NAME=batch,token,...; got {text!r}")
        if name in found:
            raise UsageError(f"expected the axes of {name or 'the output'} once; got {text!r} too")
        found[name] = names
    return found


def check_length(length: int | None) -> None:
    """Raises `UsageError` for a length [tokens] at which no model has an order; None is the default of the model."""
    if length is not None and length < MIN_LENGTH:
        raise UsageError(f"expected a length of at least {MIN_LENGTH} tokens; got {length}; order needs two")


def object_location(spec: str) -> tuple[str, str]:
    """The file or the module, and the name in it. Raises `SubjectError` if there is no such file or package."""
    match = _FILE.fullmatch(spec) or _MODULE.fullmatch(spec)
    if match is None:
        raise SubjectError(f"{spec}: expected file.py:name or package.module:name")
    place, name = match["place"], match["name"]
    if place.endswith(".py"):
        if not Path(place).expanduser().is_file():
            raise SubjectError(f"{spec}: no file {Path(place).expanduser()}")
    else:
        package = place.partition(".")[0]
        with on_import_path(Path.cwd()):
            if package not in sys.modules and importlib.util.find_spec(package) is None:
                raise SubjectError(f"{spec}: no module named {package}")
    check_name(spec, place, name.partition(".")[0])
    return place, name


# ---------------------------------------------------------------- checkpoints


def check_folder(path: Path, label: str) -> None:
    """Raise `CheckpointError` if a path is no folder with a configuration, and no GGUF file."""
    if path.is_dir():
        if not ((path / CONFIG_FILE).is_file() or (path / ADAPTER_FILE).is_file()):
            raise CheckpointError(f"{label}: no {CONFIG_FILE} in the folder, so it is not a checkpoint of transformers")
        checkpoint_form(path, label)
        return
    if path.is_file() and path.suffix.lower() == GGUF_SUFFIX:
        checkpoint_form(path, label)
        return
    if path.suffix.lower() in PICKLE_SUFFIXES and _is_cut_archive(path):
        problem = "it is a zip archive whose end is missing, so the file is cut; copy, download or save it again"
    elif path.suffix.lower() in PICKLE_SUFFIXES:
        problem = (
            "a pickle can run code when it is opened, so it is not; name a function that loads it, as file.py:name, or "
            "convert the checkpoint to safetensors"
        )
    elif path.is_file() and path.suffix == ".py":
        names = function_names(path)
        problem = f"expected {path}:NAME, a module in it or a function that returns one; got the file alone{names}"
    elif path.is_file():
        problem = f"expected a checkpoint folder with {CONFIG_FILE} and {WEIGHTS_FILE}; got a file"
    else:
        problem = "no such folder"
    raise CheckpointError(f"{path}: {problem}")


def _is_torch_script(path: Path) -> bool:
    """True for an archive with code of TorchScript."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any("/code/__torch__" in name for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def _is_cut_archive(path: Path) -> bool:
    """True for a file that begins as a zip archive and has no list of its entries, which is at the end."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\x03\x04" and not zipfile.is_zipfile(path)
    except OSError:
        return False


def check_model_file(path: Path, attention: str | None = None) -> None:
    """Raise `CheckpointError` if there is no such file, and `UsageError` for an option that it does not have."""
    if not path.is_file():
        raise CheckpointError(f"{path}: no such file")
    if attention is not None:
        raise UsageError(f"attention can be chosen for transformers models only; got {path}")


def _may_be_cached(name: str) -> bool:
    """False if the local hub cache has no folder for a hub id."""
    if importlib.util.find_spec("huggingface_hub") is None:
        return True  # the loader says which package is missing
    from huggingface_hub.constants import HF_HUB_CACHE

    return Path(HF_HUB_CACHE, f"models--{name.replace('/', '--')}").exists()


def not_cached(name: str, known: Collection[str]) -> CheckpointError:
    """The error for a hub id that is not in the local cache; `known` are the names of architectures."""
    if name in known:
        return CheckpointError(
            f"{name}: no such folder, and no such model in the local hub cache; the architecture is {ARCH_PREFIX}{name}"
        )
    hint = did_you_mean(name, (), {each: ARCH_PREFIX + each for each in known}, limit=4) if "/" not in name else ""
    return CheckpointError(
        f"{name}: no such folder, and not in the local hub cache; download it first "
        f"(hf download {name}) or allow the network{hint}"
    )


# ---------------------------------------------------------------- architectures


def architectures_in_source() -> frozenset[str]:
    """The names of architectures in the source of transformers, which takes seconds to import.

    Empty if transformers is not installed, or if its files have another form than those of version 5.
    """
    package = importlib.util.find_spec("transformers")
    if package is None or not package.submodule_search_locations:
        return frozenset()
    folder = Path(package.submodule_search_locations[0], "models", "auto")
    files = [file for name in ("auto_mappings.py", "configuration_auto.py") if (file := folder / name).is_file()]
    return frozenset(name for file in files for name in _CONFIG_NAME.findall(file.read_text(encoding="utf-8")))


def unknown_architecture(name: str, known: Collection[str]) -> UsageError:
    """The error for an architecture that transformers does not have."""
    hint = did_you_mean(name, known, limit=4)
    return UsageError(f"transformers {metadata.version('transformers')} has no architecture {name!r}{hint}")
