"""Small random programs: a list of operations, each a name and four numbers, interpreted as a module.

Every list is a program: an operation that does not fit the values made so far is left out. So a failing
program shrinks to the few operations that matter. Sums keep odd coefficients, and operators with jumps read
only values that no arithmetic has touched: what differs between two runs is then never rounding alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx

from orderproof.prover.capture import Captured

BATCH, TOKENS, WIDTH = 2, 5, 4
LARGEST = 1200  # [elements] of any value
ERRORS = (RuntimeError, IndexError, ValueError, TypeError, ZeroDivisionError, NotImplementedError)

Operation = tuple[str, int, int, int, int]


@dataclass(frozen=True)
class Value:
    """A tensor, and whether it holds elements of the input as they came: no arithmetic, no rounding."""

    tensor: Tensor
    exact: bool = False


class Skip(Exception):
    """The operation does not fit here."""


class Env:
    """The values made so far, and the module's own tensors."""

    def __init__(self, x: Tensor, owner: nn.Module) -> None:
        self.values = [Value(x, exact=True)]
        self.owner = owner

    def pick(self, k: int, fits: Callable[[Tensor], bool] = lambda _: True, *, exact: bool = False) -> Value:
        """The k-th latest value that fits."""
        found = [v for v in reversed(self.values) if (v.exact or not exact) and fits(v.tensor)]
        if not found:
            raise Skip
        return found[k % len(found)]

    def tensor(self, k: int, rank: int = 0) -> Tensor:
        """The k-th latest tensor of at least this rank."""
        return self.pick(k, lambda t: t.dim() >= rank).tensor


Function = Callable[[Env, int, int, int, int], Value | Tensor]
OPERATIONS: dict[str, Function] = {}


def operation(function: Function) -> Function:
    OPERATIONS[function.__name__] = function
    return function


# ---------------------------------------------------------------- tensors that depend on no token

TRIANGLE = torch.ones(TOKENS, TOKENS).triu(1).bool()


def symmetric_or_not(kind: int) -> Tensor:
    """A constant over tokens: some the same for every order, some only when reversed, some never."""
    place = torch.arange(TOKENS)
    distance = place[None, :] - place[:, None]
    made = [
        lambda: torch.full((TOKENS, 1), 0.3),
        lambda: torch.eye(TOKENS),
        lambda: distance.abs().float() * -0.5,
        lambda: distance.float() * 0.3,
        lambda: (place.float() * 0.7).sin()[:, None],
        lambda: (place - 2).abs().float(),
        lambda: torch.ones(TOKENS, TOKENS).tril(),
        (place[:, None] == 0).float,
        lambda: torch.ones(WIDTH) * 0.9,
        lambda: torch.arange(WIDTH).float() * 0.2,
        lambda: torch.arange(BATCH).float()[:, None, None] + 0.4,
        lambda: torch.zeros(TOKENS, WIDTH),
    ]
    return made[kind % len(made)]()


SHAPES = ((WIDTH,), (TOKENS, 1), (TOKENS, WIDTH), (TOKENS, TOKENS), (TOKENS,), (1, TOKENS, WIDTH), (1,), (BATCH, 1, 1))


class Machine(nn.Module):
    """A program as a module. Its parameters: for each shape one that starts at zero and one that does not."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        for k, shape in enumerate(SHAPES):
            self.register_parameter(f"zero{k}", nn.Parameter(torch.zeros(shape)))
            self.register_parameter(f"drawn{k}", nn.Parameter(torch.randn(shape, generator=generator)))
        for k in range(12):
            self.register_buffer(f"buffer{k}", symmetric_or_not(k))
        self.square = nn.Parameter(torch.randn(WIDTH, WIDTH, generator=generator))
        self.across = nn.Parameter(torch.randn(TOKENS, TOKENS, generator=generator))
        self.table = nn.Parameter(torch.randn(TOKENS, WIDTH, generator=generator))
        self.kernel = nn.Parameter(torch.randn(WIDTH, WIDTH, 3, generator=generator))
        self.operations: list[Operation] = []
        env = Env(torch.linspace(-2, 2, BATCH * TOKENS * WIDTH).view(BATCH, TOKENS, WIDTH).sin(), self)
        with torch.no_grad():
            for each in operations:
                if run_one(env, each):
                    self.operations.append(each)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        env = Env(x, self)
        for each in self.operations:
            run_one(env, each)
        return tuple(v.tensor for v in env.values[1:]) or (x * 1.0,)


def recorded(module: Machine) -> Captured:
    """The module's graph, at the level `capture` gives and a dozen times sooner."""
    stored = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    values = {name: value.detach() for name, value in stored.items()}

    def function(x: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        return torch.func.functional_call(module, dict(zip(values, rest, strict=True)), (x,))

    with torch.no_grad():
        made = make_fx(function, tracing_mode="fake", pre_dispatch=True, _allow_non_fake_inputs=True)(
            torch.zeros(BATCH, TOKENS, WIDTH), *values.values()
        )
    start, *places = [n for n in made.graph.nodes if n.op == "placeholder"]
    state = {n.name: name for n, name in zip(places, values, strict=True)}
    for node in [n for n in made.graph.nodes if n.op == "get_attr"]:
        with made.graph.inserting_before(start.next):
            place = made.graph.placeholder(node.name + "_value")
        place.meta["val"] = node.meta["val"]
        state[place.name] = str(node.target)
        values[str(node.target)] = getattr(made, str(node.target))
        node.replace_all_uses_with(place)
        made.graph.erase_node(node)
    made.graph.eliminate_dead_code()
    results = next(n for n in made.graph.nodes if n.op == "output").args[0]
    return Captured(
        module=made,
        inputs=(start,),
        outputs={f"output.{k}": n for k, n in enumerate(dict.fromkeys(results)) if n is not start},
        state=state,
        parameters=frozenset(dict(module.named_parameters())),
        values=values,
    )


def run_one(env: Env, each: Operation) -> bool:
    """Add the operation's value; whether it fitted."""
    try:
        made = OPERATIONS[each[0]](env, *each[1:])
    except (Skip, *ERRORS):
        return False
    value = made if isinstance(made, Value) else Value(made)
    if value.tensor.numel() > LARGEST or value.tensor.dim() > 5 or value.tensor.numel() == 0:
        return False
    env.values.append(value)
    return True


def floating(value: Value) -> Tensor:
    return value.tensor if value.tensor.is_floating_point() else value.tensor.to(torch.get_default_dtype())


def several(t: Tensor) -> bool:
    return t.dim() >= 1


def has_tokens(t: Tensor) -> bool:
    return t.dim() >= 2 and t.shape[-2] == TOKENS


# ---------------------------------------------------------------- elementwise


@operation
def smooth(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a))
    return [torch.tanh, torch.sigmoid, F.gelu, torch.sin, lambda t: t * 0.5 + 1.0, torch.square, F.silu][b % 7](x)


@operation
def bent(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a)
    x = floating(v)
    made = [torch.relu, torch.abs, torch.neg, lambda t: t.clamp(-0.5, 0.5), torch.clone][b % 5](x)
    return Value(made, v.exact)


@operation
def jump(env: Env, a: int, b: int, c: int, d: int) -> Value:
    x = floating(env.pick(a, exact=True))
    return Value([torch.sign, torch.floor, lambda t: (t > 0).long(), lambda t: (t > 0.3).float()][b % 4](x), exact=True)


@operation
def two(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x, y = floating(env.pick(a)), floating(env.pick(b))
    return [lambda: x + 0.7 * y, lambda: x * y, lambda: x - 0.3 * y, lambda: torch.maximum(x, y)][c % 4]()


@operation
def with_constant(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a))
    constant = symmetric_or_not(b) if d % 2 else getattr(env.owner, f"buffer{b % 12}")
    return [lambda: x + constant, lambda: x * constant, lambda: x / (2 + constant.abs())][c % 3]()


@operation
def with_parameter(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a))
    parameter = getattr(env.owner, f"{('zero', 'drawn')[d % 2]}{b % len(SHAPES)}")
    return [lambda: x + parameter, lambda: x * parameter, lambda: x + parameter * x, lambda: parameter.expand_as(x)][
        c % 4
    ]()


@operation
def chosen(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v, w = env.pick(a), env.pick(b)
    x, y = floating(v), floating(w)
    condition = [TRIANGLE, ~TRIANGLE, torch.eye(TOKENS).bool(), torch.arange(TOKENS)[:, None] < 2, torch.ones(1).bool()]
    return Value(torch.where(condition[c % 5], x, y), v.exact and w.exact)


@operation
def chosen_by_data(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    question = floating(env.pick(c, exact=True)) > 0
    return torch.where(question, floating(env.pick(a)), floating(env.pick(b)))


@operation
def filled(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, lambda t: t.is_floating_point())
    masks = [TRIANGLE, torch.eye(TOKENS).bool(), torch.arange(TOKENS)[:, None] == TOKENS - 1, TRIANGLE.T]
    value = [0.0, float("-inf"), -1e9, torch.finfo(torch.float32).min, -1e4, 1.0][c % 6]
    return Value(v.tensor.masked_fill(masks[b % 4], value), v.exact)


# ---------------------------------------------------------------- products and attention


@operation
def product(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x, y = floating(env.pick(a, several)), floating(env.pick(b, several))
    if c % 2 and y.dim() > 1:
        y = y.transpose(-1, -2)
    return (x @ y) * 0.4


@operation
def linear(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    if b % 3:
        return F.linear(floating(env.pick(a, lambda t: t.dim() and t.shape[-1] == WIDTH)), env.owner.square)
    return F.linear(floating(env.pick(a, lambda t: t.dim() and t.shape[-1] == TOKENS)), env.owner.across)


@operation
def summed(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x, y = (floating(env.pick(k, lambda t: t.dim() == 3)) for k in (a, b))
    equation = ["bij,bkj->bik", "bij,bij->bi", "bij,bij->bj", "bij,bjk->bik", "bij,bik->bjk", "bij,bkl->bijkl"]
    return torch.einsum(equation[c % 6], x, y) * 0.4


def scores_masked(scores: Tensor, kind: int, tier: int) -> Tensor:
    mask = [TRIANGLE, ~TRIANGLE & ~torch.eye(TOKENS).bool(), torch.eye(TOKENS).bool(), TRIANGLE.roll(1, 0)][kind % 4]
    if tier % 8 == 7:
        return scores
    if tier % 8 == 6:
        return torch.where(mask, torch.full((), float("-inf")), scores)
    value = [float("-inf"), torch.finfo(torch.float32).min, -1e9, -1e4, float("-inf"), 0.0][tier % 8]
    if tier % 2:
        return scores.masked_fill(mask, value)
    return scores + torch.zeros(TOKENS, TOKENS).masked_fill(mask, value)


@operation
def attend(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    q, k, v = (floating(env.pick(i, has_tokens)) for i in (a, a + b, b))
    scores = scores_masked(q @ k.transpose(-1, -2) * 0.5, c, d)
    return torch.softmax(scores, -1) @ v


@operation
def attend_whole(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    q, k, v = (floating(env.pick(i, lambda t: has_tokens(t) and t.dim() in (3, 4))) for i in (a, a + b, b))
    if c % 3 == 0:
        return F.scaled_dot_product_attention(q, k, v, is_causal=bool(d % 2))
    mask = scores_masked(torch.zeros(TOKENS, TOKENS), d, c)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask if d % 2 else mask == 0)


@operation
def masked_scores(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    return scores_masked(floating(env.pick(a, lambda t: has_tokens(t) and t.shape[-1] == TOKENS)), b, c)


@operation
def softmax(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a, several))
    return (torch.softmax, torch.softmax, torch.log_softmax)[c % 3](x, b % x.dim())


@operation
def conv(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a, lambda t: t.dim() == 3 and t.shape[1] == WIDTH))
    kernel = env.owner.kernel
    if b % 2:
        return F.conv1d(x, kernel[:, :, :1])
    return F.conv1d(F.pad(x, (2, 0)) if c % 2 else x, kernel, padding=0 if c % 2 else 1)


# ---------------------------------------------------------------- movement


@operation
def swapped(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, lambda t: t.dim() >= 2)
    return Value(v.tensor.transpose(b % v.tensor.dim(), c % v.tensor.dim()), v.exact)


@operation
def merged(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, lambda t: t.dim() >= 2)
    k = b % (v.tensor.dim() - 1)
    return Value(v.tensor.flatten(k, k + 1), v.exact)


@operation
def parted(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, several)
    k = b % v.tensor.dim()
    size = v.tensor.shape[k]
    left = [BATCH, TOKENS, WIDTH, 2, TOKENS * WIDTH][c % 5]
    if size % left or left == size:
        raise Skip
    return Value(v.tensor.unflatten(k, (left, size // left)), v.exact)


@operation
def reshaped(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a)
    shapes = [(BATCH, TOKENS, WIDTH), (-1,), (TOKENS, -1), (BATCH, WIDTH, TOKENS), (BATCH, -1), (BATCH, TOKENS, -1)]
    return Value(v.tensor.reshape(shapes[b % 6]), v.exact)


@operation
def sliced(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, several)
    k = b % v.tensor.dim()
    cut = [slice(1, None), slice(None, -1), slice(None, None, 2), slice(0, 2), slice(0, 1)][c % 5]
    return Value(v.tensor[(slice(None),) * k + (cut,)], v.exact)


@operation
def selected(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, several)
    k = b % v.tensor.dim()
    return Value(v.tensor.select(k, c % v.tensor.shape[k]), v.exact)


@operation
def joined(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v, w = env.pick(a, several), env.pick(b, several)
    x, y = floating(v), floating(w)
    if d % 3 == 2:
        return Value(torch.stack([x, y], c % (x.dim() + 1)), v.exact and w.exact)
    return Value(torch.cat([x, y], c % x.dim()), v.exact and w.exact)


@operation
def halves(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a, several))
    first, second = x.chunk(2, b % x.dim())
    return torch.cat([-second, first], b % x.dim())


@operation
def turned(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, several)
    k = b % v.tensor.dim()
    return Value(v.tensor.flip(k) if c % 2 else v.tensor.roll(1 + d % 3, k), v.exact)


@operation
def padded(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    return F.pad(floating(env.pick(a, lambda t: t.dim() >= 2)), [(1, 0), (0, 1), (0, 0, 1, 0), (0, 0, 0, 1)][b % 4])


@operation
def widened(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a)
    k = b % (v.tensor.dim() + 1)
    x = v.tensor.unsqueeze(k)
    sizes = [-1] * x.dim()
    sizes[k] = [TOKENS, 2, 1, WIDTH][c % 4]
    return Value(x.expand(sizes), v.exact)


@operation
def averaged_and_spread(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a, several))
    return x.mean(b % x.dim(), keepdim=True).expand_as(x)


@operation
def repeated(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, several)
    k = b % v.tensor.dim()
    if c % 2:
        return Value(v.tensor.repeat_interleave(2, k), v.exact)
    return Value(v.tensor.repeat([2 if i == k else 1 for i in range(v.tensor.dim())]), v.exact)


@operation
def picked_by_constant(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, several)
    k = b % v.tensor.dim()
    size = v.tensor.shape[k]
    index = [torch.arange(size).flip(0), torch.zeros(size).long(), (torch.arange(size) + 1) % size, torch.arange(size)]
    chosen_index = index[c % 4]
    if d % 3 == 0:
        return Value(v.tensor.index_select(k, chosen_index), v.exact)
    if d % 3 == 1:
        return Value(v.tensor[(slice(None),) * k + (chosen_index,)], v.exact)
    spread = chosen_index.view([-1 if i == k else 1 for i in range(v.tensor.dim())]).expand(v.tensor.shape)
    return Value(v.tensor.gather(k, spread), v.exact)


@operation
def looked_up(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    index = (floating(env.pick(a, exact=True)) > 0).long() + b % 3
    return F.embedding(index, env.owner.table if c % 2 else torch.linspace(-1, 1, 20).view(TOKENS, WIDTH))


@operation
def looked_up_in_tokens(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    v = env.pick(a, lambda t: t.dim() == 3 and t.shape[1] == TOKENS)
    index = (floating(env.pick(b, lambda t: t.shape == v.tensor.shape, exact=True)) > 0).long() + c % 3
    return floating(v).gather(1, index)


# ---------------------------------------------------------------- reductions, norms, scans


@operation
def reduced(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a, several))
    k, keep = b % x.dim(), bool(d % 2)
    made = [
        lambda: x.sum(k, keepdim=keep),
        lambda: x.mean(k, keepdim=keep),
        lambda: x.amax(k, keepdim=keep),
        lambda: x.logsumexp(k, keepdim=keep),
        lambda: x.var(k, correction=0, keepdim=keep),
        lambda: x.mean((-1, -2), keepdim=keep) if x.dim() > 1 else x.mean(),
        lambda: x.norm(dim=k, keepdim=keep),
    ]
    return made[c % 7]()


@operation
def largest(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, lambda t: several(t) and t.is_floating_point(), exact=True)
    k = b % v.tensor.dim()
    found = [
        lambda: v.tensor.max(k)[d % 2],
        lambda: v.tensor.min(k, keepdim=True)[d % 2],
        lambda: v.tensor.argmax(k),
        lambda: v.tensor.topk(2, k)[d % 2],
        lambda: v.tensor.sort(k)[0],
        lambda: v.tensor.cummax(k)[0],
    ][c % 6]()
    return Value(found, exact=True)


@operation
def normed(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a, several))
    if d % 3 == 2 and x.dim() >= 3:
        return F.group_norm(x, 1 if x.shape[1] % 2 else 2)
    count = 1 + (b % 2 if x.dim() > 1 else 0)
    shape = tuple(x.shape[-count:])
    weights = {(WIDTH,): env.owner.drawn0, (TOKENS, WIDTH): env.owner.drawn2, (TOKENS,): env.owner.drawn4}
    weight = weights.get(shape) if c % 2 else None
    return F.layer_norm(x, shape, weight) if d % 3 else F.rms_norm(x, shape, weight, eps=1e-5)


@operation
def scanned(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a, several))
    return x.cumsum(b % x.dim())


@operation
def triangular(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, lambda t: t.dim() >= 2)
    return Value(v.tensor.tril(c % 2 - 1) if b % 2 else v.tensor.triu(c % 2), v.exact)


@operation
def written(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, lambda t: several(t) and t.is_floating_point())
    x = v.tensor
    k = b % x.dim()
    row = x.select(k, 0)
    if d % 3 == 2:
        return Value(x.slice_scatter(x.narrow(k, 0, 1) * 0.5, k, x.shape[k] - 1, None))
    return Value(x.select_scatter(torch.full_like(row, 0.25) if d % 3 else row * 0.5, k, c % x.shape[k]))


@operation
def windows(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, several)
    return Value(v.tensor.unfold(b % v.tensor.dim(), 2, 1), v.exact)


# ---------------------------------------------------------------- borders, pools, maps read anew, places of the largest


@operation
def bordered(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, lambda t: t.dim() in (2, 3, 4) and t.is_floating_point())
    widths = (c % 3, d % 3) if v.tensor.dim() < 4 else (0, 0, c % 3, d % 3)
    return Value(F.pad(v.tensor, widths, ("reflect", "replicate", "circular")[b % 3]), v.exact)


@operation
def pooled(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, lambda t: t.dim() in (2, 3) and t.is_floating_point(), exact=b % 6 == 3)
    x = v.tensor if d % 2 else v.tensor.mT
    made = [
        lambda: F.max_pool1d(x, 2, 1, padding=1),
        lambda: F.max_pool1d(x, 2, 1 + c % 2, dilation=1 + c % 3, padding=1, ceil_mode=bool(d % 3)),
        lambda: F.avg_pool1d(x, 2 + c % 2, 1, padding=1, count_include_pad=bool(d % 3)),
        lambda: F.max_pool1d(x, 3, 1, padding=1, return_indices=True)[1],
        lambda: F.adaptive_avg_pool1d(x, 1 + c % 4),
        lambda: F.max_pool2d(x[None], (2, 1), 1, padding=(1, 0))[0],
    ][b % 6]()
    return Value(made if d % 2 else made.mT, v.exact and b % 6 not in (2, 4))


@operation
def enlarged(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, lambda t: t.dim() == 3 and t.is_floating_point())
    n, w = v.tensor.shape[1:]
    size, mode = (
        [(2 * n, w), (n, 2 * w), (n + 1, w), (n - 1, w), (n, w)][b % 5],
        ("nearest", "bilinear", "bicubic")[c % 3],
    )
    made = F.interpolate(v.tensor[:, None], size=size, mode=mode, align_corners=bool(d % 2) if c % 3 else None)[:, 0]
    return Value(made, v.exact and not c % 3)


@operation
def sampled(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a, lambda t: t.dim() == 3))
    y = floating(env.pick(b, lambda t: t.dim() == 3 and t.shape[0] == x.shape[0] and t.shape[-1] > 1))
    mode = ("zeros", "border", "reflection")[c % 3]
    return F.grid_sample(x[:, None], y[:, :, None, :2].sin(), padding_mode=mode, align_corners=bool(d % 2))[:, 0]


@operation
def marked(env: Env, a: int, b: int, c: int, d: int) -> Value:
    x = env.pick(a, lambda t: has_tokens(t) and t.is_floating_point(), exact=True).tensor
    if c % 3 and x.shape[-1] == TOKENS:
        x = x.masked_fill(TRIANGLE, -torch.inf if c % 3 == 1 else -1e9)
    places = x.topk(1 + b % x.shape[-1], -1, largest=d % 4 > 0)[1]
    return Value(torch.zeros(*x.shape[:-1], x.shape[-1] + d % 2).scatter(-1, places, 1.0), exact=True)
