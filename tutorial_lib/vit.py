"""The Vision Transformer: an image as a sequence of patches.

Dosovitskiy et al. (2021). Images are (batch, channel, height, width), tokens (batch,
token, d_model): the class token first, if there is one, then the patches row by row.
``from_torchvision`` brings the weights of torchvision's models into the book's.

This module downloads nothing, and knows neither what the classes mean nor how pixels
are to be scaled.
"""

from numbers import Integral

import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.transformer import EncoderLayer


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
        return x.contiguous()  # or every layer would read it across


class VisionTransformer(nn.Module):
    """Classify images by attention between their patches.

    ``image_size`` is both height and width, in pixels, and is cut into patches of
    ``patch_size``; the sizes of the ``num_layers`` encoder layers are ``d_model``,
    ``num_heads`` and ``mlp_dim``, the hidden units of their feed-forward networks. The
    classes are predicted from a class token (``pool="cls"``) or from the mean of all
    patches ("mean"). ``positions`` are "learned" or None. Raises ValueError if the
    patches do not fill the image, or the other sizes do not fit. Dosovitskiy et al.
    (2021), equations 1 to 4.
    """

    def __init__(
        self,
        image_size,
        patch_size,
        *,
        num_classes,
        d_model,
        num_layers,
        num_heads,
        mlp_dim,
        channels=1,
        pool="cls",
        positions="learned",
        dropout=0.0,
    ):
        super().__init__()
        _check_options(image_size, patch_size, pool, positions)
        self.image_shape, self.pool = (channels, image_size, image_size), pool
        self.patch_embedding = PatchEmbedding(patch_size, d_model, channels=channels)
        self.class_token = self.position_embedding = None
        if pool == "cls":
            self.class_token = nn.Parameter(torch.randn(d_model) * 0.02)
        if positions == "learned":
            tokens = (image_size // patch_size) ** 2 + (pool == "cls")
            self.position_embedding = nn.Parameter(torch.randn(tokens, d_model) * 0.02)
        options = {"norm_first": True, "activation": F.gelu, "dropout": dropout}
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, num_heads, mlp_dim, **options)
            for _ in range(num_layers)
        )
        self.norm, self.head = nn.LayerNorm(d_model), nn.Linear(d_model, num_classes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, images):
        """Return the logits (batch, class) of images (batch, channel, height, width).

        Raises ValueError for images of another size than the model was made for.
        """
        x = self.embed(images)
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        return self.head(x.mean(dim=1) if self.pool == "mean" else x[:, 0])

    def embed(self, images):
        """Return the tokens (batch, token, d_model) of ``images``: equation 1.

        Raises ValueError for images of another size than the model was made for.
        """
        if images.shape[1:] != self.image_shape:
            expected = ", ".join(map(str, self.image_shape))
            raise ValueError(
                f"images must be (batch, {expected}), as the model was made for: got "
                f"{tuple(images.shape)}"
            )
        x = self.patch_embedding(images)
        if self.class_token is not None:
            first = self.class_token.expand(len(x), 1, -1)  # (batch, 1, d_model)
            x = torch.cat((first, x), dim=1)  # (batch, 1 + patch, d_model)
        if self.position_embedding is not None:
            x = x + self.position_embedding
        return self.dropout(x)


def _check_options(image_size, patch_size, pool, positions):
    if not (isinstance(image_size, Integral) and isinstance(patch_size, Integral)):
        raise ValueError(
            "image_size and patch_size are sides of squares, in whole pixels: got "
            f"{image_size} and {patch_size}"
        )
    if not 1 <= patch_size <= image_size or image_size % patch_size:
        raise ValueError(
            f"patch_size must divide image_size: {patch_size} does not divide "
            f"{image_size}"
        )
    if pool not in ("cls", "mean"):
        raise ValueError(f'pool must be "cls" or "mean", got {pool!r}')
    if positions not in ("learned", None):
        raise ValueError(f'positions must be "learned" or None, got {positions!r}')


_NAMES = {  # of a layer's parts: torchvision's, and ours
    "ln_1": "norm1",
    "self_attention.out_proj": "attention.W_O",
    "ln_2": "norm2",
    "mlp.0": "feed_forward.W_1",
    "mlp.3": "feed_forward.W_2",
}


@torch.no_grad()
def from_torchvision(model, *, image_size=None):
    """Return a VisionTransformer that computes what torchvision's ``model`` computes.

    Any of ``vit_b_16`` to ``vit_h_14`` will do, and other sizes. The weights are
    copied; their type and device are kept, and whether the model is in training. With
    another ``image_size`` than the model's, in pixels, its positions are interpolated.
    Raises ValueError for another kind of model, for one that does not end with one
    linear map alone, and for an image size that the patches do not fill.
    """
    head = _head_of(model)
    image_size = model.image_size if image_size is None else image_size
    ours = _make_empty(model, head, image_size)
    _copy(ours.patch_embedding.convolution, model.conv_proj)
    ours.class_token.copy_(model.class_token[0, 0])
    side = ours.image_shape[-1] // model.patch_size
    positions = interpolate_positions(model.encoder.pos_embedding[0], side)
    ours.position_embedding.copy_(positions)
    for layer, theirs in zip(ours.layers, model.encoder.layers, strict=True):
        _copy_layer(layer, theirs)
    _copy(ours.norm, model.encoder.ln)
    _copy(ours.head, head)
    return ours.train(model.training)


def _head_of(model):
    """Return the one linear map that the model ends with, or raise ValueError."""
    from torchvision.models import VisionTransformer as Published

    if not isinstance(model, Published):
        raise ValueError(f"{type(model).__name__} is no torchvision VisionTransformer")
    if not isinstance(model.conv_proj, nn.Conv2d):
        raise ValueError("the patches must be embedded by one convolution, not several")
    parts = [part for part in model.heads.modules() if not [*part.children()]]
    maps = [part for part in parts if isinstance(part, nn.Linear)]
    others = [
        part
        for part in parts
        if not isinstance(part, (nn.Linear, nn.Dropout, nn.Identity))
    ]
    if len(maps) != 1 or others:
        raise ValueError(
            "the model must end with one linear map, beside dropout, and heads has "
            f"{', '.join(type(part).__name__ for part in parts)}"
        )
    return maps[0]


def interpolate_positions(table, side):
    """Stretch positions that were learned on one grid of patches over another.

    ``table`` (1 + patch, d_model) begins with the class token's row, which is kept;
    the patches', row by row on a square, become those of ``side`` × ``side`` patches
    by bicubic interpolation, corner on corner. Dosovitskiy et al. (2021), section 3.2.
    """
    before = round((len(table) - 1) ** 0.5)
    if before == side:
        return table
    grid = table[1:].T.unflatten(1, (before, before))  # (d_model, row, column)
    grid = F.interpolate(grid[None], size=side, mode="bicubic", align_corners=True)[0]
    return torch.cat((table[:1], grid.flatten(1).T))  # (1 + side², d_model)


def _make_empty(model, head, image_size):
    """Make a model of the same sizes, whose numbers are whatever was in memory."""
    patches, layers = model.conv_proj, model.encoder.layers
    with torch.device("meta"):  # takes neither time nor random numbers
        empty = VisionTransformer(
            image_size,
            model.patch_size,
            num_classes=head.out_features,
            d_model=model.hidden_dim,
            num_layers=len(layers),
            num_heads=layers[0].num_heads,
            mlp_dim=model.mlp_dim,
            channels=patches.in_channels,
            dropout=model.dropout,
        )
    return empty.to(patches.weight.dtype).to_empty(device=patches.weight.device)


def _copy_layer(ours, theirs):
    attention = theirs.self_attention
    for name, its_name in _NAMES.items():
        _copy(ours.get_submodule(its_name), theirs.get_submodule(name))
    weights, biases = attention.in_proj_weight.chunk(3), attention.in_proj_bias.chunk(3)
    for name, weight, bias in zip(("W_Q", "W_K", "W_V"), weights, biases, strict=True):
        ours.attention.get_submodule(name).load_state_dict(
            {"weight": weight, "bias": bias}
        )
    ours.attention.dropout = attention.dropout


def _copy(ours, theirs):
    ours.weight.copy_(theirs.weight)
    if theirs.bias is None:
        ours.bias.zero_()
    else:
        ours.bias.copy_(theirs.bias)
    if isinstance(theirs, nn.LayerNorm):
        ours.eps = theirs.eps
