"""What the tests of training train, in one process and under ``accelerate launch``.

Run as a script, it trains each of them and writes what came of it into the folder that
is named as its argument, a file for each process.
"""

import json
import os
import sys
from pathlib import Path

import torch
from torch import nn

from tutorial_lib.data import Batch
from tutorial_lib.seq2seq import AttentionDecoder, Encoder, Seq2Seq
from tutorial_lib.training import fit, token_losses

LENGTHS = [(5, 4), (3, 7), (2, 2), (6, 3), (4, 4), (1, 2), (3, 3)]  # source, target


class Stop(Exception):
    """Stands for whatever ends a process."""


def translations():
    """Make batches of 3, 3 and 1 sentences, whose shares differ in tokens."""
    generator = torch.Generator().manual_seed(0)
    for rows in (LENGTHS[:3], LENGTHS[3:6], LENGTHS[6:]):
        source, target = torch.zeros(2, len(rows), 7, dtype=torch.long)
        for i, (words, tokens) in enumerate(rows):
            source[i, :words] = torch.randint(4, 9, (words,), generator=generator)
            target[i, :tokens] = torch.randint(4, 9, (tokens,), generator=generator)
        lengths = torch.tensor(rows)
        yield Batch(source, lengths[:, 0], target, lengths[:, 1])


def translator():
    torch.manual_seed(0)
    encoder = Encoder(9, 6, 5)
    return Seq2Seq(encoder, AttentionDecoder(9, 6, 5, 10, 4))


def train_translator(*, loss=token_losses, epochs=3, **options):
    """Train a recurrent translator on the mean over tokens."""
    model = translator()
    adamw = torch.optim.AdamW(model.parameters(), lr=0.02)
    batches = list(translations())
    options = {"optimizer": adamw, "epochs": epochs, "clip": 0.5} | options
    return fit(model, batches, loss, **options)


def train_line(loss):
    """Train a line on points that are drawn while it is trained."""

    class Drawn:
        def __iter__(self):
            for rows in (4, 3, 1):
                points = torch.randn(rows, 2)
                yield points, points.sum(1)

    model = nn.Linear(2, 1)
    nn.init.ones_(model.weight)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    return fit(model, Drawn(), loss, optimizer=sgd, epochs=2)


def squared(model, batch):
    return (model(batch[0])[:, 0] - batch[1]) ** 2


def mean_squared(model, batch):
    return squared(model, batch).mean()


def drop_out():
    """Return which of 64 numbers dropout left, at each of two steps."""
    model, left = nn.Sequential(nn.Linear(1, 1), nn.Dropout(0.5)), []
    nn.init.ones_(model[0].weight)

    def watched(model, batch):
        outputs = model(batch)
        left.append(outputs[:, 0].ne(0).tolist())
        return outputs

    sgd = torch.optim.SGD(model.parameters(), lr=0.0)
    fit(model, [torch.ones(128, 1)] * 2, watched, optimizer=sgd, epochs=1)
    return left


def stop_and_resume(file):
    """Train a translator with an error in the fifth step, and then again."""
    calls = []

    def failing(model, batch):
        calls.append(batch)
        if len(calls) == 5:
            raise Stop
        return token_losses(model, batch)

    try:
        train_translator(loss=failing, checkpoint=file)
    except Stop:
        return train_translator(checkpoint=file)


def main(folder):
    rank = int(os.environ["RANK"])
    training = {
        "tokens": train_translator,
        "points": lambda: train_line(squared),
        "means": lambda: train_line(mean_squared),
        "resumed": lambda: stop_and_resume(folder / "run.pt"),
        "half": lambda: train_translator(epochs=1, checkpoint=folder / "half.pt"),
    }
    histories = {}
    for name, train in training.items():
        torch.manual_seed(rank)  # the processes must agree by themselves
        histories[name] = train()
    outcome = {name: vars(history) for name, history in histories.items()}
    outcome |= {"dropout": drop_out(), "processes": torch.distributed.get_world_size()}
    (folder / f"{rank}.json").write_text(json.dumps(outcome))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
