"""How well SmolLM2 copies random tokens without each of its 270 heads.

    python benchmarks/head_ablations.py

Texts are 25 random tokens and the same 25 again, as in the excursion A real language
model. The loss, in nats, is the mean over the second half but for its first token, of
two texts from which no score was computed. One row of head_ablations.csv is one head:
the loss of the model intact, that without the head, zero-ablated, and that where the
head is mean-ablated: it always adds its mean output over eight other such texts.

A row is written when it is finished, and what has its row is not repeated.
"""

from contextlib import ExitStack
from pathlib import Path

import torch
import torch.nn.functional as F
from records import append, provenance, read_done

from tutorial_lib.data.repeats import repeated_tokens
from tutorial_lib.interpret import ablate_head
from tutorial_lib.pretrained import smollm2

ROWS = Path(__file__).with_suffix(".csv")
KEY = "layer", "head"
LENGTH = 25  # random tokens, before they are repeated


@torch.no_grad()
def copying_loss(model, texts):
    """Return the loss of the second half but for its first token, in nats."""
    logits = model(texts[:, :-1])[:, LENGTH + 1 :]  # (text, token, vocab)
    return F.cross_entropy(logits.mT, texts[:, LENGTH + 2 :]).item()


def mean_outputs(model, texts):
    """Return what the heads of each layer give to W_O on average: (layer, d_model)."""
    means = []

    def keep(module, inputs):
        means.append(inputs[0].mean(dim=(0, 1)))

    with ExitStack() as stack:
        for layer in model.layers:
            hook = layer.attention.W_O.register_forward_pre_hook(keep)
            stack.callback(hook.remove)
        copying_loss(model, texts)
    return torch.stack(means)


def mean_ablated_loss(model, layer, head, means, texts):
    """Return the copying loss where a head adds its mean output, of ``means``."""
    attention = model.layers[layer].attention
    own = slice(head * attention.d_k, (head + 1) * attention.d_k)

    def exchange(module, inputs):
        outputs = inputs[0].clone()
        outputs[..., own] = means[layer, own]
        return (outputs,)

    hook = attention.W_O.register_forward_pre_hook(exchange)
    try:
        return copying_loss(model, texts)
    finally:
        hook.remove()


def main():
    torch.set_num_threads(1)
    model, _ = smollm2()
    texts = repeated_tokens(2, LENGTH, seed=1)
    means = mean_outputs(model, repeated_tokens(8, LENGTH, seed=0))
    intact = copying_loss(model, texts)
    for layer, block in enumerate(model.layers):
        num_heads = block.attention.num_heads
        for head in range(num_heads):
            if (str(layer), str(head)) in read_done(ROWS, KEY):
                continue
            with ablate_head(block.attention.W_O, head, num_heads):
                zero_ablated = copying_loss(model, texts)
            mean_ablated = mean_ablated_loss(model, layer, head, means, texts)
            row = {"layer": layer, "head": head, "intact": f"{intact:.3f}"}
            row["zero_ablated"] = f"{zero_ablated:.3f}"
            row["mean_ablated"] = f"{mean_ablated:.3f}"
            append(ROWS, row | provenance())


if __name__ == "__main__":
    main()
