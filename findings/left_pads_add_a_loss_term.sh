#!/usr/bin/env bash
# The same samples have another training loss in transformers if they are padded on the left: a pad predicts their first token.
#
# Guess:   DataCollatorForLanguageModeling gives pads the label -100 and a mask, so with position ids that count real tokens
#          the side of the pads changes no number of the loss.
# True:    with pads on the left the first real token has a label, and the output of the pad before it is held to predict
#          it: one more term for each padded row. On the right no output predicts a first token. Without these terms the
#          losses agree to 1e-6.
# Package: transformers 5.23.0, tokenizers 0.23.3, torch 2.13.0 (CPU)
# Source:  transformers/data/data_collator.py: DataCollatorForLanguageModeling; loss/loss_utils.py: ForCausalLMLoss
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy
"$folder/venv/bin/pip" install --quiet transformers==5.23.0 tokenizers==0.23.3
TRANSFORMERS_VERBOSITY=error HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - <<'PYTHON'
import torch
import transformers
from tokenizers import Tokenizer, models
from transformers import DataCollatorForLanguageModeling, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

print("transformers", transformers.__version__, "torch", torch.__version__)
torch.manual_seed(0)
sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 30}
model = LlamaForCausalLM(LlamaConfig(**sizes, pad_token_id=0)).eval()
for parameter in model.parameters():
    parameter.data += 0.2 * torch.randn(parameter.shape)
words = Tokenizer(models.WordLevel({f"t{k}": k for k in range(30)}, unk_token="t1"))
samples = [{"input_ids": torch.randint(2, 30, (n,)).tolist()} for n in (9, 5, 4)]


def loss(side: str, *, without_first: bool = False) -> float:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="t0", padding_side=side)
    batch = DataCollatorForLanguageModeling(tokenizer, mlm=False)([dict(each) for each in samples])
    batch["position_ids"] = (batch["attention_mask"].cumsum(1) - 1).clamp(min=0)
    if without_first:
        batch["labels"] = batch["labels"].masked_fill(batch["position_ids"] == 0, -100)
    return float(model(**batch).loss)


right, left, repaired = loss("right"), loss("left"), loss("left", without_first=True)
print(f"loss with pads on the right {right:.6f}, on the left {left:.6f}, on the left without first tokens {repaired:.6f}")
assert abs(left - right) > 1e-3 and abs(repaired - right) < 1e-5, "the side of the pads does not matter any more"
PYTHON
