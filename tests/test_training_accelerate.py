"""Training with an Accelerator: two processes take the steps of one."""

import os
import socket

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tutorial_lib.training import fit, warmup_cosine

accelerate = pytest.importorskip("accelerate")
POINTS = torch.arange(48.0).reshape(24, 2).sin()
TARGETS = POINTS @ torch.tensor([2.0, -1.0]) + 0.5


def squared(model, batch):
    return (model(batch[0])[:, 0] - batch[1]) ** 2


def train(accelerator=None):
    """Train a small network on batches of 6; return it, and how many rows it saw."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    loader, rows = DataLoader(TensorDataset(POINTS, TARGETS), batch_size=6), []
    trained = model, optimizer, loader
    if accelerator:
        trained = accelerator.prepare(*trained)
    fit(
        trained[0],
        trained[2],
        lambda model, batch: rows.append(len(batch[0])) or squared(model, batch),
        optimizer=trained[1],
        epochs=3,
        schedule=warmup_cosine(3, 12),
        max_grad_norm=0.3,
        accelerator=accelerator,
    )
    return model.state_dict(), sum(rows)


def train_one_of_two(rank, port, folder):
    rank = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    os.environ |= rank | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    shared = accelerate.utils.DataLoaderConfiguration(split_batches=True)
    result = train(accelerate.Accelerator(cpu=True, dataloader_config=shared))
    torch.save(result, folder / rank["RANK"])
    torch.distributed.destroy_process_group()


def test_two_processes_come_to_the_weights_of_one(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(train_one_of_two, (port, tmp_path), nprocs=2)
    expected, rows = train()
    for rank in "01":
        weights, seen = torch.load(tmp_path / rank)
        assert seen == rows / 2
        torch.testing.assert_close(weights, expected)
