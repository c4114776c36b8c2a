"""Load a hub id, `organisation/name`, from the local cache, or from the network if that is allowed."""

from __future__ import annotations

from pathlib import Path

from orderproof.errors import CheckpointError
from orderproof.library_messages import suppress_warnings
from orderproof.models.hf.architectures import known_architectures
from orderproof.models.hf.assumptions import Assumptions
from orderproof.models.hf.checkpoint import load_checkpoint
from orderproof.models.hf.export_patches import transformers_library
from orderproof.models.subject import Subject
from orderproof.subject_spec import not_cached

DOWNLOAD_PATTERNS = ["*.json", "*.safetensors", "*.txt", "*.model"]  # no code and no pickles


def load_from_hub(
    name: str, *, attention: str | None = None, dtype: str | None = None, allow_network: bool = False,
    assume: Assumptions | None = None,
) -> Subject:  # fmt: skip
    """Load a checkpoint by its hub id. Raises `CheckpointError`."""
    transformers_library()
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    with suppress_warnings():
        try:
            folder = snapshot_download(name, allow_patterns=DOWNLOAD_PATTERNS, local_files_only=not allow_network)
        except Exception as error:  # many kinds: not cached, no network, no such repository, gated
            if allow_network:
                text = " ".join(str(error).split())[:200]
                raise CheckpointError(
                    f"{name}: cannot be fetched from the hub: {type(error).__name__}: {text}"
                ) from error
            raise not_cached(name, known_architectures()) from error
    return load_checkpoint(Path(folder), attention=attention, name=name, dtype=dtype, assume=assume)
