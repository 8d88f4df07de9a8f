"""Scenes of four digits, to ask which of them are there.

This module knows no model. The digits are scikit-learn's, 8 × 8 pixels.
"""

import torch

from tutorial_lib.data.counts import check_counts

CELLS, CLASSES, DIGITS = 16, 10, 4
NOISE = 0.2  # the most that an empty cell's pixels have


def question_scenes(count, *, held_out, seed):
    """Draw scenes of 4 × 4 cells, in four of which stand digits of different classes.

    Returns the cells (scene, cell, pixel), from 0 to 1 with noise everywhere, and where
    each class stands (scene, class): the number of its cell, -1 if nowhere. Every
    fourth image is kept for scenes that are ``held_out``. The same ``seed`` gives the
    same scenes.
    """
    from sklearn.datasets import load_digits

    check_counts(count=count)
    images, classes = map(torch.tensor, load_digits(return_X_y=True))
    mine = (torch.arange(len(classes)) % 4 == 0) == held_out
    pools = [images[mine & (classes == i)].float() / 16 for i in range(CLASSES)]
    random = torch.Generator().manual_seed(seed)
    shown = torch.rand(count, CLASSES, generator=random).argsort(dim=1)[:, :DIGITS]
    places = torch.rand(count, CELLS, generator=random).argsort(dim=1)[:, :DIGITS]
    scenes = NOISE * torch.rand(count, CELLS, 64, generator=random)
    for scene, four, cells in zip(scenes, shown.tolist(), places.tolist(), strict=True):
        for digit, cell in zip(four, cells, strict=True):
            i = torch.randint(len(pools[digit]), (), generator=random)
            scene[cell] = torch.maximum(scene[cell], pools[digit][i])
    where = torch.full((count, CLASSES), -1)
    return scenes, where.scatter(1, shown, places)
