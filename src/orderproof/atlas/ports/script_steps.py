"""The part of a script that belongs to an engine: it reads the folder `checkpoint`, and computes `actual`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orderproof.laws.ports.same_greedy_tokens import GENERATED


@dataclass(frozen=True)
class Steps:
    """The part of a script that belongs to an engine."""

    imports: tuple[str, ...]
    steps: tuple[str, ...]
    prompts: int = 1
    before: Mapping[str, str] = field(default_factory=dict)  # by model type: a line that it needs besides
    of_model: str = "AutoModelForCausalLM"  # the class of transformers that makes the reference
    shown: tuple[str, ...] = ("print(abs(actual - model(tokens).logits[0].detach().numpy()).max(-1))  # by token",)


NUMPY = "import numpy as np"
TOKENIZER = (  # one word for each token; the engine wants the names of all three special ones
    'ids = Tokenizer(models.WordLevel({str(k): k for k in range(model.config.vocab_size)}, unk_token="0"))',
    (
        'PreTrainedTokenizerFast(tokenizer_object=ids, bos_token="1", eos_token="2", unk_token="0")'
        '.save_pretrained("checkpoint")'
    ),
)
ANY_TOKENIZER = (
    'PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"": 0}, ""))).save_pretrained("checkpoint")'
)
OF_TOKENIZER = "from tokenizers import Tokenizer, models"
LOGITS = {
    "mlx": Steps(
        ("import mlx.core as mx", NUMPY, "from mlx_lm.utils import load_model"),
        (
            'port, _ = load_model(Path("checkpoint"))',
            "actual = np.array(port(mx.array(tokens.numpy())).astype(mx.float32))[0]",
        ),
    ),
    "mlx-vlm": Steps(
        ("import mlx.core as mx", NUMPY, "from mlx_vlm.utils import load_model"),
        (
            "mx.set_default_device(mx.cpu)",
            'port = load_model(Path("checkpoint")).language_model',
            "actual = np.array(port(mx.array(tokens.numpy())).logits.astype(mx.float32))[0]",
        ),
    ),
    "mlx-embeddings": Steps(
        ("import mlx.core as mx", NUMPY, "from mlx_embeddings.utils import load_model"),
        (
            "mx.set_default_device(mx.cpu)",
            'port = load_model(Path("checkpoint"), path_to_repo="checkpoint").model  # without its pooling',
            "output = port(mx.array(tokens.numpy()), attention_mask=mx.ones(tokens.shape), return_dict=True)",
            'actual = np.array(output["last_hidden_state"])[0]',
        ),
        shown=("print(abs(actual - model(tokens).last_hidden_state[0].detach().numpy()).max(-1))  # by token",),
        of_model="AutoModel",
    ),
    "ctranslate2": Steps(
        ("import ctranslate2", NUMPY, OF_TOKENIZER),
        (
            *TOKENIZER,
            'ctranslate2.converters.TransformersConverter("checkpoint").convert("port", force=True)',
            'port = ctranslate2.Generator("port", compute_type="float32")',
            "actual = np.array(port.forward_batch([[str(k) for k in tokens[0].tolist()]]))[0]",
        ),
    ),
    "llamacpp": Steps(
        (
            "import convert_hf_to_gguf as converter  # PYTHONPATH=llama.cpp:llama.cpp/gguf-py",
            "from llama_cpp import Llama",
        ),
        (
            "kind, words = converter.get_model_class(type(model).__name__), model.config.vocab_size",
            "kind.set_vocab = lambda self: (self._set_vocab_none(), self.gguf_writer.add_vocab_size(words))",
            'converter.sys.argv[1:] = ["checkpoint", "--outtype", "f32", "--outfile", "port.gguf"]',
            "converter.main()",
            'port = Llama("port.gguf", n_ctx=2048, n_batch=2048, logits_all=True, type_k=0, type_v=0, verbose=False)',
            "port.eval(tokens[0].tolist())",
        ),
        shown=(
            "print(abs(port.scores[: tokens.shape[1]] - model(tokens).logits[0].detach().numpy()).max(-1))  # by token",
        ),
    ),
    "xllamacpp": Steps(  # its server scores the token after a prompt, and wants a vocabulary of text
        ("import convert_hf_to_gguf as convert  # PYTHONPATH=llama.cpp:llama.cpp/gguf-py", "import xllamacpp"),
        (
            'text = [("add_tokenizer_model", "rwkv"), ("add_token_list", [*map(str, range(model.config.vocab_size))])]',
            (
                "convert.get_model_class(type(model).__name__).set_vocab = "
                "lambda m: [getattr(m.gguf_writer, k)(v) for k, v in text]"
            ),
            'convert.sys.argv[1:] = ["checkpoint", "--outtype", "f32", "--outfile", "port.gguf"]',
            "convert.main()",
            (  # by itself its cache and its attention round to float16
                "(p := xllamacpp.CommonParams()).model.path, p.cache_type_k, p.cache_type_v, p.flash_attn_type = "
                '"port.gguf", 0, 0, 0'
            ),
            'asked = {"prompt": tokens[0].tolist(), "n_predict": 1, "n_probs": model.config.vocab_size}',
            'answer = xllamacpp.Server(p).handle_completions(asked)["choices"][0]["logprobs"]["content"][0]',
        ),
        shown=(
            (
                'print([e["logprob"] - model(tokens).logits[0, -1].log_softmax(-1)[e["id"]].item() '
                'for e in answer["top_logprobs"]])'
            ),
        ),
        before=dict.fromkeys(  # their converter counts the words of a tokenizer
            ("gemma3", "gemma3_text", "gemma4", "gemma4_text"),
            (
                'convert.Path("checkpoint/tokenizer.json").write_text('
                """f'{{"model": {{"vocab": {[0] * 999}}}, "added_tokens": []}}')"""
            ),
        ),
    ),
    "onnx": Steps(
        ("import onnxruntime",),
        (
            'axes = {0: torch.export.Dim("row"), 1: torch.export.Dim("token")}',
            'given = {"input_ids": torch.ones(2, 5, dtype=torch.long), "use_cache": False}',
            'shapes = {"input_ids": axes, "use_cache": None}',
            'torch.onnx.export(model, (), "port.onnx", kwargs=given, dynamic_shapes=shapes, dynamo=True)',
            'port = onnxruntime.InferenceSession("port.onnx")',
            'actual = port.run(None, {"input_ids": tokens.numpy()})[0][0]',
        ),
    ),
    "onnxruntime-genai": Steps(
        (
            "import onnxruntime_genai as og",
            "from onnxruntime_genai.models.builder import create_model, parse_extra_options",
            OF_TOKENIZER,
        ),
        (
            ANY_TOKENIZER,
            'where = (None, "checkpoint", "port", "fp32", "cpu", "port")',
            'create_model(*where, **parse_extra_options(*where, ["hf_token=false"]))',
            'generator = og.Generator(port := og.Model("port"), og.GeneratorParams(port))',
            "generator.append_tokens(tokens[0].int().numpy())",
            'actual = generator.get_output("logits")[0]',
        ),
    ),
    "keras-hub": Steps(
        ("import keras_hub", NUMPY, "from keras import ops"),
        (
            'port = keras_hub.models.CausalLM.from_preset("checkpoint", preprocessor=None, dtype="float32")',
            'inputs = {"token_ids": tokens.numpy(), "padding_mask": np.ones(tokens.shape)}',
            "actual = ops.convert_to_numpy(port(inputs))[0]",
        ),
    ),
    "mistralrs": Steps(  # it takes text: each character is a token
        (
            "from mistralrs import ChatCompletionRequest, ModelDType, Runner, Which",
            "from tokenizers import Tokenizer, decoders, models",
        ),
        (
            "ids = Tokenizer(models.BPE({chr(300 + k): k for k in range(model.config.vocab_size)}, []))",
            "ids.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])",
            (
                'PreTrainedTokenizerFast(tokenizer_object=ids, chat_template="{{ messages[0].content }}")'
                '.save_pretrained("checkpoint")'
            ),
            'port = Runner(Which.Plain("checkpoint", dtype=ModelDType.F32))',
            (
                'request = ChatCompletionRequest("".join(map(chr, tokens[0] + 300)), "default", True, '
                "top_logprobs=20, max_tokens=1)"
            ),
            "best = port.send_chat_completion_request(request).choices[0].logprobs.content[0].top_logprobs",
        ),
        shown=(
            "print([e.logprob - model(tokens).logits[0, -1].log_softmax(-1)[int(e.token)].item() for e in best])",
        ),
    ),
    "vllm": Steps(
        (
            NUMPY,
            "from vllm import LLM, SamplingParams  # with VLLM_ENABLE_V1_MULTIPROCESSING=0 VLLM_CPU_KVCACHE_SPACE=1",
        ),
        (
            'port = LLM("checkpoint", dtype="float32", skip_tokenizer_init=True, enforce_eager=True, max_logprobs=-1)',
            "params = SamplingParams(max_tokens=1, prompt_logprobs=-1, detokenize=False)",
            'prompt = {"prompt_token_ids": [*tokens[0].tolist(), 0]}  # the scores of a token are at the next one',
            "answer = port.generate([prompt], params)[0].prompt_logprobs[1:]",
            "actual = np.array([[each[word].logprob for word in range(len(each))] for each in answer])",
        ),
        shown=("print(abs(actual - model(tokens).logits[0].log_softmax(-1).detach().numpy()).max(-1))  # by token",),
    ),
}  # fmt: skip
PADDED = {  # the same for a row with pads on its left
    "mlx": Steps(
        (
            "import mlx.core as mx", NUMPY, "from mlx_lm.models.cache import BatchKVCache, KVCache, make_prompt_cache",
            "from mlx_lm.utils import load_model",
        ),
        (
            'port, _ = load_model(Path("checkpoint"))',
            "caches = [BatchKVCache([5]) if isinstance(each, KVCache) else each for each in make_prompt_cache(port)]",
            "for cache in caches:",
            "    cache.left_padding = mx.array([5])",
            "actual = np.array(port(mx.array([[0] * 5 + tokens[0].tolist()]), cache=caches).astype(mx.float32))[0, 5:]",
        ),
    ),
    "onnx": Steps(
        (NUMPY, "import onnxruntime"),
        (
            'axes = {0: torch.export.Dim("row"), 1: torch.export.Dim("token")}',
            "ones = torch.ones(2, 5, dtype=torch.long)",
            'given = {"input_ids": ones, "attention_mask": ones, "use_cache": False}',
            'shapes = {"input_ids": axes, "attention_mask": axes, "use_cache": None}',
            'torch.onnx.export(model, (), "port.onnx", kwargs=given, dynamic_shapes=shapes, dynamo=True)',
            "row, mask = (np.pad(each, ((0, 0), (5, 0))) for each in (tokens, np.ones_like(tokens)))",
            'port = onnxruntime.InferenceSession("port.onnx")',
            'actual = port.run(None, {"input_ids": row, "attention_mask": mask})[0][0, 5:]',
        ),
    ),
}  # fmt: skip
TOKENS = {  # the same for tokens that are generated greedily
    "ctranslate2": Steps(
        tuple(each for each in LOGITS["ctranslate2"].imports if each != NUMPY),
        (
            *LOGITS["ctranslate2"].steps[:-1],
            'options = {"sampling_topk": 1, "include_prompt_in_result": False, "return_end_token": True}',
            "rows = [[str(k) for k in row] for row in tokens.tolist()]",
            f"actual = [e.sequences_ids[0] for e in port.generate_batch(rows, max_length={GENERATED}, **options)]",
        ),
        shown=(
            "model.generation_config.eos_token_id = None",
            f"tokens = model.generate(tokens, max_new_tokens={GENERATED}, do_sample=False)[:, tokens.shape[1] :]",
            "print([row[: len(port)] == port for row, port in zip(tokens.tolist(), actual, strict=True)])  # by prompt",
        ),
        prompts=8,  # of one alone the first tokens may be the same
    )
}
