"""The contract of every registered encoding: name, hooks and arguments; test_contract_* check the rest."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil

import pytest
import torch

from orderproof import encodings, positions
from orderproof.encodings import Claims, ModelSizes, PositionalEncoding
from orderproof.errors import EncodingError
from tests.encodings.examples import (
    HEADS,
    WIDTH,
    apply,
    build,
    content_of,
    every_encoding,
    every_mask,
    hooks,
    normal,
    operands,
    placed,
)


def subclasses_in_files() -> set[type[PositionalEncoding]]:
    found = set()
    files = [f for f in pkgutil.iter_modules(encodings.__path__) if not f.name.startswith("_") and not f.ispkg]
    for file in files:
        for _, value in inspect.getmembers(
            importlib.import_module(f"{encodings.__name__}.{file.name}"), inspect.isclass
        ):
            if issubclass(value, PositionalEncoding) and value.__module__.endswith(f".{file.name}"):
                found.add(value)
    return found


def test_every_encoding_in_the_folder_is_registered_and_exported() -> None:
    registered = {encodings.get(name) for name in encodings.names()}
    assert subclasses_in_files() == registered
    assert all(getattr(encodings, encoding.__name__) is encoding for encoding in registered)


@every_encoding
def test_it_knows_its_name_and_its_file_names_its_source(name: str) -> None:
    encoding = encodings.get(name)
    assert encoding.name == name
    assert "Source:" in (inspect.getmodule(encoding).__doc__ or "")


@every_encoding
@every_mask
def test_it_has_the_hook_of_its_site_and_no_other(name: str, causal: bool) -> None:
    encoding = build(name, causal=causal)
    own = hooks(encoding.claims)
    for hook in ("embed", "rotate", "bias", "score_mod", "value_bias"):
        is_own = getattr(type(encoding), hook) is not getattr(PositionalEncoding, hook)
        assert is_own == (hook in own)
    x, heads, p = normal(1, 3, WIDTH), normal(1, HEADS, 3, 8), positions.arange(3)
    calls = {
        "embed": lambda: encoding.embed(x, p),
        "rotate": lambda: encoding.rotate(heads, heads, p),
        "bias": lambda: encoding.bias(p, p),
        "score_mod": lambda: encoding.score_mod(p, p),
        "value_bias": lambda: encoding.value_bias(heads @ heads.mT, p, p),
    }
    for hook in calls.keys() - set(own):
        with pytest.raises(EncodingError, match=f"{type(encoding).__name__} has no {hook}: "):
            calls[hook]()


@every_encoding
def test_its_claims_cannot_be_changed(name: str) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        build(name).claims.relative = True  # type: ignore[misc]


@every_encoding
def test_its_class_has_claims_or_explains_how_to_get_them(name: str) -> None:
    encoding = encodings.get(name)
    if hasattr(encoding, "claims"):
        assert encoding.claims == build(name).claims
    else:
        with pytest.raises(
            AttributeError, match=rf"such as {encoding.__name__}\.for_model\(ModelSizes\(\.\.\.\)\)\.claims"
        ):
            _ = encoding.claims


@every_encoding
def test_it_keeps_no_state(name: str) -> None:
    encoding = build(name)
    before = {key: value.clone() for key, value in encoding.state_dict().items()}
    attributes = dict(vars(encoding))
    first = apply(encoding, positions.arange(7))
    apply(encoding, positions.offset(20, 11))
    assert torch.equal(apply(encoding, positions.arange(7)), first)
    assert dict(vars(encoding)) == attributes
    assert not list(encoding.buffers())
    assert all(torch.equal(value, before[key]) for key, value in encoding.state_dict().items())


def test_a_class_without_for_model_is_an_error() -> None:
    class Unfinished(PositionalEncoding):
        claims = Claims(site="none", relative=True, symmetric=True)

    with pytest.raises(NotImplementedError, match="Unfinished cannot be built from model sizes"):
        Unfinished.for_model(ModelSizes(width=8, heads=2, causal=True))


@every_encoding
def test_its_text_names_its_arguments(name: str) -> None:
    assert repr(build(name)).startswith(encodings.get(name).__name__ + "(")


@pytest.mark.parametrize("name", [name for name in encodings.names() if build(name).claims.content_dependent])
def test_content_that_does_not_fit_is_rejected(name: str) -> None:
    encoding = build(name)
    p, given = positions.arange(5), operands(encoding, 5)
    content, owner = content_of(encoding, given, p), type(encoding).__name__
    bad = [
        (None, "content must be an AttentionContent of queries and keys, got None"),
        (dataclasses.replace(content, q=content.q[0]), r"content.q must be floating \[batch, "),
        (dataclasses.replace(content, k=content.k.long()), r"content.k must be floating .*, got torch.int64"),
    ]
    if encoding.claims.decode_state == "token_state":
        newest = content.token_state[:, :, -1:]  # torch would broadcast it over all keys
        for token_state, came in (
            (None, "none"),
            (newest, "torch.float64"),
            (content.token_state[..., :0], "torch.float64"),
        ):
            message = rf"token_state must be \[2, {HEADS}, 5, \d+\], one per key, got {came}"
            bad.append((dataclasses.replace(content, token_state=token_state), message))
    for wrong, message in bad:
        with pytest.raises(EncodingError, match=f"{owner}: {message}") as caught:
            encoding.bias(p, p, content=wrong)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name in encodings.names() if build(name).claims.site == "bias"])
@pytest.mark.parametrize("dtype", [int, torch.int64, "float32"])
def test_an_invalid_dtype_of_a_bias_is_rejected(name: str, dtype: object) -> None:
    encoding, p = build(name), positions.arange(5)
    content = content_of(encoding, operands(encoding, 5), p) if encoding.claims.content_dependent else None
    with pytest.raises(EncodingError, match="dtype must be floating, such as torch.float32, got "):
        encoding.bias(placed(encoding, p), placed(encoding, p), content=content, dtype=dtype)
