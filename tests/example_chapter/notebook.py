"""The example chapter's notebook, as a chapter's notebook is laid out."""

from pathlib import Path

import nbformat
from nbformat import v4

FOLDER = Path(__file__).parent

IMPORTS = f"""\
import torch
from torch import nn

import tutorial_exercises as exercises
from tutorial_exercises import check, progress, solution, use
from tutorial_lib.attention import masked_softmax

exercises.__path__.append({str(FOLDER)!r})"""

SOFTMAX = '''\
def example_softmax(scores, mask=None):
    """Return the softmax over the keys, with weight 0 where mask is False."""
    ...'''

ATTENTION = '''\
def example_attention(queries, keys, values, mask=None):
    """Return softmax(QKᵀ / √d_k) V and the weights."""
    scores = ...  # (batch, query, key)
    weights = masked_softmax(scores, mask)
    return ..., weights'''

SCORES = '''\
class ExampleScores(nn.Module):
    """Additive scores: wᵀ tanh(W_query q + W_key k) for every query and key."""

    def __init__(self, d_query, d_key, d_hidden):
        super().__init__()
        self.W_query = nn.Linear(d_query, d_hidden, bias=False)
        self.W_key = ...
        self.w_score = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, queries, keys):
        ...  # (query, key)'''


def notebook():
    """Return the notebook, not yet executed."""
    cells = [_code(IMPORTS)]
    for number, stub, answer in [
        ("99.1", "my_spread = ...", 'my_spread, "99.1"'),
        ("99.2", SOFTMAX, "example_softmax"),
        ("99.3", ATTENTION, "example_attention"),
        ("99.4", SCORES, "ExampleScores"),
    ]:
        cells.append(_code(stub, "exercise"))
        cells.append(_code(f"check({answer})", "check"))
        cells.append(_code(f'solution("{number}")', "solution"))
    one_hot = "torch.eye(2)[None]"
    used = f"outputs, _ = use(example_attention)({one_hot}, {one_hot}, {one_hot})"
    cells.append(_code(f"{used}\nprint(outputs.sum().round(decimals=4))"))
    cells.append(_code("progress(99)"))
    return v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})


KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def _code(source, *tags):
    return v4.new_code_cell(source, metadata=nbformat.from_dict({"tags": list(tags)}))
