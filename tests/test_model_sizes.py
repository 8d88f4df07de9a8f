"""What all models do alike: sizes, devices and precisions."""

import copy

import numpy
import pytest
import torch

from tutorial_lib.attention import AdditiveAttention, MultiHeadAttention
from tutorial_lib.attention_only import AttentionOnly
from tutorial_lib.bert import Bert
from tutorial_lib.gpt import GPT
from tutorial_lib.llama import GroupedQueryAttention, Llama
from tutorial_lib.position import SinusoidalEncoding
from tutorial_lib.sizes import SIZES
from tutorial_lib.transformer import Block, TransformerDecoder, TransformerEncoder
from tutorial_lib.vit import VisionTransformer
from tutorial_lib.windows import SwinBlock

LENGTHS = torch.tensor([4, 3])
TOKENS = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 0]])
VECTORS = torch.linspace(-1, 1, 64).view(2, 4, 8)
HEADS = {"d_model": 8, "num_heads": 2}
LAYERS = HEADS | {"vocab_size": 13, "num_layers": 1}
PIXELS = {"image_size": 6, "patch_size": 3, "num_classes": 3}
# A class, its sizes and its inputs.
MODELS = [
    (AdditiveAttention, {"d_query": 8, "d_key": 8, "d_hidden": 4}, [VECTORS] * 3),
    (MultiHeadAttention, HEADS, [VECTORS] * 3),
    (GroupedQueryAttention, HEADS | {"num_kv_heads": 1}, [VECTORS]),
    (Block, HEADS | {"d_ff": 16}, [VECTORS]),
    (SinusoidalEncoding, {"d_model": 8, "max_tokens": 4}, [VECTORS]),
    (AttentionOnly, LAYERS | {"max_tokens": 4}, [TOKENS]),
    (GPT, LAYERS | {"max_tokens": 4}, [TOKENS]),
    (Llama, LAYERS | {"num_kv_heads": 1, "d_ff": 16}, [TOKENS]),
    (Bert, LAYERS | {"d_ff": 16, "max_tokens": 4}, [TOKENS, LENGTHS]),
    (TransformerEncoder, LAYERS | {"d_ff": 16, "max_tokens": 4}, [TOKENS, LENGTHS]),
    (TransformerDecoder, LAYERS | {"d_ff": 16, "max_tokens": 4}, [TOKENS, VECTORS]),
    (
        VisionTransformer,
        HEADS | {"num_layers": 1, "d_ff": 16} | PIXELS,
        [torch.linspace(0, 1, 72).view(2, 1, 6, 6)],
    ),
    (
        SwinBlock,
        HEADS | {"side": 4, "window_size": 2, "shift": 1},
        [torch.linspace(-1, 1, 128).view(1, 4, 4, 8)],
    ),
]
each_model = pytest.mark.parametrize(
    ("kind", "sizes", "inputs"), MODELS, ids=[kind.__name__ for kind, _, _ in MODELS]
)


@each_model
@pytest.mark.parametrize(
    ("size", "wrong"),
    [
        *[("num_heads", 0), ("num_heads", -2), ("num_heads", 3)],
        *[("num_kv_heads", 0), ("num_kv_heads", -1), ("num_kv_heads", 3)],
        *[("patch_size", 0), ("patch_size", 4), ("image_size", 0), ("image_size", -3)],
        *[("window_size", 0), ("window_size", -2), ("window_size", 3), ("side", 5)],
    ],
)
def test_what_cannot_be_split_evenly_is_refused_in_one_sentence(
    kind, sizes, inputs, size, wrong
):
    if size not in sizes:
        return
    with pytest.raises(ValueError, match=f"must (divide|be a) .*{wrong}"):
        kind(**sizes | {size: wrong})


@each_model
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("wrong", [0, -1, 1.5, 2.0, True])
def test_a_model_of_an_odd_size_is_refused_in_one_sentence(
    kind, sizes, inputs, size, wrong
):
    is_checked = "num_layers" in sizes or size.endswith(("heads", "window_size"))
    if size not in sizes or not is_checked:
        return
    message = f"{size} must be a positive whole number, got {wrong}"
    with pytest.raises(ValueError, match=message):
        kind(**sizes | {size: wrong})


@pytest.mark.parametrize("kind", [Llama, TransformerEncoder, SinusoidalEncoding])
def test_dimensions_that_make_no_pairs_are_refused_in_one_sentence(kind):
    [(sizes, inputs)] = [rest for model, *rest in MODELS if model is kind]
    sizes = sizes | {"d_model": 3}
    if "num_heads" in sizes:
        sizes["num_heads"] = 1
    with pytest.raises(ValueError, match="taken in pairs: 3 cannot be"):
        kind(**sizes)(*inputs)


@each_model
@pytest.mark.parametrize("number", [numpy.int64, torch.tensor])
def test_sizes_may_be_numbers_of_numpy_and_torch(kind, sizes, inputs, number):
    torch.manual_seed(0)
    expected = kind(**sizes)(*inputs)
    torch.manual_seed(0)
    same_sizes = {name: number(size) for name, size in sizes.items()}
    assert kind(**same_sizes)(*inputs).equal(expected)


@each_model
def test_a_model_runs_where_its_inputs_are(kind, sizes, inputs):
    model = kind(**sizes).to("meta")
    assert model(*[each.to("meta") for each in inputs]).is_meta


@each_model
def test_a_model_may_be_made_without_weights_and_get_them_later(kind, sizes, inputs):
    model = kind(**sizes)
    with torch.device("meta"):
        other = kind(**sizes)
    other.to_empty(device="cpu").load_state_dict(model.state_dict())
    assert other(*inputs).equal(model(*inputs))


@each_model
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_every_precision_gives_its_own_type(kind, sizes, inputs, dtype):
    model = kind(**sizes)
    other = copy.deepcopy(model).to(dtype)
    converted = [
        each.to(dtype) if each.is_floating_point() else each for each in inputs
    ]
    output = other(*converted)
    assert output.dtype == dtype
    tolerance = 1e-5 if dtype == torch.float64 else 0.05
    torch.testing.assert_close(
        output.float(), model(*inputs), atol=tolerance, rtol=tolerance
    )
