"""torchvision's weights compute in the book's Vision Transformer what they do there."""

from functools import partial

import pytest
import torch
from torch import nn

from tutorial_lib.data import load_images, sample_clothes
from tutorial_lib.data.questions import swapped_decoys
from tutorial_lib.interpret import record_attention
from tutorial_lib.pretrained import (
    clothes_vit,
    from_torchvision,
    interpolate_positions,
    load_weights,
)
from tutorial_lib.vit import VisionTransformer

close = partial(torch.testing.assert_close, rtol=0, atol=1e-5)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def theirs():
    """Import torchvision's models, for seconds, where they are needed."""
    return pytest.importorskip("torchvision.models.vision_transformer")


def make_theirs(image_size=24, **options):
    """Make torchvision's model, small, with an epsilon and weights of its own."""
    model = theirs().VisionTransformer(
        image_size,
        patch_size=4,
        num_layers=3,
        num_heads=2,
        hidden_dim=16,
        mlp_dim=40,
        num_classes=7,
        norm_layer=partial(nn.LayerNorm, eps=0.5),
        **options,
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


def their_maps(model, images):
    """List the weights (batch, head, query, key) of torchvision's layers in turn."""
    maps = []

    def keep(attention, inputs):
        _, weights = nn.MultiheadAttention.forward(
            attention, *inputs, average_attn_weights=False
        )
        maps.append(weights)

    for layer in model.encoder.layers:
        layer.self_attention.register_forward_pre_hook(keep)
    model(images)
    return maps


def test_logits_and_attention_maps_are_torchvisions():
    model = make_theirs()
    images = torch.rand(3, 3, 24, 24)
    ours = from_torchvision(model)
    assert not ours.training
    with record_attention(ours) as maps:
        close(ours(images), model(images))
    for weights, expected in zip(maps.values(), their_maps(model, images), strict=True):
        assert weights.shape == (3, 2, 37, 37)
        close(weights, expected)


@pytest.mark.parametrize("name", ["B_16", "B_32", "L_16", "L_32", "H_14"])
def test_every_model_of_torchvision_has_as_many_parameters_as_published(name):
    for weights in getattr(theirs(), f"ViT_{name}_Weights"):
        image_size = weights.meta["min_size"][0]
        with torch.device("meta"):
            model = getattr(theirs(), f"vit_{name.lower()}")()
            ours = from_torchvision(model, image_size=image_size)
        num_parameters = sum(weight.numel() for weight in ours.parameters())
        assert num_parameters == weights.meta["num_params"]


@pytest.mark.parametrize("image_size", [16, 20, 36])
def test_positions_are_interpolated_as_torchvision_does(image_size):
    model = make_theirs()
    state_dict = model.state_dict()
    larger = make_theirs(image_size)
    larger.load_state_dict(theirs().interpolate_embeddings(image_size, 4, state_dict))
    ours = from_torchvision(model, image_size=image_size)
    images = torch.rand(3, 3, image_size, image_size)
    close(ours(images), larger(images))


def test_a_ramp_of_positions_stays_a_ramp_and_the_class_token_its_own():
    line = torch.linspace(0, 1, 4)
    grid = line[:, None] + 2 * line  # (row, column)
    table = torch.cat([torch.tensor([9.0]), grid.flatten()])[:, None]
    assert interpolate_positions(table, 4).equal(table)
    longer = interpolate_positions(table, 7)[:, 0]
    assert longer.shape == (1 + 7**2,) and longer[0] == 9
    corners = longer[1:].view(7, 7)[::6, ::6]
    close(corners, torch.tensor([[0.0, 2.0], [1.0, 3.0]]))


def test_the_weights_are_copies_and_can_be_trained():
    model = make_theirs().requires_grad_(False)
    images = torch.rand(3, 3, 24, 24)
    expected = model(images)
    ours = from_torchvision(model)
    nn.init.zeros_(model.heads.head.weight)
    ours(images).sum().backward()
    close(ours(images), expected)
    for name, weight in ours.named_parameters():
        assert weight.grad is not None, name


def test_another_number_of_classes_and_of_channels_comes_along():
    model = make_theirs()
    model.conv_proj = nn.Conv2d(1, 16, kernel_size=4, stride=4)
    model.heads.head = nn.Linear(16, 2)
    images = torch.rand(3, 1, 24, 24)
    close(from_torchvision(model)(images), model(images))


def test_missing_and_left_over_weights_are_named():
    model = make_theirs()
    model.heads = nn.Linear(16, 7)
    with pytest.raises(ValueError, match=r"the weight heads\.head\.weight is missing"):
        from_torchvision(model)
    model = make_theirs(representation_size=8)
    message = r"no place for heads\.pre_logits\.bias, heads\.pre_logits\.weight"
    with pytest.raises(ValueError, match=message):
        from_torchvision(model)


def test_patches_that_do_not_fill_the_images_are_refused():
    with pytest.raises(ValueError, match="4 does not divide 30"):
        from_torchvision(make_theirs(), image_size=30)


def test_the_weights_of_the_book_find_the_intact_digit():
    digits = load_images("digits")
    test = swapped_decoys(*digits.test, 300, seed=2)
    model = VisionTransformer(
        32, 4, 2, d_ff=64, image_size=24, patch_size=4, num_classes=10
    )
    load_weights(model, "decoys")
    predictions = model(test.images).argmax(dim=-1)
    assert (predictions == test.answers).float().mean() > 0.85


def test_the_vision_transformer_of_clothes_knows_those_that_come_with_it():
    images, labels = sample_clothes()
    predictions = clothes_vit()(images).argmax(dim=-1)
    assert (predictions == labels).sum() >= 15
