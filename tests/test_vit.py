"""The Vision Transformer: against its equations, computed patch by patch."""

import pytest
import torch
import torch.nn.functional as F

from tutorial_lib.vit import VisionTransformer


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def make(patch_size=4, *, d_model=16, num_layers=2, num_heads=4, image_size=12):
    return VisionTransformer(
        d_model,
        num_heads,
        num_layers,
        d_ff=24,
        image_size=image_size,
        patch_size=patch_size,
        num_classes=5,
        channels=2,
    )


@torch.no_grad()
def add_noise(model):
    """Add random numbers to all weights, so that none is 0 or without effect."""
    for parameter in model.parameters():
        parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def logits_by_hand(model, images):
    """Compute the logits by equations 1 to 4, one patch after the other."""
    size = model.patch_embedding.kernel_size[0]
    matrix = model.patch_embedding.weight.flatten(1)  # (d_model, channel · pixel)
    tokens = [model.class_token.expand(len(images), -1)]
    for top in range(0, images.shape[-2], size):
        for left in range(0, images.shape[-1], size):
            patch = images[:, :, top : top + size, left : left + size]
            embedded = patch.flatten(1) @ matrix.T + model.patch_embedding.bias
            tokens.append(embedded)
    x = torch.stack(tokens, dim=1) + model.position_embedding
    for layer in model.layers:
        y = layer.norm1(x)
        x = x + layer.attention(y, y, y)
        mlp = layer.feed_forward
        x = x + mlp.W_2(F.gelu(mlp.W_1(layer.norm2(x))))
    return model.head(model.norm(x[:, 0]))


@pytest.mark.parametrize("patch_size", [1, 4, 12])
def test_the_logits_are_those_computed_patch_by_patch(patch_size):
    model = add_noise(make(patch_size))
    images = torch.rand(3, 2, 12, 12)
    torch.testing.assert_close(model(images), logits_by_hand(model, images))


def test_positions_and_the_class_token_start_small_but_not_at_0():
    model = make(2, d_model=512, num_layers=1, image_size=32)
    assert model.position_embedding.shape == (1 + 16**2, 512)
    assert 0.018 < model.position_embedding.std() < 0.022
    assert 0.018 < model.class_token.std() < 0.022


def test_two_patches_may_change_places_only_where_positions_are_0():
    model = add_noise(make())
    images = torch.rand(3, 2, 12, 12)
    swapped = images.clone()
    swapped[..., :4, :4] = images[..., 4:8, 8:]
    swapped[..., 4:8, 8:] = images[..., :4, :4]
    assert (model(images) - model(swapped)).abs().max() > 1e-2
    torch.nn.init.zeros_(model.position_embedding)
    torch.testing.assert_close(model(images), model(swapped))


def test_every_parameter_gets_a_finite_gradient():
    model = make()
    F.cross_entropy(model(torch.rand(3, 2, 12, 12)), torch.arange(3)).backward()
    for name, weight in model.named_parameters():
        if not name.endswith("W_K.bias"):  # which the softmax cancels
            assert 0 < weight.grad.norm() < 100, name


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="patch_size must divide image_size: 5 does"):
        make(patch_size=5)
    with pytest.raises(ValueError, match="num_heads must divide d_model: 3 does not"):
        make(num_heads=3)
