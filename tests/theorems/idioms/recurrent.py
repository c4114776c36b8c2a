"""Recurrent layers, loops over tokens and outputs that are written row by row."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.theorems.idioms.idiom import WIDTH, Idiom


class Lstm(nn.Module):
    """nn.LSTM."""

    def __init__(self, *, bidirectional: bool = False) -> None:
        super().__init__()
        self.rnn = nn.LSTM(WIDTH, WIDTH, batch_first=True, bidirectional=bidirectional)

    def forward(self, x: Tensor) -> Tensor:
        return self.rnn(x)[0]


class BothWays(Lstm):
    """nn.LSTM in both directions."""

    def __init__(self) -> None:
        super().__init__(bidirectional=True)


class LastState(Lstm):
    """The last state is added to every token."""

    def forward(self, x: Tensor) -> Tensor:
        out, (h, _) = self.rnn(x)
        return out + h[-1][:, None]


class TwoLayers(nn.Module):
    """Two layers of nn.LSTM, tokens first."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(WIDTH, WIDTH, num_layers=2)

    def forward(self, x: Tensor) -> Tensor:
        return self.rnn(x.transpose(0, 1))[0].transpose(0, 1)


class Gru(nn.Module):
    """nn.GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(WIDTH, WIDTH, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out, _ = self.rnn(x)
        return x + out


class GruReversed(Gru):
    """nn.GRU on tokens in reverse."""

    def forward(self, x: Tensor) -> Tensor:
        return self.rnn(x.flip(1))[0].flip(1)


class Rnn(nn.Module):
    """nn.RNN."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.RNN(WIDTH, WIDTH, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.rnn(x)[0]


class CellInLoop(nn.Module):
    """nn.LSTMCell in a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        h = c = torch.zeros(x.shape[0], WIDTH)
        out = []
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h, c))
            out.append(h)
        return torch.stack(out, 1)


class CellOfNext(CellInLoop):
    """Each step reads the next token."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.roll(-1, 1))


class GruCellUnbound(nn.Module):
    """nn.GRUCell, for each token of `unbind`."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[0], WIDTH)
        out = []
        for x_t in x.unbind(1):
            h = self.cell(x_t, h)
            out.append(h)
        return torch.stack(out, dim=1)


class Preallocated(nn.Module):
    """An output of zeros, written row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        out = torch.zeros_like(x)
        h = torch.zeros(x.shape[0], WIDTH)
        for t in range(x.shape[1]):
            h = torch.tanh(self.a(x[:, t]) + self.b(h))
            out[:, t] = h
        return out


class PreallocatedNext(Preallocated):
    """The rows are written one place too early."""

    def forward(self, x: Tensor) -> Tensor:
        out = torch.zeros_like(x)
        h = torch.zeros(x.shape[0], WIDTH)
        for t in range(x.shape[1]):
            h = torch.tanh(self.a(x[:, t]) + self.b(h))
            out[:, max(t - 1, 0)] = h
        return out


class Appended(Preallocated):
    """Outputs with `unsqueeze`, joined by `cat`."""

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.shape[0], WIDTH)
        out = []
        for t in range(x.size(1)):
            h = torch.tanh(self.a(x[:, t, :]) + self.b(h))
            out.append(h.unsqueeze(1))
        return torch.cat(out, dim=1)


IDIOMS = {
    "nn.LSTM": Idiom(Lstm, BothWays),
    "nn.LSTM of two layers": Idiom(TwoLayers, LastState),
    "nn.GRU": Idiom(Gru, GruReversed),
    "nn.RNN": Idiom(Rnn),
    "nn.LSTM by rows": Idiom(BothWays, law="batch"),
    "nn.LSTMCell in a loop": Idiom(CellInLoop, CellOfNext),
    "nn.GRUCell over unbind": Idiom(GruCellUnbound),
    "preallocated output": Idiom(Preallocated, PreallocatedNext),
    "outputs joined by cat": Idiom(Appended),
}
