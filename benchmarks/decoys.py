"""Train the Vision Transformer whose attention maps chapter 15 compares.

    python benchmarks/decoys.py

Its weights, in 16 bits, go to tutorial_lib/weights/decoys.safetensors, from where
`tutorial_lib.pretrained.load_weights` takes them.
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import tutorial_lib
from tutorial_lib.data import ImageBatches, Images, load_images
from tutorial_lib.data.questions import swapped_decoys
from tutorial_lib.training import fit, warmup_cosine
from tutorial_lib.vit import VisionTransformer

STEPS = 1200
FILE = Path(tutorial_lib.__file__).parent / "weights" / "decoys.safetensors"


def digit_loss(model, batch):
    images, labels = batch
    return F.cross_entropy(model(images), labels)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    train = swapped_decoys(*load_images("digits").train, 4000, seed=1)
    model = VisionTransformer(
        32, 4, 2, d_ff=64, image_size=24, patch_size=4, num_classes=10
    )
    fit(
        model,
        ImageBatches(Images(train.images, train.answers), batch_size=64),
        digit_loss,
        optimizer=torch.optim.AdamW(
            model.parameters(), lr=0.005, weight_decay=0.05, fused=True
        ),
        steps=STEPS,
        schedule=warmup_cosine(STEPS // 5, STEPS),
    )
    FILE.parent.mkdir(exist_ok=True)
    save_file(model.half().state_dict(), FILE)


if __name__ == "__main__":
    main()
