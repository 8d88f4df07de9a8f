"""The Vision Transformer: an image as a sequence of patches.

Dosovitskiy et al. (2021). `tutorial_lib.pretrained.from_torchvision` brings the weights
of torchvision's models into this class.
"""

import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.sizes import refuse_odd_sizes
from tutorial_lib.transformer import Block


class VisionTransformer(nn.Module):
    """Classify square images by attention between their patches.

    Dosovitskiy et al. (2021), equations 1 to 4. Raises ValueError if patches of
    ``patch_size`` pixels do not fill images of ``image_size``.
    """

    def __init__(
        self,
        d_model,
        num_heads,
        num_layers,
        *,
        d_ff,
        image_size,
        patch_size,
        num_classes,
        channels=1,
    ):
        super().__init__()
        if not 1 <= patch_size <= image_size or image_size % patch_size:
            raise ValueError(
                f"patch_size must divide image_size: {patch_size} does not divide "
                f"{image_size}"
            )
        num_patches = (image_size // patch_size) ** 2
        self.patch_embedding = nn.Conv2d(
            channels, d_model, kernel_size=patch_size, stride=patch_size
        )
        self.class_token = nn.Parameter(0.02 * torch.randn(d_model))
        positions = 0.02 * torch.randn(1 + num_patches, d_model)
        self.position_embedding = nn.Parameter(positions)
        layers = [
            Block(d_model, num_heads, d_ff, activation=F.gelu)
            for _ in range(num_layers)
        ]
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, num_classes)

    def embed(self, images):
        """Turn images (batch, channel, height, width) into a class token and patches.

        Returns (batch, 1 + patch, d_model), the patches row by row.
        """
        x = self.patch_embedding(images)  # (batch, d_model, row, column)
        x = x.flatten(2).mT  # (batch, patch, d_model)
        class_token = self.class_token.expand(len(x), 1, -1)  # (batch, 1, d_model)
        x = torch.cat([class_token, x], dim=1)
        return x + self.position_embedding

    def forward(self, images):
        """Return the logits (batch, class), from the class token."""
        x = self.embed(images)
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        return self.head(x[:, 0])


refuse_odd_sizes(VisionTransformer)
