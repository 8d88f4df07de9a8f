"""Five small GPTs after 30 CPU seconds: what a reader's own is compared with.

    python benchmarks/half_a_minute.py

Chapter 12 asks for a model of its French sentences that is trained in half a minute on
one thread. Here are five, which differ in one thing each; the learning rate follows the
clock. The chapter's table holds the same numbers, and a test compares them.
"""

import argparse
import itertools
from pathlib import Path

import torch
import torch.nn.functional as F
from records import Clock, append, provenance, read_done

from tutorial_lib.data.french import french_sentences
from tutorial_lib.data.text import PAD, Vocabulary, pad_sequences
from tutorial_lib.gpt import GPT
from tutorial_lib.training import fit, warmup_cosine

CHAPTER = {"d_model": 64, "blocks": 2, "learning_rate": 0.005, "falls": True}
RUNS = {
    "as in the chapter": CHAPTER,
    "half the width, one block": CHAPTER | {"d_model": 32, "blocks": 1},
    "twice the width, four blocks": CHAPTER | {"d_model": 128, "blocks": 4},
    "a tenth of the learning rate": CHAPTER | {"learning_rate": 0.0005},
    "a learning rate that stays": CHAPTER | {"falls": False},
}


def losses(model, batch):
    logits, answers = model(batch[:, :-1]), batch[:, 1:]
    valid = answers != PAD
    return F.cross_entropy(logits[valid], answers[valid], reduction="none")


def train_for(seconds, model, batches, *, learning_rate, falls, **_):
    """Train until the CPU time is spent; return the number of steps."""
    optimizer = torch.optim.AdamW(model.parameters(), learning_rate)
    factor, clock = warmup_cosine(100, 1000), Clock()

    def until_spent():
        for batch in itertools.cycle(batches):
            if clock.seconds() >= seconds:
                return
            yield batch

    def schedule(step):
        now = round(1000 * clock.seconds() / seconds)
        return factor(now if falls else min(now, 100))

    options = {"optimizer": optimizer, "epochs": 1, "schedule": schedule}
    return len(fit(model, until_spent(), losses, **options).losses)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=30, help="for each training")
    parser.add_argument("--out", default=Path(__file__).with_suffix(".csv"), type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    sentences, held_out = (
        french_sentences(20_000, seed=0),
        french_sentences(1000, seed=1),
    )
    vocabulary = Vocabulary(sentences)

    def rows(texts):
        return [vocabulary.encode(["<bos>", *words, "<eos>"]) for words in texts]

    ordered = sorted(rows(sentences), key=len)
    batches = [
        pad_sequences(ordered[i : i + 64])[0] for i in range(0, len(ordered), 64)
    ]
    for name, settings in RUNS.items():
        if (name,) in read_done(options.out, ("run",)):
            continue
        torch.manual_seed(0)
        sizes = (settings["d_model"], 4, settings["blocks"])
        model = GPT(len(vocabulary), *sizes, max_tokens=16)
        shuffled = [batches[i] for i in torch.randperm(len(batches))]
        steps = train_for(options.seconds, model, shuffled, **settings)
        with torch.no_grad():
            mean = losses(model, pad_sequences(rows(held_out))[0]).mean()
        found = {"perplexity": f"{mean.exp().item():.3f}", "steps": steps}
        append(options.out, {"run": name, **settings, **found, **provenance()})


if __name__ == "__main__":
    main()
