"""What follows from an operator's arguments, by the lemma that covers it.

Almost every operator is a labelled form, as in einsum: along a label of the result operands move as it does; another is
summed, and they move alike along it; along one read by place nothing moves. A line of `_TABLE` holds a lemma, and
forms, each with the labels it reads by place (behind a +: in later results only) and its operators, to which A NEW ONE
IS ADDED without outer underscores. Further operands are as the last written. The place `zero`: known zeros make zeros.

    *  are the dimensions, from the right    -  those but `dim`    #  `dim`    <  >  all with `dim` renamed    x 1  one

Or a form is a word: `moved`, elements are only moved, and it is run on their numbers; `each`, an element is made of
those at its place, `monotone`, and lies between what their ends give. Constants are computed by the operator itself,
like steps are checked once, and what is not listed is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from orderproof.prover.recheck.fact import ALWAYS, DIMS, FREE, INF, LARGE, LARGEST, NEVER, STILL, Fact, compressed, need
from orderproof.prover.recheck.forms import Forms

UNDEFINED = {"empty", "new_empty", "empty_like", "empty_strided", "empty_permuted", "new_empty_strided", "from_file"}
UNDEFINED |= {"empty_quantized", "resize", "resize_as", "resize_output", "as_strided", "as_strided_copy"}  # memory, and
UNDEFINED |= {"as_strided_scatter", "reshape_alias", "reshape_alias_copy"}  # what depends on how a tensor lies in it
FILLS = {"zeros_like", "ones_like", "new_zeros", "new_ones", "full_like", "new_full"}  # determined by a shape alone
SAME, PURE = "same_in_both_runs", "pure_function_of_unmoved"
_TABLE = """
movement_equivariant | moved | | cat concat concatenate stack flip roll repeat tile repeat_interleave copy
movement_equivariant | moved | | slice_scatter select_scatter pad constant_pad_nd unsafe_split unsafe_chunk unsafe_view
pointwise_equivariant | choice | | where masked_fill | moved | | tril triu | quotient | | div true_divide
pointwise_equivariant | each | | log_sigmoid prelu_kernel xor polar real complex imag conj resolve_conj resolve_neg
pointwise_equivariant | boolean | | logical_and logical_or logical_not bitwise_and bitwise_or and or
pointwise_equivariant | monotone | | add sub rsub mul multiply neg exp exp2 expm1 relu elu sigmoid softplus hardtanh
pointwise_equivariant | monotone | | clamp.default clamp_min.default clamp_max.default clone to_copy to type_as alias
pointwise_equivariant | monotone | | contiguous lift_fresh_copy positive detach dropout feature_dropout alpha_dropout
pointwise_equivariant | monotone | | max.other maximum
contraction_equivariant | *xy *yz -> *xz | zero | mm bmm matmul.mm | *xy y -> *x | zero | mv matmul.mv
contraction_equivariant | y *yz -> *z | zero | matmul.vm | y y -> | zero | dot matmul.vv | equation | zero | einsum
contraction_equivariant | *y zy z -> *z | zero | linear | *xz *xy *yz -> *xz | | addmm baddbmm
softmax_equivariant | softmax | | softmax safe_softmax log_softmax
attention_equivariant | attention | | scaled_dot_product_attention
normalisation_equivariant | * > # -> * | | layer_norm native_layer_norm rms_norm fused_rms_norm
normalisation_equivariant | * > 1 -> * | 1 | group_norm
channelwise_equivariant | * 1 -> * | | batch_norm native_batch_norm_legit_no_training
reduction_invariant | * -> - | zero | sum mean nansum | * -> - | # | argmax argmin
reduction_invariant | * -> - | | prod amin any all var std norm count_nonzero min.default max.default linalg_vector_norm
reduction_invariant | * -> - | +# | min.dim median.dim mode
extreme_of_visible | softmax | | amax logsumexp | softmax | +# | max.dim
lookup_equivariant | yz * -> *z | y | embedding | < * -> * | < | gather | indexed | | index unsafe_index index_select
scan_dependence | * -> * | # | cumsum cumprod logcumsumexp cummax cummin | < -> > | >+< | sort topk msort
scan_dependence | < -> > | <> | argsort | convolution | | conv1d conv2d conv3d convolution
scan_dependence | pooled | | avg_pool1d avg_pool2d max_pool1d max_pool2d max_pool2d_with_indices adaptive_avg_pool1d
scan_dependence | pooled | | adaptive_avg_pool2d upsample_nearest2d upsample_bilinear2d upsample_bicubic2d
dense_dependence | written | | scatter.src scatter.value
dense_dependence | * < > -> * | #<> | scatter scatter_add scatter_reduce | *y -> * | y | view_as_complex
dense_dependence | * y > -> * | #y> | index_add index_copy index_fill | * -> *y | y | view_as_real | < -> > | <> | fft
dense_dependence | tuvw txyz -> tuxy | vwz | grid_sampler grid_sampler_2d
dense_dependence | indexed | | index_put index_put_impl unsafe_index_put
"""
TABLE: dict[str, tuple[str, str, str]] = {"view.dtype": ("movement_equivariant", "each", "")}
for _lemma, *_cells in ([x.strip() for x in line.split("|")] for line in _TABLE.strip().split("\n")):
    TABLE |= {n: (_lemma, f, p) for f, p, x in zip(*(_cells[k::3] for k in range(3)), strict=True) for n in x.split()}


def dilated(operator: str, args: Any, kwargs: Any) -> bool:
    """Whether windows may hold border alone, of which the largest is minus infinity."""
    return "max_pool" in operator and not set(tree_leaves([args[4:5], kwargs.get("dilation", 1)])) <= {1}


class Operators(Forms):
    """The check of each operator."""

    def _applied(self, operator: str, lemma: str, said: list[Fact], args: Any, kwargs: Any) -> Sequence[Fact]:
        """What follows from an operator's arguments."""
        space, name, overload = operator.split(".")
        op = getattr(getattr(torch.ops.aten, name), overload)
        known = space == "aten" and isinstance(op, torch._ops.OpOverload) and name.strip("_") not in UNDEFINED
        need(known and not op._schema.is_mutable, "there is no check for this operator")
        schema = op._schema.arguments
        places = [x.name for x in schema if not x.kwarg_only][: len(args)]
        b: dict[str, Any] = {x.name: x.default_value for x in schema} | dict(zip(places, args, strict=True)) | kwargs
        for x in schema:  # torch may crash on a missing tensor, or on a number in the place of a dtype
            kind, v = str(x.real_type), b[x.name]
            gap = "Optional" not in kind and None in (v if isinstance(v, list) else [v])
            coded = isinstance(v, int) and v != x.default_value
            coded = coded and any(t in kind for t in ("ScalarType", "Layout", "Memory", "Device"))
            need(not gap and not coded, f"its {x.name} is missing, or of another kind")
        off = b.get("train") is False or 0 in (b.get("p"), b.get("dropout_p"))
        need(off or torch.Tag.nondeterministic_seeded not in op.tags, "it is random")

        def run(leaf: Any, device: str = "cpu", **other: Any) -> list[Any]:
            where = {"device": torch.device(device)} if "device" in b else {}
            made = op(**(tree_map_only(Fact, leaf, b) | where | other))
            return [made] if isinstance(made, torch.Tensor) else list(made)

        facts = [f for f in tree_leaves(b) if isinstance(f, Fact)]
        meta = run(lambda f: torch.empty(f.shape, dtype=getattr(torch, f.dtype), device="meta"), "meta")
        typed = [(tuple(t.shape), str(t.dtype).removeprefix("torch.")) for t in meta]
        same = [(s.shape, s.dtype) == t for s, t in zip(said, typed, strict=True)]
        need(all(same[: 1 if name == "_native_batch_norm_legit_no_training" else None]), f"it is {typed}")
        ranks = "".join("v" if len(f.shape) == 1 else "m" for f in facts)
        view, pointwise = ("movement_equivariant", "moved", ""), ("pointwise_equivariant", "each", "")
        other = view if op.is_view else pointwise if torch.Tag.pointwise in op.tags else ("", "", "")
        name = "fft" if "fft" in name else name.strip("_")
        own, form, place = TABLE.get(f"{name}.{ranks if name == 'matmul' else overload}") or TABLE.get(name) or other
        constant = name in FILLS or all(f.constant for f in facts)
        need(lemma in (own, PURE) or (lemma == SAME and constant), "its lemma does not cover the operator")
        if constant:
            values: Sequence[Any] = [None] * len(said)
            if name in FILLS or (all(f.tensor is not None for f in facts) and sum(t.numel() for t in meta) <= LARGEST):
                values = run(lambda f: torch.zeros(f.shape) if f.tensor is None else f.tensor)
            nothing = all(FREE not in s.moves and np.isin(s.status, (0, 3)).all() for s in said)
            if values[0] is not None or nothing or lemma == SAME:
                return [self._constant(s.shape, s.dtype, v) for s, v in zip(said, values, strict=True)]
        if lemma == PURE:
            need(all(isinstance(m, str) for f in facts for m in f.moves), "an operand moves")
            level = max([NEVER, *(int(f.level.max(initial=NEVER)) for f in facts)])
            end = 1 if all(f.ordinary.all() for f in facts) else INF
            made = [self._fact(replace(s, moves=(STILL,) * len(s.shape)), level, -end, end) for s in said]
        else:
            made = getattr(self, f"_{form}", self._labelled)(name, b, said, run, facts, form, place)
        numbers = [v for k, v in b.items() if k not in ("p", "ord") and isinstance(v, int | float)]
        large = any(not abs(v) < LARGE for v in numbers) or dilated(name, args, kwargs)
        if large and form not in (
            "monotone",
            "moved",
            "choice",
            "written",
        ):  # what a large number makes is not ordinary
            made = [self._fact(d, d.level, *(np.where(d.low == d.high, d.low, x) for x in (-INF, INF))) for d in made]
        return [replace(d, level=d.level * 0 + NEVER, constant=True) for d in made] if constant else made

    def _each(self, name: str, b: Any, said: list[Fact], run: Any, facts: Any, form: str, *_: Any) -> list[Fact]:
        read = facts[:1] if name in ("type_as", "to") else facts
        how = "each" if "complex" in said[0].dtype else form

        def numbers(*at: Any) -> Any:
            spare = {id(f): torch.zeros((), dtype=getattr(torch, f.dtype)) for f in facts}
            return run(lambda f: (spare | dict(zip(map(id, read), at, strict=True)))[id(f)])[0]

        return [self._pointwise(out, numbers, how, *read) for out in said]

    _monotone = _quotient = _boolean = _each

    def _choice(self, name: str, b: Any, said: list[Fact], *_: Any) -> list[Fact]:
        x, fill = b["self"], name == "masked_fill"
        parts = (b["mask"], b["value"], x) if fill else (b["condition"], x, b["other"])
        return [self._pointwise(said[0], torch.where, "choice", *parts)]

    def _moved(self, name: str, b: Any, said: list[Fact], run: Any, *_: Any) -> list[Fact]:
        """Run it on the numbers of its operands' elements; 0 stands for what it fills with."""
        data = [f for k in ("self", "input", "tensors", "src") for f in tree_leaves(b.get(k)) if isinstance(f, Fact)]
        moves = b.get("mode", "constant") in ("constant", "reflect", "replicate", "circular")
        need(moves, "it does more than move elements")
        need(sum(math.prod(f.shape) for f in [*data, *said]) <= LARGEST, "it is too large to be run")
        group, fill, start, numbers = range(len(self.group)), b.get("value") or 0, 1, dict[int, Any]()
        columns = [[np.array([x])] for x in (NEVER, fill, fill, *(0 for _ in group))]
        for f in data:
            own = np.arange(start, start + math.prod(f.shape)).reshape(f.shape)
            start += own.size
            for d, m in enumerate(f.moves):
                own = np.broadcast_to(own.take([0], d) if m == FREE else own, f.shape)
            numbers[id(f)] = torch.from_numpy(own.copy())
            end = np.where(f.ordinary, 1, INF)  # a number may become another in a narrower type
            ends = (f.low, f.high) if f.dtype == said[0].dtype or "float" in said[0].dtype else (-end, end)
            told = (f.level, *ends, *(self._image(own, f.moves, g) for g in group))
            columns = [[*c, np.broadcast_to(a, f.shape).ravel()] for c, a in zip(columns, told, strict=True)]
        level, low, high, *to = (np.concatenate(c) for c in columns)

        def leaf(f: Fact) -> Any:
            known = id(f) in numbers or f.tensor is not None or f is b.get("other")
            need(known, "it moves elements to places that depend on the input")
            return numbers.get(id(f), torch.zeros(f.shape) if f.tensor is None else f.tensor)

        made = []
        for out, tensor in zip(said, run(leaf, **({"value": 0} if "pad" in name else {})), strict=True):
            source = tensor.numpy()
            free = [d for d, m in enumerate(out.moves) if m == FREE]
            need(all((source == source.take([0], d)).all() for d in free), "it is not free along what it says to be")
            bad = [self._image(source, out.moves, g) != to[g][source] for g in group]
            arrays = (np.where(np.any(bad, axis=0), ALWAYS, level[source]), low[source], high[source])
            made.append(self._fact(out, *map(compressed, arrays)))
        return made

    def _softmax(self, name: str, b: Any, said: list[Fact], run: Any, _f: Any, _: str, place: str) -> list[Fact]:
        """In a line, what is masked here and wherever it moves to counts for nothing beside a visible entry."""
        f, dim, safe = b["self"], b.get("dim"), "safe" in name
        dims = tuple(d % max(len(f.shape), 1) for d in ([dim] if isinstance(dim, int) else dim or range(len(f.shape))))
        line: dict[str, Any] = {"axis": dims, "keepdims": True}
        sound, alive = (f.high < INF).all(**line), (f.low > f.mask / 10).any(**line)
        masked, absent = f.high <= f.mask, f.high == -INF
        gone = sound & ((masked & alive & (absent | self.assumed)) | (absent & safe))
        both = reduce(np.logical_and, [self._image(gone, f.moves, g) for g in range(len(self.group))], gone)
        kept = replace(f, level=np.where(both, NEVER, f.level))
        if "softmax" not in name:
            plain = sound & f.ordinary.any(**line) & (f.high < LARGE).all(**line)
            wide = math.log(math.prod(f.shape[d] for d in dims)) if name == "logsumexp" else 0
            least, most = np.where(plain, -1, -INF), np.where(plain, 1, f.high.max(**line) + wide)
            ends = (least, np.where(plain | (most <= f.mask), most, INF))  # of what is masked throughout
            low, high = ends if b.get("keepdim") else (x.squeeze(dims) for x in ends)
            first, *rest = self._labelled(name, b, said, run, [kept], "* -> -", place)
            return [replace(first, low=low, high=high), *rest]
        number = sound & (safe | ((f.low > -INF) | (masked & ~absent)).any(**line))
        most, low, end = kept.level.max(**line), np.where(number, 0, -INF), np.where(number, 1 - gone, INF)
        if "log" in name:
            most, low = np.maximum(most, f.level), np.where(number & (f.low > -INF), -1, -INF)
            end = np.where(number, 1, INF)
        return [self._fact(replace(said[0], moves=f.moves), most, low, end)]

    def _attention(self, name: str, b: Any, said: list[Fact], *_: Any) -> list[Fact]:
        """A contraction, masks that are added, a safe softmax, a contraction."""
        (out,), q, k, v, rank = said, b["query"], b["key"], b["value"], len(said[0].shape)
        even = len(q.shape) == len(k.shape) == len(v.shape) == rank
        need(even and abs(b["scale"] or 0) < LARGE, "ranks, or a scale")
        for f in (k, v) if b["enable_gqa"] else ():  # each of their heads serves several
            by, moves = q.shape[-3] // f.shape[-3], (*f.moves[:-3], STILL, *f.moves[-2:])
            wide = replace(f, shape=(*f.shape[:-3], *q.shape[-3:-2], *f.shape[-2:]), moves=moves)
            made = self._moved("", {"self": f}, [wide], lambda leaf, f=f, by=by: [leaf(f).repeat_interleave(by, -3)])
            k, v = (made[0] if x is f else x for x in (k, v))
        shape, lead = (*np.broadcast_shapes(q.shape[:-2], k.shape[:-2]), q.shape[-2], k.shape[-2]), DIMS[: rank - 2]
        blank, visible = replace(q, shape=shape), torch.ones(shape[-2:], dtype=torch.bool).tril()
        scores = self._form(blank, [(q, lead + "xz"), (k, lead + "yz")], lead + "xy", "", torch.mul, "monotone")
        causal = self._constant(tuple(visible.shape), "bool", visible) if b["is_causal"] else None
        for m in (f for f in (causal, b["attn_mask"]) if f is not None):
            plain = ((m.low == -1) & (m.high == 1)).all() & (not m.constant)  # one of which nothing is known may hide
            added = replace(m, low=np.where(plain, -INF, m.low), high=np.where(plain, INF, m.high))
            if m.dtype == "bool":
                added = self._pointwise(replace(q, shape=m.shape), torch.where, "choice", m, 0.0, -INF)
            scores = self._pointwise(blank, torch.add, "monotone", scores, added)
        weights = self._softmax("safe_softmax", {"self": scores, "dim": -1}, [blank], None, [], "", "")[0]
        return [self._form(out, [(weights, lead + "xy"), (v, lead + "yz")], lead + "xz", "", torch.mul, "monotone")]

    def _labelled(self, name: str, b: Any, said: Any, run: Any, facts: Any, form: str, place: str) -> list[Fact]:
        if form == "equation":
            terms, arrow, result = b["equation"].replace(" ", "").replace("...", "*").partition("->")
            whole = [len(f.shape) == len(t) for f, t in zip(facts, terms.split(","), strict=True)]
            need("*" not in terms or all(t[:1] == "*" for t in terms.split(",")) or all(whole), "an ellipsis inside")
            once = sorted(x for x in set(terms) if terms.count(x) == 1 and x.isalpha())
            form = terms.replace(",", " ") + "->" + (result if arrow else "*" * ("*" in terms) + "".join(once))
        terms, result = (x.strip() for x in form.split("->"))
        facts = facts[:1] * form.startswith("* >") + facts  # a normalisation reads itself and its whole lines
        wide = len(facts[0].shape) if result == "-" else len(said[0].shape) - sum(x.isalnum() for x in result)
        last = len(b.get("normalized_shape") or b.get("s") or range(wide - (name == "group_norm")))
        own = b.get("dim", 0 if name == "msort" else None)
        own = [own] if isinstance(own, int) else own or range(wide - last, wide)
        dims = sorted({d % max(wide, 1) for d in own})
        kinds = {"*": DIMS, "#": DIMS, "<": "ABCDEFGHIJ", ">": "abcdefghij"}
        texts = {c: "".join((x if d in dims else DIMS)[d] for d in range(wide)) for c, x in kinds.items()}
        texts |= {"-": "".join(DIMS[d] for d in range(wide) if d not in dims), "#": "".join(DIMS[d] for d in dims)}
        goal = "*" if b.get("keepdim") else result
        *labels, goal = ("".join(texts.get(c, c) for c in t) for t in (*terms.split(), goal))
        labels += [labels[-1]] * (len(facts) - len(labels))
        pairs = [(f, t[len(t) - len(f.shape) :]) for f, t in zip(facts, labels, strict=False)]
        first, _, rest = place.partition("+")
        product, made = (lambda *x: reduce(torch.mul, x)) if len(facts) < 3 or name == "einsum" else None, []
        need(not b.get("training"), "what depends on training")
        lines = [[s for d, s in enumerate(f.shape) if d not in dims] for f in facts if name[:6] in ("gather", "scatte")]
        need(all(x == lines[0] for x in lines), "it does not read, or write, every line")
        first += "" if b.get("sorted", True) else rest  # where the largest need not stand in order
        for k, out in enumerate(said):
            still = "".join("".join(kinds[c][d] for d in dims) if c in kinds else c for c in first + rest * (k > 0))
            how = ("", product, "monotone") if place == "zero" else (still,)
            f = self._fact(out, NEVER) if 0 in out.shape else self._form(out, pairs, goal, *how)
            if "int" in out.dtype and all("float" in x.dtype for x in facts):  # a place, or a count
                f = replace(f, low=0 * f.level - 1.0, high=0 * f.level + 1.0)
            if "cum" in name:  # whatever stands before it counts too
                line: dict[str, Any] = {"axis": dims[0], "keepdims": True}
                level = np.maximum.accumulate(f.level, axis=dims[0])
                f = replace(f, level=level, low=f.low.min(**line), high=f.high.max(**line))
            made.append(f)
        return made

    def _written(self, name: str, b: Any, said: list[Fact], run: Any, facts: Any, *_: Any) -> list[Fact]:
        """Each element is as it was, or what is written; a number, where it is certain to be."""
        (f,) = self._labelled(name, b, said, run, facts, "* < > -> *", "#<>")
        own, new = b["self"], b.get("src", b.get("value"))
        news = (new.low.min(), new.high.max()) if isinstance(new, Fact) else (new, new)
        ends = np.minimum(own.low.min(), news[0]), np.maximum(own.high.max(), news[1])  # no number stays none
        low, high = (0 * f.level + end for end in ends)
        dim, sure = b["index"].among or (0, np.array([]))
        along = dim == b["dim"] % max(len(f.shape), 1) and sure.shape[dim : dim + 1] == f.shape[dim : dim + 1]
        if along and not isinstance(new, Fact):  # of places of lines as long
            low, high = (np.where(sure, new, end) for end in (low, high))
        return [self._fact(replace(f, moves=f.moves), f.level, low, high)]

    def _indexed(self, name: str, b: Any, said: list[Fact], run: Any, facts: Any, *_: Any) -> list[Fact]:
        x, put = b["self"], [b["values"]] if "values" in b else []
        need(name != "index_select" or (x.shape and len(b["index"].shape) == 1), "single numbers")
        places = [None] * (b["dim"] % len(x.shape)) + [b["index"]] if name == "index_select" else b["indices"]
        if not put and all(f.tensor is not None for f in facts if f is not x):
            return self._moved(name, b, said, run)
        read, own = [d for d, f in enumerate(places) if f is not None], DIMS[: len(x.shape)]
        if any(places[d].dtype in ("bool", "uint8") for d in read):  # a number, written where a mask says so
            need(len(put) == len(read) == 1 == math.prod(put[0].shape), "a boolean index")
            mask, ones = places[read[0]], "qrstuvwxyz"[: len(put[0].shape)]
            return [self._form(said[0], [(x, own), (mask, own[read[0] :][: len(mask.shape)]), (put[0], ones)], own)]
        line = "stuvwxyz"[: max(len(places[d].shape) for d in read)]
        rest = "".join(own[d] for d in range(len(own)) if d not in read)
        first = read[0] if read[-1] - read[0] < len(read) else 0
        whole, still = rest[:first] + line + rest[first:], "".join(own[d] for d in read) + line * len(put)
        parts = zip([x, *(places[d] for d in read), *put], [own, *(line for _ in read), whole], strict=False)
        return [self._form(said[0], [(f, t[len(t) - len(f.shape) :]) for f, t in parts], own if put else whole, still)]

    def _convolution(self, name: str, b: Any, said: list[Fact], run: Any, facts: Any, *_: Any) -> list[Fact]:
        """Which places each output reads is seen by running it on ones, for each level."""
        (out,), x, kernel, rank = said, b["input"], b["weight"].shape[2:], len(said[0].shape)
        first, seen, ones = rank - len(kernel), np.array(NEVER), torch.ones(1, 1, *kernel).double()
        level = x.level.max(axis=first - 1, keepdims=True)
        level = np.broadcast_to(level, (*level.shape[:first], *x.shape[first:]))
        for v in np.unique(level):
            (hit,) = run(lambda _: None, input=torch.from_numpy((level >= v) * 1.0), weight=ones, bias=None, groups=1)
            seen = np.where(hit.numpy() > 0, v, seen)
        own = DIMS[first - 1]  # the channel of a result has weights of its own, where it is not transposed
        place, end = own + "ypqrstuv", np.full((1,) * rank, 1 if x.ordinary.all() else INF)
        for d, width in enumerate(kernel, start=first):
            place += DIMS[d] if width > 1 or set(b["stride"]) != {1} or x.shape[d] != out.shape[d] else ""
        plain = replace(x, shape=(*x.shape[:first], *out.shape[first:]), level=seen, low=-end, high=end)
        weights = ("p" if b.get("transposed") else own) + "qrstuv"[: len(kernel) + 1]
        rest = [(f, weights if len(f.shape) > 1 else own) for f in facts if f is not x]
        return [self._form(out, [(plain, DIMS[: first - 1] + "y" + DIMS[first:rank]), *rest], DIMS[:rank], place)]

    def _pooled(self, name: str, b: Any, said: list[Fact], run: Any, *_: Any) -> list[Fact]:
        """Which places a window reads is seen by running it on ones, for each level."""
        out, key = said[0], "self" if "self" in b else "input"
        x, lead = b[key], len(out.shape) - int(next(c for c in name if c.isdigit()))
        mixed = name in ("upsample_bilinear2d", "upsample_bicubic2d")  # of weights that may add up to zero
        whole = tuple(range(lead, len(x.shape))) if mixed else ()
        level = x.level.max(axis=whole, keepdims=True) if whole else x.level
        level = np.broadcast_to(level, (*level.shape[:lead], *x.shape[lead:]))
        seen = np.full((*level.shape[:lead], *out.shape[lead:]), NEVER)
        for v in np.unique(level[level > NEVER]):
            hit = run(lambda _: None, **{key: torch.from_numpy((level >= v) * 1.0)})[0]
            seen = np.where(hit.numpy() != 0, v, seen)  # what it divides by may be negative
        own, made = DIMS[: len(out.shape)], []
        for each in said:  # numbers, and their places
            end = np.full((1,) * len(out.shape), 1 if x.ordinary.all() or "int" in each.dtype else INF)
            plain = replace(x, shape=(*x.shape[:lead], *out.shape[lead:]), level=seen, low=-end, high=end)
            made.append(self._form(each, [(plain, own)], own, own[lead:]))
        return made
