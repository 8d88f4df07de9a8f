"""The Vision Transformer: against unfolded patches, loops, and torchvision's own."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.interpret import record_attention
from tutorial_lib.vit import PatchEmbedding, VisionTransformer, from_torchvision

torchvision = pytest.importorskip("torchvision")
from torchvision.models import vision_transformer as theirs  # noqa: E402

either_pool = pytest.mark.parametrize("pool", ["cls", "mean"])
either_mode = pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def classifier(*, patch_size=4, **options):
    """Make a small model whose every weight counts, for images of 12 × 12."""
    return uneven(make(12, patch_size, channels=2, **options)).eval()


def make(image_size, patch_size, **options):
    """Make a small model, whose sizes the options may replace."""
    sizes = {"num_classes": 5, "d_model": 16, "num_layers": 2}
    sizes |= {"num_heads": 4, "mlp_dim": 24}
    return VisionTransformer(image_size, patch_size, **sizes | options)


@torch.no_grad()
def uneven(model):
    """Add random numbers to all weights, so that none is 0 or without effect."""
    for parameter in model.parameters():
        parameter.add_(torch.randn_like(parameter) * 0.3)
    return model


def torchvisions(image_size=24, patch_size=4, **options):
    """Make torchvision's model, small, with norms of an epsilon of their own."""
    sizes = {"num_layers": 3, "num_heads": 2, "hidden_dim": 16, "mlp_dim": 40}
    options |= {"num_classes": 7, "norm_layer": partial(nn.LayerNorm, eps=0.5)}
    model = theirs.VisionTransformer(image_size, patch_size, **sizes, **options)
    return uneven(model).eval()


def maps_of(model, images):
    """List the weights (batch, head, query, key) of torchvision's layers in turn."""
    found = []

    def ask(attention, inputs):
        layer = nn.MultiheadAttention.forward  # past this hook
        found.append(layer(attention, *inputs, average_attn_weights=False)[1])

    for layer in model.encoder.layers:
        layer.self_attention.register_forward_pre_hook(ask)
    model(images)
    return found


def by_hand(model, images):
    """Compute the logits patch by patch, with torch's own layers."""
    embedding, tokens = model.patch_embedding.convolution, []
    size, matrix = embedding.kernel_size[0], embedding.weight.flatten(1)
    for top in range(0, images.shape[-2], size):
        for left in range(0, images.shape[-1], size):
            patch = images[:, :, top : top + size, left : left + size].flatten(1)
            tokens.append(patch @ matrix.T + embedding.bias)
    if model.pool == "cls":
        tokens.insert(0, model.class_token.expand(len(images), -1))
    x = torch.stack(tokens, dim=1)
    if model.position_embedding is not None:
        x = x + model.position_embedding
    for layer in model.layers:
        y, network = layer.norm1(x), layer.feed_forward
        x = x + layer.attention(y, y, y)
        x = x + network.W_2(F.gelu(network.W_1(layer.norm2(x))))
    x = model.norm(x)
    return model.head(x[:, 0] if model.pool == "cls" else x.mean(dim=1))


def test_a_patch_is_unfolded_row_by_row_and_multiplied():
    embedding, images = PatchEmbedding(4, 6, channels=3), torch.randn(2, 3, 8, 12)
    pixels = F.unfold(images, 4, stride=4).mT  # (batch, patch, channel · pixel)
    matrix = embedding.convolution.weight.flatten(1)  # (d_model, channel · pixel)
    expected = pixels @ matrix.T + embedding.convolution.bias
    torch.testing.assert_close(embedding(images), expected)
    assert embedding(images).is_contiguous()


@either_pool
@pytest.mark.parametrize("positions", ["learned", None])
@pytest.mark.parametrize("patch_size", [1, 4, 12])
def test_the_logits_are_those_computed_patch_by_patch(pool, positions, patch_size):
    model = classifier(pool=pool, positions=positions, patch_size=patch_size)
    images = torch.rand(3, 2, 12, 12)
    torch.testing.assert_close(model(images), by_hand(model, images))


def test_learned_positions_and_the_class_token_start_small_but_not_at_0():
    model = make(32, 2, d_model=512, num_layers=0)
    assert model.position_embedding.shape == (1 + 16**2, 512)
    for start in (model.position_embedding, model.class_token):
        assert start.requires_grad and 0.018 < start.std() < 0.022


@either_pool
def test_without_positions_the_patches_are_a_set(pool):
    images, moved = torch.rand(3, 2, 12, 12), {}
    swapped = images.clone()
    swapped[..., :4, :4] = images[..., 4:8, 8:]
    swapped[..., 4:8, 8:] = images[..., :4, :4]
    for positions in ("learned", None):
        model = classifier(pool=pool, positions=positions)
        moved[positions] = (model(images) - model(swapped)).abs().max().item()
    assert moved[None] < 1e-5 < 1e-2 < moved["learned"], moved


@either_pool
def test_every_parameter_gets_a_finite_gradient(pool):
    model = make(12, 4, pool=pool)
    F.cross_entropy(model(torch.rand(3, 1, 12, 12)), torch.arange(3)).backward()
    norms = {name: weight.grad.norm() for name, weight in model.named_parameters()}
    norms = {k: v for k, v in norms.items() if not k.endswith("W_K.bias")}  # has none
    assert all(0 < norm < 100 for norm in norms.values()), norms


def test_tokens_are_dropped_before_the_layers_but_in_training_alone():
    model = make(8, 4, num_layers=0, dropout=0.5)
    images = torch.rand(1, 1, 8, 8)
    assert not model(images).equal(model(images))
    assert model.eval()(images).equal(model(images))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patch_size": 5}, "patch_size must divide image_size: 5 does not divide 28"),
        ({"patch_size": 4.0}, "in whole pixels: got 28 and 4.0"),
        ({"patch_size": (4, 7)}, r"sides of squares.* got 28 and \(4, 7\)"),
        ({"patch_size": 0}, "patch_size must divide image_size: 0 does"),
        ({"num_heads": 3}, "num_heads must divide d_model: 3 does not"),
        ({"pool": "max"}, 'pool must be "cls" or "mean"'),
        ({"positions": "sinusoidal"}, '"learned" or None'),
    ],
)
def test_sizes_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make(28, **{"patch_size": 4} | options)


@pytest.mark.parametrize("shape", [(2, 12, 12), (3, 1, 12, 12), (3, 2, 8, 12)])
def test_images_of_another_size_are_refused(shape):
    with pytest.raises(ValueError, match=r"images must be \(batch, 2, 12, 12\), as"):
        classifier(positions=None)(torch.rand(shape))


class TestFromTorchvision:
    @either_mode
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_logits_and_attention_maps_are_torchvisions(self, training, dtype):
        model = torchvisions().to(dtype).train(training)
        images = torch.rand(3, 3, 24, 24, dtype=dtype)
        ours = from_torchvision(model)
        assert ours.training == training
        with record_attention(ours) as maps:
            logits = ours(images)
        close = {"rtol": 0, "atol": 1e-5}
        torch.testing.assert_close(logits, model(images), **close)
        assert list(maps) == [f"layers.{i}.attention" for i in range(3)]
        for name, weights in zip(maps, maps_of(model, images), strict=True):
            assert weights.shape == (3, 2, 37, 37)
            torch.testing.assert_close(maps[name], weights, **close)

    def test_vit_b_16_itself_comes_over(self):
        model = theirs.vit_b_16().eval()
        nn.init.normal_(model.heads.head.weight, std=0.1)  # torchvision's are 0
        images = torch.rand(1, 3, 224, 224)
        ours = from_torchvision(model)
        with record_attention(ours) as maps, torch.no_grad():
            logits, expected = ours(images), model(images)
            weights = maps_of(model, images)
        assert expected.std() > 0.1
        torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)
        found = torch.stack(list(maps.values()))
        torch.testing.assert_close(found, torch.stack(weights), rtol=0, atol=1e-5)

    @pytest.mark.parametrize("name", ["B_16", "B_32", "L_16", "L_32", "H_14"])
    def test_every_model_of_torchvision_has_as_many_numbers_as_published(self, name):
        with torch.device("meta"):
            model = getattr(theirs, f"vit_{name.lower()}")()
        for weights in getattr(theirs, f"ViT_{name}_Weights"):
            size = weights.meta["min_size"][0]
            ours = from_torchvision(model, image_size=size)
            numbers = sum(weight.numel() for weight in ours.parameters())
            assert numbers == weights.meta["num_params"]

    @pytest.mark.parametrize("image_size", [16, 20, 36])
    def test_positions_are_interpolated_as_torchvision_does(self, image_size):
        model, larger = torchvisions(24), torchvisions(image_size)
        state = theirs.interpolate_embeddings(image_size, 4, model.state_dict())
        larger.load_state_dict(state)
        ours = from_torchvision(model, image_size=image_size)
        images = torch.rand(3, 3, image_size, image_size)
        torch.testing.assert_close(ours(images), larger(images), rtol=0, atol=1e-5)

    def test_dropout_comes_along(self):
        ours = from_torchvision(torchvisions(dropout=0.2, attention_dropout=0.3))
        rates = {m.p for m in ours.modules() if isinstance(m, nn.Dropout)}
        assert rates == {0.2}
        assert {layer.attention.dropout for layer in ours.layers} == {0.3}

    def test_the_weights_are_copies_and_can_be_trained(self):
        model, images = torchvisions(), torch.rand(3, 3, 24, 24)
        model.requires_grad_(False)
        before = torch.get_rng_state()
        ours, expected = from_torchvision(model), model(images)
        assert torch.get_rng_state().equal(before)  # no random number is drawn
        uneven(model)
        ours(images).sum().backward()
        torch.testing.assert_close(ours(images), expected)
        assert all(weight.grad is not None for weight in ours.parameters())

    @pytest.mark.parametrize("name", ["heads", "heads.head"])
    def test_a_head_of_ones_own_comes_along(self, name):
        model, images = torchvisions(), torch.rand(3, 3, 24, 24)
        model.set_submodule(name, nn.Linear(16, 2))
        ours = from_torchvision(model)
        torch.testing.assert_close(ours(images), model(images))

    def test_a_head_of_several_maps_and_patches_that_do_not_fill_are_refused(self):
        with pytest.raises(ValueError, match="heads has Linear, Tanh, Linear"):
            from_torchvision(torchvisions(representation_size=8))
        with pytest.raises(ValueError, match="4 does not divide 30"):
            from_torchvision(torchvisions(), image_size=30)
        with pytest.raises(ValueError, match="4 does not divide 0"):
            from_torchvision(torchvisions(), image_size=0)

    def test_a_stem_of_several_convolutions_is_refused(self):
        stem = 2 * [theirs.ConvStemConfig(8, 3, 2)]
        with pytest.raises(ValueError, match="by one convolution, not several"):
            from_torchvision(torchvisions(conv_stem_configs=stem))

    def test_what_stands_behind_the_linear_map_is_not_dropped_unsaid(self):
        model = torchvisions()
        model.heads = nn.Sequential(nn.Linear(16, 2), nn.ReLU())
        with pytest.raises(ValueError, match="heads has Linear, ReLU"):
            from_torchvision(model)
        with pytest.raises(ValueError, match="Linear is no torchvision"):
            from_torchvision(nn.Linear(1, 1))

    def test_dropout_before_a_head_without_a_bias_comes_along(self):
        model, images = torchvisions().eval(), torch.rand(3, 3, 24, 24)
        model.heads = nn.Sequential(
            nn.Dropout(0.5), nn.Linear(16, 2, bias=False)
        ).eval()
        ours = from_torchvision(model)
        torch.testing.assert_close(ours(images), model(images))
