"""What the tests of training train, in one process and in several.

Run as a script, it trains each of them and writes what came of it into the folder that
is named as its argument, a file for each process.
"""

import json
import os
import sys
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tutorial_lib.data import Batch
from tutorial_lib.seq2seq import AttentionDecoder, Encoder, Seq2Seq
from tutorial_lib.training import History, fit, token_losses

LENGTHS = [(5, 4), (3, 7), (2, 2), (6, 3), (4, 4), (1, 2), (3, 3)]  # source, target
POINTS = torch.arange(12.0).reshape(6, 2).sin()


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


def train_translator(*, loss=token_losses, **options):
    """Train a recurrent translator on the mean over tokens."""
    model = translator()
    adamw = torch.optim.AdamW(model.parameters(), lr=0.02)
    if "accelerator" in options:
        model, adamw = options["accelerator"].prepare(model, adamw)
    options = {"optimizer": adamw, "epochs": 3, "clip": 0.5} | options
    return fit(model, list(translations()), loss, **options)


def train_line(rows, **options):
    """Train a line on a mean over so many rows, which tells nothing of their number."""
    model = nn.Linear(2, 1)
    nn.init.ones_(model.weight)
    nn.init.zeros_(model.bias)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    if "accelerator" in options:
        model, sgd = options["accelerator"].prepare(model, sgd)
    return fit(
        model, [POINTS[:rows]], mean_of_squares, optimizer=sgd, steps=3, **options
    )


def mean_of_squares(model, points):
    return (model(points)[:, 0] - 1).square().mean()


def read_loader(accelerator):
    """Return which of 8 rows, in shuffled batches of 2, this process sees."""
    numbers, seen, model = torch.arange(8.0).unsqueeze(1), [], nn.Linear(1, 1)

    def watched(model, batch):
        seen.extend(batch[0].flatten().tolist())
        return model(batch[0])

    loader = DataLoader(TensorDataset(numbers), batch_size=2, shuffle=True)
    sgd = torch.optim.SGD(model.parameters(), lr=0.0)
    model, sgd, loader = accelerator.prepare(model, sgd, loader)
    fit(model, loader, watched, optimizer=sgd, epochs=1, accelerator=accelerator)
    return seen


def stop_and_resume(make_accelerator, folder):
    """Train a translator with an error in the fifth step, and then again."""
    calls = []

    def failing(model, batch):
        calls.append(batch)
        if len(calls) == 5:
            raise Stop
        return token_losses(model, batch)

    def train(loss):
        accelerator, history, model = make_accelerator(), History(), translator()
        adamw = torch.optim.AdamW(model.parameters(), lr=0.02)
        model, adamw = accelerator.prepare(model, adamw)
        accelerator.register_for_checkpointing(history)
        if folder.exists():
            accelerator.load_state(folder)
        return fit(
            model,
            list(translations()),
            loss,
            optimizer=adamw,
            epochs=3,
            clip=0.5,
            history=history,
            after_epoch=lambda: accelerator.save_state(folder),
            accelerator=accelerator,
        )

    try:
        train(failing)
    except Stop:
        make_accelerator().wait_for_everyone()
        return train(token_losses)


def refusal(accelerator):
    """Return what is said of a batch that has no rows to share."""
    model, batch = nn.Linear(2, 1), (torch.ones(2, 2), torch.ones(3))
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    model, sgd = accelerator.prepare(model, sgd)
    try:
        fit(model, [batch], None, optimizer=sgd, steps=1, accelerator=accelerator)
    except ValueError as error:
        return str(error)


def main(folder):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    resumed = stop_and_resume(lambda: Accelerator(cpu=True), folder / "run")
    histories = {
        "resumed": resumed,
        "tokens": train_translator(accelerator=accelerator),
        "even": train_line(6, accelerator=accelerator),
        "uneven": train_line(3, accelerator=accelerator),
    }
    outcome = {name: vars(history) for name, history in histories.items()}
    outcome["processes"] = accelerator.num_processes
    outcome["files"] = sorted(path.name for path in (folder / "run").iterdir())
    outcome["rows"] = read_loader(accelerator)
    outcome["refusal"] = refusal(accelerator)
    rank = accelerator.process_index
    (folder / f"{rank}.json").write_text(json.dumps(outcome))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    torch.manual_seed(int(os.environ["RANK"]))  # they must agree all the same
    main(Path(sys.argv[1]))
