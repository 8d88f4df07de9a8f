"""The parts of the Vision Transformer, and the whole.

Images are (batch, channel, height, width), tokens (batch, token, d_model): the class
token first, if there is one, then the patches row by row.

This module knows neither what the classes mean nor how pixels are to be scaled.
"""

import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.position import LearnedEncoding, sinusoidal_grid
from tutorial_lib.position.absolute import TableEncoding
from tutorial_lib.transformer import EncoderBlock


class PatchEmbedding(nn.Module):
    """Turn every patch of an image into a token, by one linear map for all of them.

    A convolution does it that moves by a whole patch of ``patch_size`` pixels, so that
    no pixel is read twice: Dosovitskiy et al. (2021), section 3.1. Pixels beyond the
    last whole patch are not read.
    """

    def __init__(self, patch_size, d_model, *, channels=1):
        super().__init__()
        self.convolution = nn.Conv2d(channels, d_model, patch_size, stride=patch_size)

    def forward(self, images):
        """Embed ``images`` (batch, channel, height, width): (batch, patch, d_model)."""
        x = self.convolution(images)  # (batch, d_model, rows, columns of patches)
        x = x.flatten(2).mT  # (batch, patch, d_model)
        return x.contiguous()  # or every block would read it across


class GridEncoding(TableEncoding):
    """Add sinusoids of its row and column to each patch of ``side`` × ``side``.

    With ``class_token`` the first token is no patch, and gets nothing. Raises
    ValueError unless 4 divides d_model.
    """

    def __init__(self, side, d_model, *, class_token):
        super().__init__()
        table = sinusoidal_grid(side, side, d_model)  # (patch, d_model)
        self.register_buffer("table", F.pad(table, (0, 0, int(class_token), 0)))


class ImageTokens(nn.Module):
    """Turn an image into tokens that know their place: equation 1 of the paper.

    Arguments and errors are those of VisionTransformer. The positions that are added
    are ``position.table`` (token, d_model), if there are any.
    """

    def __init__(self, image_size, patch_size, d_model, *, channels, pool, positions):
        super().__init__()
        check_options(image_size, patch_size, pool, positions)
        self.image_shape = (channels, image_size, image_size)
        self.patches = PatchEmbedding(patch_size, d_model, channels=channels)
        with_class, side = pool == "cls", image_size // patch_size
        first = nn.Parameter(torch.randn(d_model) * 0.02) if with_class else None
        self.class_token, self.position = first, nn.Identity()
        if positions == "learned":
            self.position = LearnedEncoding(d_model, with_class + side**2)
        elif positions == "sinusoidal":
            self.position = GridEncoding(side, d_model, class_token=with_class)

    def forward(self, images):
        """Return the tokens (batch, token, d_model) of ``images``."""
        check_images(images, self.image_shape)
        x = self.patches(images)  # (batch, patch, d_model)
        if self.class_token is not None:
            first = self.class_token.expand(len(x), 1, -1)  # (batch, 1, d_model)
            x = torch.cat((first, x), dim=1)  # (batch, 1 + patch, d_model)
        return self.position(x)


class VisionTransformer(nn.Module):
    """Classify images by letting their patches look at each other.

    ``image_size`` is both height and width, in pixels, and is cut into patches of
    ``patch_size``; d_model, heads and d_ff are those of each of the ``blocks``. The
    classes are read from a class token (``pool="cls"``) or from the mean of all
    patches ("mean"). ``positions`` are "learned", "sinusoidal", of row and column, or
    None. Raises ValueError if the patches do not fill the image, or the other sizes do
    not fit. Dosovitskiy et al. (2021), equations 1 to 4.
    """

    def __init__(
        self,
        image_size,
        patch_size,
        classes,
        d_model,
        blocks,
        heads,
        d_ff,
        *,
        channels=1,
        pool="cls",
        positions="learned",
        dropout=0.0,
    ):
        super().__init__()
        options = {"channels": channels, "pool": pool, "positions": positions}
        self.tokens = ImageTokens(image_size, patch_size, d_model, **options)
        self.blocks = stack_blocks(blocks, d_model, heads, d_ff, dropout=dropout)
        self.norm, self.head = nn.LayerNorm(d_model), nn.Linear(d_model, classes)
        self.pool, self.dropout = pool, nn.Dropout(dropout)

    def forward(self, images):
        """Return the logits (batch, classes) of images (batch, channel, height, width).

        Raises ValueError for images of another size than the model was made for.
        """
        x = self.norm(self.blocks(self.dropout(self.tokens(images))))
        return self.head(x.mean(dim=1) if self.pool == "mean" else x[:, 0])


def stack_blocks(blocks, d_model, heads, d_ff, *, dropout=0.0):
    """Make so many encoder blocks in a row, the norm first and GELU in each."""
    options = {"norm_first": True, "activation": F.gelu, "dropout": dropout}
    return nn.Sequential(
        *(EncoderBlock(d_model, heads, d_ff, **options) for _ in range(blocks))
    )


def check_options(image_size, patch_size, pool, positions):
    """Raise ValueError unless these are arguments for a VisionTransformer."""
    if patch_size < 1 or image_size % patch_size:
        raise ValueError(
            f"patch_size must divide image_size: {patch_size} does not divide "
            f"{image_size}"
        )
    if pool not in ("cls", "mean"):
        raise ValueError(f'pool must be "cls" or "mean", got {pool!r}')
    if positions not in ("learned", "sinusoidal", None):
        raise ValueError(
            f'positions must be "learned", "sinusoidal" or None, got {positions!r}'
        )


def check_images(images, shape):
    """Raise ValueError unless each of the ``images`` is (channel, height, width)."""
    if images.shape[1:] != shape:
        expected = ", ".join(map(str, shape))
        raise ValueError(
            f"images must be (batch, {expected}), as the model was made for: got "
            f"{tuple(images.shape)}"
        )
