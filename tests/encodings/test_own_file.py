"""An encoding in a file of the user: its name has a digest of the file, and what is wrong is one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from orderproof import encodings
from orderproof.blocks import fingerprint_model
from orderproof.encodings import ModelSizes
from orderproof.errors import UsageError
from orderproof.lab.run_config import RunConfig

TWIST = '''\
import torch

from orderproof.encodings import Claims, RelativeBias


class Twist(RelativeBias):
    """A penalty that is twice as strong to the right."""

    claims = Claims(site="bias", relative=True, symmetric=False)

    def __init__(self, heads, *, rate=0.5):
        super().__init__()
        self.heads, self.rate = heads, rate

    @classmethod
    def for_model(cls, sizes, **options):
        return cls(sizes.heads, **options)

    def bias_at_distance(self, distance):
        penalty = -self.rate * torch.where(distance > 0, 2 * distance, -distance).double()
        return penalty.expand(self.heads, *distance.shape)
'''


@pytest.fixture
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("twist.py").write_text(TWIST)
    return "twist.py:Twist"


def test_a_class_in_a_file_is_used_by_its_name(name: str) -> None:
    built = encodings.build(name, ModelSizes(width=8, heads=2, causal=False), {"rate": 1.0})
    bias = built.bias(torch.tensor([1]), torch.arange(3))
    assert bias[0, 0].tolist() == [[-1.0, 0.0, -2.0]]  # a key to the right has a positive distance
    assert type(fingerprint_model(name, causal=False).encoding).__name__ == "Twist"


def test_a_run_is_of_one_content_of_the_file(name: str) -> None:
    question = {"name": "who_did_what", "nouns": 4}
    run = RunConfig(question=question, encoding=name, width=16, heads=2)
    assert run.encoding == encodings.full_name(name)
    assert RunConfig.model_validate(run.to_dict()).id == run.id
    Path("twist.py").write_text(TWIST.replace("0.5", "0.25"))
    assert RunConfig(question=question, encoding=name, width=16, heads=2).id != run.id
    with pytest.raises(ValueError, match=rf"expected the encoding {run.encoding}; twist.py has changed since"):
        RunConfig.model_validate(run.to_dict())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.py:Twist", "expected an encoding as FILE.py:CLASS; absent.py: No such file or directory"),
        ("twist.py:Twits", "expected a class of an encoding, twist.py:Twits; got None; did you mean 'Twist'?"),
        ("other.py:Other", "got <class 'orderproof_encoding_other_"),
        ("broken.py:Twist", "broken.py: running it raised ZeroDivisionError: division by zero"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    for file, text in {"twist.py": TWIST, "other.py": "class Other: ...", "broken.py": "1 / 0"}.items():
        Path(file).write_text(text)
    with pytest.raises(UsageError) as raised:
        encodings.get(name)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
