"""The part of a script that belongs to an engine, and the steps of engines with environments of their own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Steps:
    """The part of a script that belongs to an engine."""

    imports: tuple[str, ...]
    steps: tuple[str, ...]
    before: tuple[str, ...] = ()  # the loop
    standard: tuple[str, ...] = ()  # imports of the standard library
    claim: str = "compute other logits from the same checkpoint and tokens"
    expected: tuple[str, ...] = ("expected = model(tokens).logits[0].numpy()",)
    shown: tuple[str, ...] = (
        "difference = np.abs(actual - expected).max(-1) / np.abs(expected).max()",
        "first = int((difference > 1e-5).argmax())",
        'print(f"{name}: differs by up to {difference.max():.2g}, first at token {first}")',
    )


TOKENIZER = (
    'words = Tokenizer(models.WordLevel({f"t{k}": k for k in range(config.vocab_size)}, unk_token="t0"))',
    'special = {"unk_token": "t0", "pad_token": "t0", "bos_token": "t1", "eos_token": "t2"}',
    "PreTrainedTokenizerFast(tokenizer_object=words, **special).save_pretrained(folder)",
)
SERVING = {
    "onnxruntime-genai": Steps(
        ("import onnxruntime_genai as og", "from tokenizers import Tokenizer, models"),
        (
            *TOKENIZER,
            'command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", folder]',
            'command += ["-o", f"{folder}/port", "-c", folder, "-p", "fp32", "-e", "cpu"]',
            'subprocess.run([*command, "--extra_options", "hf_token=false"], check=True, capture_output=True)',
            'port = og.Model(f"{folder}/port")',
            "generator = og.Generator(port, og.GeneratorParams(port))",
            "generator.append_tokens(tokens[0].numpy().astype(np.int32))",
            'actual = np.array(generator.get_output("logits"))[0]',
        ),
        standard=("import subprocess", "import sys"),
    ),
    "keras-hub": Steps(
        ("import keras_hub", "from keras import ops"),
        (
            'port = keras_hub.models.CausalLM.from_preset(folder, preprocessor=None, dtype="float32")',
            'inputs = {"token_ids": tokens.numpy(), "padding_mask": np.ones(tokens.shape)}',
            "actual = ops.convert_to_numpy(port(inputs))[0]",
        ),
    ),
    "mistralrs": Steps(
        ("from mistralrs import ChatCompletionRequest, ModelDType, Runner, Which",),
        (
            'words = {"type": "WordLevel", "vocab": {f"t{k}": k for k in range(config.vocab_size)}, "unk_token": "t0"}',
            'decoder = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]}',
            'parts = {"pre_tokenizer": {"type": "WhitespaceSplit"}, "decoder": decoder, "model": words}',
            'Path(f"{folder}/tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": [], **parts}))',
            'template = Path(f"{folder}/template.json")',
            'template.write_text(json.dumps({"chat_template": "{{ messages[0].content }}"}))',
            "which = Which.Plain(model_id=folder, dtype=ModelDType.F32)",
            "port = Runner(which=which, chat_template=str(template), prefix_cache_n=0)",
            'prompt = [{"role": "user", "content": " ".join(f"t{k}" for k in tokens[0].tolist())}]',
            'options = {"logprobs": True, "top_logprobs": 20, "max_tokens": 1, "temperature": 0.0}',
            'request = ChatCompletionRequest(messages=prompt, model="default", **options)',
            "answer = port.send_chat_completion_request(request).choices[0].logprobs.content[0].top_logprobs",
            "gaps = [abs(expected[int(each.token)] - each.logprob) for each in answer]",
        ),
        standard=("import json",),
        expected=("expected = model(tokens).logits[0, -1].log_softmax(-1).numpy()",),
        shown=('print(f"{name}: log-probabilities after the prompt differ by up to {max(gaps):.2g}")',),
    ),
    "vllm": Steps(
        ("from vllm import LLM, SamplingParams",),
        (
            'options = {"dtype": "float32", "skip_tokenizer_init": True, "enforce_eager": True, "block_size": 32}',
            "port = LLM(folder, max_logprobs=config.vocab_size, kv_cache_memory_bytes=1 << 26, **options)",
            "params = SamplingParams(max_tokens=1, prompt_logprobs=config.vocab_size, detokenize=False)",
            'prompt = [{"prompt_token_ids": [*tokens[0].tolist(), 0]}]  # the scores of a token are at the next one',
            "answer = port.generate(prompt, params)[0].prompt_logprobs[1:]",
            "words = range(config.vocab_size)",
            "actual = np.array([[each[word].logprob for word in words] for each in answer])",
            "del port, answer  # before another engine is made: the end of one ends the groups of its process",
        ),
        ('os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"', ""),
        standard=("import os",),
        expected=("expected = model(tokens).logits[0].log_softmax(-1).numpy()",),
    ),
}
