"""The commands import transformers at lower cost, and it is the same library."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("transformers", "scipy"))), reason="needs transformers and scipy"
)
SPARED = "from orderproof.cli.library_imports import spare_imports; spare_imports()"


def answer(*lines: str) -> Any:
    """The JSON that a program prints in a process of its own."""
    program = "\n".join(["import json, sys", *lines])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


TEXTS = [
    "",
    "import x\n",
    "__all__ = ['A']",
    "\n__all__ = ['A', 'B']\nx = 1\n",
    "x = '__all__'\n",
    "def f():\n    __all__ = 3\n\n__all__ = [\n    'A',\n    'B',\n]\nx = 2\n",
    "__all__ = ['A']\nx = 1\n__all__ = ['B']\n",
    "x = 1\f__all__ = ['A']",
    "x = 1\r\n__all__ = ['A']\r\n",
]


def test_classes_and_exported_names_are_those_of_the_library() -> None:
    ask = [
        "import transformers",
        "from transformers.utils.import_utils import fetch__all__",
        "classes = sorted(dir(transformers)), sorted(dir(transformers.models))",
        f"print(json.dumps([classes, [fetch__all__(text) for text in {TEXTS!r}]]))",
    ]
    (classes, spared), (own_classes, known) = answer(SPARED, *ask), answer(*ask)
    assert classes == own_classes
    assert dict(zip(TEXTS, spared, strict=True)) == dict(zip(TEXTS, known, strict=True))


@pytest.mark.slow
def test_scipy_is_imported_when_a_loss_needs_it() -> None:
    imported, chosen, imported_then = answer(
        SPARED,
        "import transformers.modeling_utils",
        "from transformers.loss import loss_for_object_detection as loss",
        "before = 'scipy.optimize' in sys.modules",
        "rows, columns = loss.linear_sum_assignment([[3, 1], [1, 3]])",
        "import scipy.optimize",
        "print(json.dumps([before, columns.tolist(), scipy.optimize.minimize is not None]))",
    )
    assert (imported, chosen, imported_then) == (False, [1, 0], True)


def test_another_function_of_scipy_is_the_real_one() -> None:
    assert answer(
        "from orderproof.cli.library_imports import _StandIn",
        "sys.modules['scipy.optimize'] = _StandIn('scipy.optimize', 'linear_sum_assignment')",
        "from scipy.optimize import minimize",
        "import scipy.optimize",
        "print(json.dumps([minimize is scipy.optimize.minimize, type(scipy.optimize).__name__]))",
    ) == [True, "module"]


@pytest.mark.slow
def test_the_compiler_is_imported_when_a_mask_needs_it() -> None:
    imported, called, imported_then = answer(
        SPARED,
        "import torch",
        "from transformers import BertConfig, BertModel, masking_utils",
        "from transformers.generation.continuous_batching import PagedAttentionCache",
        "before = 'torch._dynamo' in sys.modules",
        "with masking_utils.TransformGetItemToIndex():",
        "    found = torch.arange(3)[torch.tensor(1)].tolist()",
        "print(json.dumps([before, found, 'torch._dynamo' in sys.modules]))",
    )
    assert (imported, called, imported_then) == (False, 1, True)
