"""Products, convolutions, normalizations and pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.models.onnx_file.sweep.draw import MICROSOFT, REAL, Call, Draw, drawn

ACTIVATIONS: dict[str, list[float]] = {
    "Relu": [], "Tanh": [], "Sigmoid": [], "LeakyRelu": [0.3], "Clip": [-0.2, 0.5], "HardSigmoid": [0.3, 0.4],
}  # fmt: skip


@drawn("MatMul")
def matmul(draw: Draw) -> Call:
    """Matrices, vectors and batches that broadcast."""
    inner, batch = draw.size(), draw.shape(0, 2)
    a, b = [*draw.parts(batch), draw.size(), inner], [*draw.parts(batch), inner, draw.size()]
    a, b = draw.pick((a, b), (a, b), ([inner], b), (a, [inner]))
    return Call([draw.tensor(*a), draw.tensor(*b)], stored=draw.pick((), (1,)))


@drawn("FusedMatMul", domain=MICROSOFT, types={"T": REAL})
def fused_matmul(draw: Draw) -> Call:
    """Factors that are transposed over batches, over matrices, or not."""
    batch, inner, shapes, attributes = (
        draw.size(1),
        draw.size(1),
        {},
        draw.some(alpha=float(draw.random.uniform(-1, 2))),
    )
    for key, (rows, columns) in {"A": (draw.size(1), inner), "B": (inner, draw.size(1))}.items():
        flip, turned = draw.flag(), draw.flag()
        matrix = (columns, rows) if flip else (rows, columns)
        shapes[key] = (matrix[0], batch, matrix[1]) if turned else (batch, *matrix)
        attributes |= {f"trans{key}": flip, f"transBatch{key}": turned}
    return Call([draw.tensor(*shapes["A"]), draw.tensor(*shapes["B"])], attributes)


@drawn("TransposeMatMul", domain=MICROSOFT, types={"T": REAL})
def turned_product(draw: Draw) -> Call:
    """Factors that may be transposed, times a number."""
    size = draw.size(1)
    attributes = {"transA": draw.flag(), "transB": draw.flag(), **draw.some(alpha=0.5)}
    return Call([draw.tensor(draw.size(1), size, size), draw.tensor(size, size)], attributes)


@drawn("Gemm")
@drawn("FusedGemm", domain=MICROSOFT, types={"T": REAL})
def gemm(draw: Draw) -> Call:
    """Factors that may be transposed, and a bias that broadcasts."""
    rows, inner, columns = draw.size(), draw.size(), draw.size()
    attributes: dict[str, Any] = draw.some(transA=draw.flag(), transB=draw.flag(), alpha=0.5, beta=1.5)
    a = draw.tensor(*((inner, rows) if attributes.get("transA") else (rows, inner)))
    b = draw.tensor(*((columns, inner) if attributes.get("transB") else (inner, columns)))
    if draw.name == "FusedGemm":
        names = ("Relu", "Tanh", "Sigmoid", "LeakyRelu", "Elu", "HardSigmoid", "Softplus", "Softsign")
        attributes |= {"activation": draw.pick(*names), "activation_alpha": 0.3, "activation_beta": 0.4}
    return Call([a, b, draw.maybe(draw.tensor(*draw.parts((rows, columns))))], attributes, stored=draw.pick((), (1, 2)))


def window(draw: Draw, rank: int) -> dict[str, Any]:
    """Strides, dilations and padding of a convolution with three entries or one, which the file states or not."""
    kernel = [draw.pick(1, 3) for _ in range(rank)]
    attributes: dict[str, Any] = draw.some(
        strides=[draw.number(1, 3) for _ in kernel], dilations=[draw.number(1, 2) for _ in kernel]
    )
    form = draw.number(0, 3)
    if form == 0:
        attributes["pads"] = [draw.number(0, n - 1) for n in kernel * 2]
    elif form == 1:
        attributes["auto_pad"] = draw.pick("SAME_UPPER", "SAME_LOWER", "VALID")
    return {"kernel_shape": kernel, **attributes}


@drawn("Conv")
@drawn("FusedConv", domain=MICROSOFT, types={"T": REAL})
def convolution(draw: Draw) -> Call:
    """One to three axes, groups and a bias."""
    rank, group, channels = draw.number(1, 3), draw.pick(1, 3), draw.pick(1, 3)
    attributes, filters = window(draw, rank), group * draw.pick(1, 2)
    x = draw.tensor(draw.size(), group * channels, *(max(draw.size(), 5) for _ in range(rank)))
    weight = draw.tensor(filters, channels, *attributes["kernel_shape"])
    attributes["group"] = group
    arrays = [x, weight, draw.maybe(draw.tensor(filters))]
    if draw.name == "FusedConv":
        attributes["activation"] = draw.pick(*ACTIVATIONS)
        numbers = ACTIVATIONS[attributes["activation"]]
        attributes |= {"activation_params": numbers} if numbers else {}
    elif draw.flag():
        del attributes["kernel_shape"]
    return Call(arrays, attributes, stored=draw.pick((), (1, 2)))


@drawn("ConvTranspose")
def turned_convolution(draw: Draw) -> Call:
    """Strides, dilations, groups, padding that may differ before and after, and more places at the end."""
    rank, group = draw.number(1, 2), draw.pick(1, 3)
    attributes: dict[str, Any] = {**window(draw, rank), "group": group}
    steps = attributes.get("strides", [1] * rank)
    attributes |= draw.some(output_padding=[draw.number(0, n - 1) for n in steps])
    x = draw.tensor(draw.size(1), group * 2, *(max(draw.size(), 3) for _ in range(rank)))
    weight = draw.tensor(group * 2, 3, *attributes["kernel_shape"])
    return Call([x, weight, draw.maybe(draw.tensor(group * 3))], attributes)


@drawn("Einsum")
def einsum(draw: Draw) -> Call:
    """Products, sums, diagonals and transposed axes."""
    equation = draw.pick(
        "bij,bjk->bik", "bij,bkj", "...i,ij->...j", "ij->ji", "ij->", "ii->i", "i,j->ij", "ij,jk,kl->il"
    )
    least = 0 if draw.kinds["T"] in REAL else 1  # an empty product of integers ends the process of the runtime
    labels = {label: draw.size(least) for label in "bijkl"}
    shapes = [
        [
            n
            for label in part.replace("...", ".")
            for n in ([labels["b"], labels["l"]] if label == "." else [labels[label]])
        ]
        for part in equation.split("->")[0].split(",")
    ]
    return Call([draw.tensor(*shape) for shape in shapes], {"equation": equation})


@drawn("Softmax", "LogSoftmax", versions=(23, 11))
def softmax(draw: Draw) -> Call:
    """One axis; before version 13 all axes from there on."""
    shape = draw.shape(1)
    return Call([draw.tensor(*shape)], draw.some(axis=draw.axis(len(shape))) if len(shape) > 1 else {"axis": -1})


@drawn("LayerNormalization", "RMSNormalization")
@drawn("SimplifiedLayerNormalization", types={"T": REAL, "V": REAL})
def layer_norm(draw: Draw) -> Call:
    """The last axes, a scale, a bias and a small number."""
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    own, of = shape[axis % len(shape) :], "V" if "V" in draw.kinds else "T"
    arrays = [draw.tensor(*shape), draw.tensor(*own, of=of)]
    if draw.name == "LayerNormalization":
        arrays.append(draw.maybe(draw.tensor(*own, of=of)))
    attributes = {"axis": axis, **draw.some(epsilon=draw.pick(1e-12, 1e-3))}
    return Call(arrays, attributes, stored=draw.pick((), (1, 2)))


@drawn("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=MICROSOFT, types={"T": REAL})
def skip_norm(draw: Draw) -> Call:
    """A sum of two or three parts, the second of which may broadcast over rows."""
    rows, tokens, width = draw.size(), draw.size(), draw.size(1)
    skip = draw.tensor(*draw.pick((tokens, width), (1, tokens, width), (rows, tokens, width)))
    simple = draw.name == "SkipSimplifiedLayerNormalization"
    weights = [draw.tensor(width)] if simple else [draw.tensor(width), draw.maybe(draw.tensor(width))]
    arrays = [draw.tensor(rows, tokens, width), skip, *weights, draw.maybe(draw.tensor(width))]
    return Call(arrays, draw.some(epsilon=1e-3), draw.pick(("y",), ("y", "", "", "sum")))


@drawn("EmbedLayerNormalization", domain=MICROSOFT, types={"T1": ("int32",), "T": REAL})
def embedding(draw: Draw) -> Call:
    """Ids of tokens, of segments and of positions, each with a table, and a mask."""
    rows, tokens, width, segments = draw.size(), draw.size(), draw.size(1), draw.flag()
    ids, kinds, places = (draw.integers(0, n - 1, rows, tokens, kind="int32") for n in (9, 2, 7))
    mask = draw.maybe((np.arange(tokens) < draw.random.integers(0, tokens + 1, (rows, 1))).astype(np.int32))
    tables = [draw.tensor(9, width), draw.tensor(7, width), draw.tensor(2, width) if segments else None]
    weights = [draw.tensor(width), draw.tensor(width)]
    arrays = [ids, kinds if segments else None, *tables, *weights, mask, draw.maybe(places)]
    return Call(arrays, draw.some(epsilon=1e-3), draw.pick(("y", "count", "sum"), ("y", "count")))


@drawn("InstanceNormalization", "GroupNormalization", "BatchNormalization")
def channel_norm(draw: Draw) -> Call:
    """Channels and the places of each, whose mean and deviation may be given."""
    groups, of = draw.pick(1, 3), "T1" if "T1" in draw.kinds else "T"
    channels = groups * draw.size(1)
    places = [draw.size(int(draw.name == "InstanceNormalization")) for _ in range(draw.number(1, 2))]
    arrays = [draw.tensor(draw.size(), channels, *places), *(draw.tensor(channels, of=of) for _ in range(2))]
    if draw.name == "BatchNormalization":
        of = "T2" if "T2" in draw.kinds else "T"
        arrays += [draw.tensor(channels, of=of), draw.tensor(channels, of=of, positive=True)]
    attributes = {"num_groups": groups} if draw.name == "GroupNormalization" else {}
    return Call(arrays, {**attributes, **draw.some(epsilon=1e-3)}, stored=draw.pick((), range(1, len(arrays))))


@drawn("LpNormalization")
def lp_norm(draw: Draw) -> Call:
    """Norms of both kinds; also of vectors of zeros."""
    shape = draw.shape(1)
    x = draw.tensor(*shape) * np.asarray(draw.flag(), draw.tensor().dtype)
    return Call([x], draw.some(axis=draw.axis(len(shape)), p=draw.pick(1, 2)))


@drawn("GlobalAveragePool", "GlobalMaxPool")
def global_pool(draw: Draw) -> Call:
    """All places."""
    return Call([draw.tensor(draw.size(), draw.size(1), *draw.shape(1, 3))])


@drawn("AveragePool", "MaxPool")
def pool(draw: Draw) -> Call:
    """Windows of one to three axes, with padding, also to whole windows."""
    rank = draw.number(1, 3)
    attributes = {**window(draw, rank), **draw.some(ceil_mode=draw.flag())}
    if draw.name == "AveragePool":
        attributes |= draw.some(count_include_pad=draw.flag())
    return Call([draw.tensor(draw.size(), draw.size(1), *(max(draw.size(), 5) for _ in range(rank)))], attributes)
