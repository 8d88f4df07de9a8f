"""The weights of torchvision's Vision Transformers, in the one of this book.

This module downloads nothing and does not know what the weights were trained on.
"""

import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.vit.model import VisionTransformer

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
