"""The Vision Transformer: an image read as a sentence, each patch of it a word.

Dosovitskiy et al. (2021). Images are (batch, channel, height, width), tokens (batch,
token, d_model): the class token first, if there is one, then the patches row by row.
``from_torchvision`` brings the weights of torchvision's models into the book's.

This module downloads nothing, and knows neither what the classes mean nor how pixels
are to be scaled.
"""

import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.position import LearnedEncoding
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
    patches ("mean"). ``positions`` are "learned" or None. Raises ValueError if the
    patches do not fill the image, or the other sizes do not fit. Dosovitskiy et al.
    (2021), equations 1 to 4.
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
    if positions not in ("learned", None):
        raise ValueError(f'positions must be "learned" or None, got {positions!r}')


def check_images(images, shape):
    """Raise ValueError unless each of the ``images`` is (channel, height, width)."""
    if images.shape[1:] != shape:
        expected = ", ".join(map(str, shape))
        raise ValueError(
            f"images must be (batch, {expected}), as the model was made for: got "
            f"{tuple(images.shape)}"
        )


LAYERS = {  # of a block, by the names that torchvision gives them
    "ln_1": "residuals.0.norm",
    "self_attention.out_proj": "attention.W_O",
    "ln_2": "residuals.1.norm",
    "mlp.0": "feed_forward.W_1",
    "mlp.3": "feed_forward.W_2",
}


@torch.no_grad()
def from_torchvision(model, *, image_size=None):
    """Return a VisionTransformer that computes what torchvision's ``model`` computes.

    Any of ``vit_b_16`` to ``vit_h_14`` will do, and other sizes. The weights are
    copied; their type and device are kept, and whether the model is in training. With
    another ``image_size`` than the model's, in pixels, its positions are interpolated.
    Raises ValueError for a model that does not begin with one convolution and end with
    one linear map, and for an image size that the patches do not fill.
    """
    head = _find_head(model)
    ours = _make_empty(model, head, image_size or model.image_size)
    _copy_layer(ours.tokens.patches.convolution, model.conv_proj)
    ours.tokens.class_token.copy_(model.class_token[0, 0])
    side = ours.tokens.image_shape[-1] // model.patch_size
    table = interpolate_positions(model.encoder.pos_embedding[0], side)
    ours.tokens.position.table.copy_(table)
    for block, layer in zip(ours.blocks, model.encoder.layers, strict=True):
        _copy_block(block, layer)
    _copy_layer(ours.norm, model.encoder.ln)
    _copy_layer(ours.head, head)
    return ours.train(model.training)


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


def _find_head(model):
    patches = getattr(model, "conv_proj", None)
    if not isinstance(patches, nn.Conv2d):
        raise ValueError(
            "the model must begin as torchvision's vit_b_16 to vit_h_14 do, with one "
            f"convolution named conv_proj: {type(model).__name__} has "
            f"{type(patches).__name__} there"
        )
    layers = [layer for layer in model.heads.modules() if isinstance(layer, nn.Linear)]
    if len(layers) != 1:
        raise ValueError(
            f"the model must end with one linear map in heads, got {len(layers)}: make "
            "it without representation_size, or give it a head of its own"
        )
    return layers[0]


def _make_empty(model, head, image_size):
    """Make a model of the same sizes, whose numbers are whatever was in memory."""
    patches, layers = model.conv_proj, model.encoder.layers
    with torch.device("meta"):  # takes neither time nor random numbers
        empty = VisionTransformer(
            image_size,
            model.patch_size,
            head.out_features,
            model.hidden_dim,
            len(layers),
            layers[0].num_heads,
            model.mlp_dim,
            channels=patches.in_channels,
            dropout=model.dropout,
        )
    return empty.to(patches.weight.dtype).to_empty(device=patches.weight.device)


def _copy_block(ours, theirs):
    attention = theirs.self_attention
    for name, its_name in LAYERS.items():
        _copy_layer(ours.get_submodule(its_name), theirs.get_submodule(name))
    weights, biases = attention.in_proj_weight.chunk(3), attention.in_proj_bias.chunk(3)
    for name, weight, bias in zip(("W_Q", "W_K", "W_V"), weights, biases, strict=True):
        ours.attention.get_submodule(name).load_state_dict(
            {"weight": weight, "bias": bias}
        )
    ours.attention.dropout = attention.dropout


def _copy_layer(ours, theirs):
    ours.load_state_dict(theirs.state_dict())
    if isinstance(theirs, nn.LayerNorm):
        ours.eps = theirs.eps
