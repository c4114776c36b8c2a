"""Models whose control flow reads a token, a weight or a random number: no graph is the model."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.corpus.parts import rare
from tests.diagnosis.corpus.recording import ROWS, TOKENS, WIDTH, Model, doubled_if, refused


# Reading a token, in every way that Python has.
@refused
def branch_on_a_token(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, x[0, 0, 0] > 0)


@refused
def branch_on_a_norm(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, x.norm().item() > 5)


@refused
def branch_through_a_float(model: Model, x: Tensor) -> Tensor:
    return x * float(x.sum())


@refused
def branch_through_numpy(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, x.numpy().sum() > 0)


@refused
def branch_through_a_list(model: Model, x: Tensor) -> Tensor:
    return x * 2 if x.tolist()[0][0][0] > 0 else x


@refused
def branch_on_a_size(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, len(x[x > 0]) > 20)


@refused
def size_from_a_mask(model: Model, x: Tensor) -> Tensor:
    return x[x > 0]


@refused
def size_from_unique(model: Model, x: Tensor) -> Tensor:
    return x * torch.unique((x > 0).long()).numel()


@refused
def branch_on_allclose(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, torch.allclose(x, x.flip(1)))


@refused
def branch_on_a_constant_at_a_token(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, torch.arange(TOKENS)[x[0, :, 0].argmax()] > 3)


@refused
def branch_on_a_tensor_made_of_a_token(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, torch.full((3,), x.sum().item()).sum() > 0)


# Constants that tokens were written into.
@refused
def token_written(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(TOKENS)
    seen[2] = x[0, 0, 0]
    return doubled_if(x, seen.sum() > 0)


@refused
def token_written_into_a_view(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(TOKENS)
    seen.view(1, TOKENS)[:, 2:3].copy_(x[0, 0, :1])
    return doubled_if(x, seen.sum() > 0)


@refused
def token_written_into_the_base_of_a_view(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(TOKENS)
    view = seen[2:3]
    seen.add_(x[0, :, 0])
    return doubled_if(x, view.sum() > 0)


@refused
def token_written_in_other_bits(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(WIDTH, dtype=torch.int32)
    seen.view(torch.float32).copy_(x[0, 0])
    return doubled_if(x, seen.sum() > 0)


@refused
def written_at_the_place_of_a_token(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(TOKENS)
    seen[x[0, :, 0].argmax()] = 1
    return doubled_if(x, seen[3] > 0)


@refused
def written_at_a_place_read_from_a_token(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(TOKENS)
    place = x[0, :, 0].argmax().item()
    torch._check(place >= 0)
    torch._check(place < TOKENS)
    seen.select(0, place).fill_(1)
    return doubled_if(x, seen[3] > 0)


@refused
def token_added_in_place(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(WIDTH)
    seen += x[0, 0]
    return doubled_if(x, seen.sum() > 0)


@refused
def token_put_out(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(WIDTH)
    torch.add(x[0, 0], 1, out=seen)
    return doubled_if(x, seen.sum() > 0)


@refused
def token_added_in_a_list(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(WIDTH)
    torch._foreach_add_([seen], [x[0, 0]])
    return doubled_if(x, seen.sum() > 0)


@refused
def token_put_as_data(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(ROWS, TOKENS, WIDTH)
    seen.data = x
    return doubled_if(x, seen.sum() > 0)


@refused
def token_put_as_storage(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(ROWS, TOKENS, WIDTH)
    seen.set_(x)
    return doubled_if(x, seen.sum() > 0)


@refused
def token_scattered(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(WIDTH)
    seen.scatter_(0, x[0, 0].argmax()[None], 1.0)
    return doubled_if(x, seen[0] > 0)


class Writing(torch.autograd.Function):
    """A write that an autograd function hides."""

    @staticmethod
    def forward(ctx: object, seen: Tensor, x: Tensor) -> Tensor:
        seen.copy_(x[0, 0])
        return seen


@refused
def token_written_by_an_autograd_function(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(WIDTH)
    Writing.apply(seen, x)
    return doubled_if(x, seen.sum() > 0)


@refused
def token_written_after_the_constant_was_read(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(WIDTH)
    x = doubled_if(x, seen.sum() == 0)
    seen.add_(x[0, 0])
    return doubled_if(x, seen.sum() > 0)


@refused
def token_written_under_an_array(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(WIDTH)
    array = seen.numpy()
    seen.copy_(x[0, 0])
    return doubled_if(x, array.sum() > 0)


@refused
def token_written_into_a_loose_tensor(model: Model, x: Tensor) -> Tensor:
    model.loose.copy_(x[0, 0, :3])
    return doubled_if(x, model.loose.sum() > 0)


# What is neither tokens nor constant.
@refused
def branch_on_a_weight(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, model.weight.sum() > 0)


@refused
def branch_on_a_masked_weight(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, (torch.ones_like(model.weight) * model.weight).sum() > 0)


@refused
def branch_on_a_draw(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, torch.rand(3).sum() > 1)


@refused
def branch_on_a_draw_in_place(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, torch.zeros(3).uniform_().sum() > 1)


@refused
def branch_on_what_stood_in_memory(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, torch.empty(3).sum() > 0)


@refused
def branch_on_memory_that_grew(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, torch.zeros(3).resize_(30).sum() > 0)


@refused
def token_put_as_data_and_read_by_nothing(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(ROWS, TOKENS, WIDTH)
    seen.data = x.clone()
    return x + rare(seen[:, -1:])
