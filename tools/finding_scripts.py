"""Write the scripts of docs/evidence/findings that `orderproof repro` generates.

    python tools/finding_scripts.py            every script of the list
    python tools/finding_scripts.py mamba      those whose name contains a text

A script is run before it is written. The other scripts of the folder are written by hand: they show an exception, an
informational comparison, or several models at once.
"""

from __future__ import annotations

import sys
from pathlib import Path

from orderproof import audit, reproduce
from orderproof.errors import OrderproofError
from orderproof.models import load
from orderproof.report.file_output import write_file

FOLDER = Path(__file__).parents[1] / "docs" / "evidence" / "findings"
LINEAR_FIRST = 'arch:minimax?layer_types=["linear_attention","full_attention"]'
DYNAMIC_ROPE = 'arch:llama?rope_parameters={"rope_theta":10000.0,"rope_type":"dynamic","factor":4.0}'
SCRIPTS = {  # the name of the script: the law and the subject
    "aimv2_text_causal": ("causal", "arch:aimv2_text_model"),
    "bamba_positions": ("cached_decoding", "arch:bamba"),
    "canine_padding": ("padding", "arch:canine"),
    "canine_rows": ("batch_composition", "arch:canine"),
    "clip_text_padding": ("padding", "arch:clip_text_model"),
    "convbert_padding": ("padding", "arch:convbert"),
    "csm_positions": ("batch_composition", "arch:csm_depth_decoder_model"),
    "deepseek_v4_padding": ("padding", "arch:deepseek_v4"),
    "doge_cache": ("cached_decoding", "arch:doge"),
    "doge_flex": ("attention_backend", "arch:doge"),
    "esm_padding": ("padding", "arch:esm"),
    "fsmt_cache": ("use_cache", "arch:fsmt"),
    "fsmt_padding": ("padding", "arch:fsmt"),
    "funnel_padding": ("padding", "arch:funnel"),
    "jamba_cache": ("chunked_prefill", "arch:jamba"),
    "llama_dynamic_rope": ("stateless", DYNAMIC_ROPE),
    "layoutlmv3_padding": ("padding", "arch:layoutlmv3"),
    "mamba_cache": ("chunked_prefill", "arch:mamba"),
    "minimax_positions": ("cached_decoding", LINEAR_FIRST),
    "minimax_reorder": ("cache_editing", "arch:minimax"),
    "mobilebert_padding": ("padding", "arch:mobilebert"),
    "moshi_cache": ("attention_pattern", "arch:moshi"),
    "nystromformer_padding": ("padding", "arch:nystromformer"),
    "owlvit_positions": ("batch_composition", "arch:owlvit_text_model"),
    "prophetnet_context_length": ("context_length", "arch:prophetnet"),
    "recurrent_gemma_padding": ("padding", "arch:recurrent_gemma"),
    "reformer_rows": ("batch_composition", "arch:reformer"),
    "roberta_padding": ("padding", "arch:roberta"),
    "rwkv_padding": ("padding", "arch:rwkv"),
    "sam3_lite_text_padding": ("padding", "arch:sam3_lite_text_text_model"),
    "seamless_m4t_padding": ("padding", "arch:seamless_m4t"),
    "tapas_context_length": ("context_length", "arch:tapas"),
    "videoprism_text_causal": ("causal", "arch:videoprism_text_model"),
    "vilt_padding": ("padding", "arch:vilt"),
    "xlstm_cache": ("use_cache", "arch:xlstm"),
    "yoso_padding": ("padding", "arch:yoso"),
    "zamba2_cache": ("cached_decoding", "arch:zamba2"),
}


def script_of(law: str, spec: str) -> str:
    """The script of the first failed check of a law. Raises `OrderproofError` if there is none."""
    subject = load(spec, tiny=True)
    failed = [finding for finding in audit(subject, laws=[law]).findings if finding.outcome == "fail"]
    if not failed:
        raise OrderproofError(f"{spec}: expected a failed check of {law}; there is none in this version")
    return reproduce(subject, failed[0]).script


def main(words: list[str]) -> int:
    """Write the scripts whose names contain one of the words; 1 if one of them cannot be written."""
    failed = 0
    for name, (law, spec) in SCRIPTS.items():
        if words and not any(word in name for word in words):
            continue
        try:
            write_file(script_of(law, spec), FOLDER / f"{name}.py")
        except OrderproofError as error:
            failed = 1
            sys.stderr.write(f"{name}: {error}\n")
    return failed


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
