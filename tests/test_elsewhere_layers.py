"""Layers against numbers that other projects publish.

Each test names the file that it has its numbers from: facts are copied, and no code.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from test_elsewhere import within
from torch import nn

from tutorial_lib.attention import (
    AdditiveAttention,
    MultiHeadAttention,
    scaled_dot_product_attention,
)
from tutorial_lib.masks import causal_mask
from tutorial_lib.transformer import DecoderLayer, EncoderLayer

LAYERS = within("layers of a Transformer, one and several")


def assert_within(tolerance, ours, published):
    """Compare with published numbers."""
    published = torch.as_tensor(published).double()
    torch.testing.assert_close(
        ours.detach().double(), published, rtol=0, atol=tolerance
    )


# --- PyTorch: test/cpp/api/transformer.cpp. Weights are the cosines of 0, 1, 2, … ---

SOURCE = torch.tensor(
    [
        [[0.7462, 0.6653, 0.5679, 0.4891], [0.5387, 0.1655, 0.3565, 0.0471]],
        [[0.8335, 0.2799, 0.5031, 0.2947], [0.1402, 0.0318, 0.7636, 0.1346]],
        [[0.6333, 0.9344, 0.1376, 0.9938], [0.8924, 0.2872, 0.6692, 0.2944]],
        [[0.9897, 0.6915, 0.3154, 0.1733], [0.8645, 0.3513, 0.3064, 0.0767]],
        [[0.8117, 0.2366, 0.4838, 0.7881], [0.3718, 0.4945, 0.9511, 0.0864]],
    ]
)  # (token, batch, d_model), as all of theirs
TARGET = torch.tensor(
    [
        [[0.4517, 0.6793, 0.5313, 0.0034], [0.2678, 0.3677, 0.4459, 0.7166]],
        [[0.8100, 0.3716, 0.4096, 0.1976], [0.6958, 0.8844, 0.6081, 0.8315]],
        [[0.0494, 0.9343, 0.5955, 0.3830], [0.5404, 0.3464, 0.9378, 0.6200]],
    ]
)
ENCODED = [
    [[2.428589, 0.020835, -0.602055, -0.085249],
     [2.427987, 0.021213, -0.602496, -0.084103]],
    [[2.424689, 0.019155, -0.604793, -0.085672],
     [2.413863, 0.022211, -0.612486, -0.072490]],
    [[2.433774, 0.021598, -0.598343, -0.087548],
     [2.425104, 0.019748, -0.604515, -0.084839]],
    [[2.436185, 0.022682, -0.596625, -0.087261],
     [2.433556, 0.021891, -0.598509, -0.086832]],
    [[2.416246, 0.017512, -0.610712, -0.082961],
     [2.422901, 0.024187, -0.606178, -0.074929]],
]  # fmt: skip
ENCODED_MASKED = [
    [[2.429026, 0.020793, -0.601741, -0.085642],
     [2.428811, 0.021445, -0.601912, -0.084252]],
    [[2.425009, 0.019155, -0.604566, -0.085899],
     [2.415408, 0.02249, -0.611415, -0.073]],
    [[2.434199, 0.021682, -0.598039, -0.087699],
     [2.42598, 0.019941, -0.603896, -0.085091]],
    [[2.436457, 0.022736, -0.59643, -0.08736],
     [2.434021, 0.022093, -0.598179, -0.08679]],
    [[2.416531, 0.017498, -0.610513, -0.083181],
     [2.4242, 0.024653, -0.605266, -0.074959]],
]  # fmt: skip
ENCODED_GELU = [
    [[2.42163188, 0.03227153, -0.60714219, -0.05908082],
     [2.42151276, 0.03302179, -0.60722523, -0.05762651]],
    [[2.41926761, 0.02974034, -0.60879519, -0.0621269],
     [2.41626395, 0.03539356, -0.61087842, -0.04978623]],
    [[2.42382808, 0.03218872, -0.6055963, -0.06073591],
     [2.41983477, 0.03085259, -0.60840145, -0.06046414]],
    [[2.42500749, 0.03328855, -0.60476388, -0.0595334],
     [2.4237977, 0.03290575, -0.60561789, -0.05940082]],
    [[2.41383916, 0.02686345, -0.61256377, -0.06380707],
     [2.42000277, 0.03800944, -0.60824798, -0.04754947]],
]  # fmt: skip
DECODED = [
    [[2.430065, 0.027862, -0.601136, -0.073096],
     [2.431935, 0.028907, -0.599809, -0.072488]],
    [[2.428457, 0.027053, -0.602275, -0.073462],
     [2.431970, 0.029387, -0.599789, -0.071621]],
    [[2.431934, 0.028196, -0.599802, -0.073809],
     [2.432306, 0.028858, -0.599542, -0.072846]],
]  # fmt: skip
DECODED_MASKED = [
    [[2.429757, 0.027358, -0.601351, -0.073816],
     [2.432692, 0.028583, -0.599263, -0.073634]],
    [[2.428247, 0.02662, -0.602419, -0.074123],
     [2.432657, 0.029055, -0.599293, -0.072732]],
    [[2.431515, 0.027687, -0.600096, -0.074459],
     [2.433075, 0.028543, -0.598987, -0.073985]],
]  # fmt: skip
DECODED_GELU = [
    [[2.42049104, 0.03443088, -0.60793706, -0.05436271],
     [2.42210631, 0.03546578, -0.60679895, -0.05357488]],
    [[2.41907674, 0.0336104, -0.60892977, -0.05490462],
     [2.42216881, 0.03586554, -0.6067524, -0.05289126]],
    [[2.42205716, 0.03488046, -0.60683681, -0.05460596],
     [2.42240309, 0.0354595, -0.60659063, -0.05378816]],
]  # fmt: skip
ONE = torch.tensor([[[20.0, 30, 40, 50]]])
TWO = torch.tensor([[[1.0, 2, 3, 4]], [[5.0, 6, 7, 8]]])
HIDDEN = torch.zeros(2, 5, dtype=torch.bool)  # (batch, key), True where theirs hides
HIDDEN[0, 1] = True
HIDDEN[1, 3:] = True
HIDDEN_SOURCE = torch.zeros(2, 5, dtype=torch.bool)
HIDDEN_SOURCE[0, 4] = True
HIDDEN_SOURCE[1, 3:] = True
AFTER_TWO = [2.419051, 0.017446, -0.608738, -0.085003]  # token 0 of sentence 0
AFTER_SIX = [2.419101, 0.017453, -0.608703, -0.085025]
NORMED_TWO = [1.695949, -0.357635, -0.893077, -0.445238]
NORMED_SIX = [1.695955, -0.357639, -0.893051, -0.445265]


def cosines(*shape):
    return torch.arange(math.prod(shape)).float().cos().view(shape)


@torch.no_grad()
def of_cosines(layer):
    """Fill a layer as their test fills theirs, which holds Q, K and V in one matrix."""
    for weight in layer.parameters():
        weight.copy_(cosines(*weight.shape))
    for part in layer.modules():
        if isinstance(part, MultiHeadAttention):
            weights = cosines(12, 4).split(4)
            biases = cosines(12).split(4)
            for i, W in enumerate([part.W_Q, part.W_K, part.W_V]):
                W.weight.copy_(weights[i])
                W.bias.copy_(biases[i])
    return layer


def encode(x, hidden=None, *, activation=torch.relu):
    layer = of_cosines(EncoderLayer(4, 2, 16))
    layer.feed_forward.activation = activation
    mask = None if hidden is None else ~hidden[:, None]
    return layer(x.transpose(0, 1), mask).transpose(0, 1)


def decode(x, memory, hidden=None, *, activation=torch.relu):
    """Decode without a causal mask, as their test does."""
    layer = of_cosines(DecoderLayer(4, 2, 16))
    layer.feed_forward.activation = activation
    x = x.transpose(0, 1)  # (batch, token, d_model)
    memory = memory.transpose(0, 1)
    source_mask = None if hidden is None else ~hidden[:, None]
    return layer(x, None, memory, source_mask).transpose(0, 1)


@pytest.mark.parametrize(
    ("options", "x", "hidden", "published"),
    [
        ({}, ONE, None, [[[2.258703, 0.127985, -0.697881, 0.170862]]]),
        ({}, TWO, None, [[[2.272644, 0.119035, -0.691669, 0.153486]]] * 2),
        ({}, TWO, torch.tensor([[True, False]]),
         [[[2.301516, 0.092249, -0.679101, 0.103088]]] * 2),
        ({}, SOURCE, None, ENCODED),
        ({}, SOURCE, HIDDEN, ENCODED_MASKED),
        ({"activation": F.gelu}, ONE, None,
         [[[2.249815, 0.131006, -0.702199, 0.177868]]]),
        ({"activation": F.gelu}, SOURCE, None, ENCODED_GELU),
    ],
    ids=["one", "two", "two-masked", "five", "five-masked", "one-gelu", "five-gelu"],
)  # fmt: skip
def test_encoder_layer(options, x, hidden, published):
    assert_within(LAYERS, encode(x, hidden, **options), published)


@pytest.mark.parametrize(
    ("activation", "start", "memory", "published"),
    [
        (torch.relu, 20, 60, [2.314351, 0.094805, -0.671322, 0.101977]),
        (F.gelu, 20, 60, [2.306435, 0.095946, -0.675796, 0.10687]),
    ],
    ids=["relu", "gelu"],
)
def test_decoder_layer_of_one_token(activation, start, memory, published):
    tens = 10.0 * torch.arange(4).view(1, 1, 4)
    output = decode(start + tens, memory + tens, activation=activation)
    assert_within(LAYERS, output[0, 0], published)


@pytest.mark.parametrize(
    ("activation", "hidden", "published"),
    [
        (torch.relu, None, DECODED),
        (torch.relu, HIDDEN_SOURCE, DECODED_MASKED),
        (F.gelu, None, DECODED_GELU),
    ],
    ids=["relu", "masked", "gelu"],
)
def test_decoder_layer(activation, hidden, published):
    output = decode(TARGET, SOURCE, hidden, activation=activation)
    assert_within(LAYERS, output, published)


@pytest.mark.parametrize(
    ("count", "norm", "published"),
    [
        (2, nn.Identity(), AFTER_TWO),
        (6, nn.Identity(), AFTER_SIX),
        (2, nn.LayerNorm(4), NORMED_TWO),
        (6, nn.LayerNorm(4), NORMED_SIX),
    ],
    ids=["two", "six", "two-normed", "six-normed"],
)
def test_stacks_of_layers(count, norm, published):
    x = SOURCE
    for _ in range(count):
        x = encode(x, HIDDEN)
    assert_within(LAYERS, norm(x)[0, 0], published)


def test_everything_masked():
    # "This will result in nan", says their test. In Python it depends on the path: NaN
    # where the weights are asked for, and on the fast path of evaluation; zeros where
    # they are not asked for elsewhere, and always zeros here.
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(4, 2, batch_first=True, bias=False)
    hidden = torch.tensor([[True]])
    output, _ = theirs(ONE, ONE, ONE, key_padding_mask=hidden)
    assert output.isnan().all()
    options = {"key_padding_mask": hidden, "need_weights": False}
    output, _ = theirs(ONE, ONE, ONE, **options)
    assert output.eq(0).all()
    fast = nn.MultiheadAttention(4, 2, batch_first=True).eval()
    with torch.no_grad():
        output, _ = fast(ONE, ONE, ONE, **options)
    assert output.isnan().all()
    mask = ~hidden[:, None]
    output = MultiHeadAttention(4, 2, bias=False)(ONE, ONE, ONE, mask)
    assert output.eq(0).all()
    assert EncoderLayer(4, 2, 16)(ONE, mask).isfinite().all()


# --- Keras: keras/src/layers/attention/ -------------------------------------------

SWAPPED = torch.eye(2)[None], torch.eye(2).flip(0)[None]  # queries and keys
ONE_TO_FOUR = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])


def test_dot_product():
    # attention_test.py, test_attention_correctness, "Dot": scores are not scaled.
    queries, keys = SWAPPED
    output, weights = scaled_dot_product_attention(
        queries * math.sqrt(2), keys, ONE_TO_FOUR
    )
    assert_within(5.1e-4, weights, [[[0.269, 0.731], [0.731, 0.269]]])
    assert_within(5.1e-4, output, [[[2.462, 3.462], [1.538, 2.538]]])
    scaled, _ = scaled_dot_product_attention(queries, keys, ONE_TO_FOUR)
    assert (scaled - output).abs().max() > 0.1


def test_masked_query():
    # attention_test.py, test_attention_with_mask: the output of a masked query is 0 in
    # both; its weights stay theirs [1, 0], and are zeros here.
    queries, _ = SWAPPED
    mask = torch.tensor([[True, False], [False, False]])
    output, weights = scaled_dot_product_attention(
        queries, queries, torch.ones(1, 2, 2), mask
    )
    assert output.tolist() == [[[1.0, 1.0], [0.0, 0.0]]]
    assert weights.tolist() == [[[1.0, 0.0], [0.0, 0.0]]]


def test_hidden_keys():
    # Computed with Keras 3.15.1 on torch: if every key is hidden, its Attention weighs
    # all alike, as for scores of 0. Its MultiHeadAttention gives zeros if asked for the
    # weights, and if not that mean, through its W_V and W_O.
    keys, _ = SWAPPED
    mask = torch.zeros(2, 2, dtype=torch.bool)
    output, weights = scaled_dot_product_attention(keys, keys, ONE_TO_FOUR, mask)
    assert weights.eq(0).all()
    assert output.eq(0).all()
    output, weights = scaled_dot_product_attention(0 * keys, keys, ONE_TO_FOUR)
    assert weights.tolist() == [[[0.5, 0.5], [0.5, 0.5]]]
    assert output.tolist() == [[[2.0, 3.0], [2.0, 3.0]]]


def test_multi_head():
    # multi_head_attention_test.py, test_correctness: eight heads that are all alike, of
    # size 8, and each output adds up that of one of them. Computed in float16.
    layer = MultiHeadAttention(64, 8, bias=False)
    tokens = torch.eye(8)
    for linear in (layer.W_Q, layer.W_K, layer.W_V):
        nn.init.eye_(linear.weight)
    nn.init.zeros_(layer.W_O.weight)
    with torch.no_grad():
        layer.W_O.weight[:8] = torch.eye(8).repeat_interleave(8, dim=1)
    values = torch.arange(64.0).view(8, 8) / 100
    keys = tokens.repeat(1, 8)[None]
    values = values.repeat(1, 8)[None]
    output = layer(keys, keys, values)[0, :, :8]
    rows = torch.tensor([2.406, 2.440, 2.473, 2.504, 2.535, 2.568, 2.602, 2.633])
    assert_within(
        within("multi-head attention, outputs"), output, rows[:, None].expand(8, 8)
    )
    Q = layer.split_heads(layer.W_Q(keys))  # (batch, head, query, d_k)
    K = layer.split_heads(layer.W_K(keys))
    V = layer.split_heads(layer.W_V(values))
    _, weights = scaled_dot_product_attention(Q, K, V)
    published = torch.full((8, 8), 0.1187) + (0.1691 - 0.1187) * tokens
    assert_within(
        within("multi-head attention, weights"), weights[0], published.expand(8, 8, 8)
    )


# --- Additive attention: Keras, and allenai/allennlp -------------------------------


def additive(W_Q, W_K, w_v):
    layer = AdditiveAttention(len(W_Q[0]), len(W_K[0]), len(w_v))
    layer.W_Q.load_state_dict({"weight": torch.tensor(W_Q)})
    layer.W_K.load_state_dict({"weight": torch.tensor(W_K)})
    layer.w_v.load_state_dict({"weight": torch.tensor([w_v])})
    return layer


def test_additive():
    # additive_attention_test.py, test_attention_correctness: nothing is learned there.
    layer = additive([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0])
    published = [[[0.636, 0.363], [0.363, 0.636]]]  # cut, and not rounded
    weights = layer(*SWAPPED, torch.eye(2)[None])
    assert_within(within("additive attention, outputs and weights"), weights, published)
    output = layer(*SWAPPED, ONE_TO_FOUR)
    published = [[[1.727, 2.727], [2.272, 3.272]]]
    assert_within(within("additive attention, outputs and weights"), output, published)


def test_additive_scores():
    # tests/modules/attention/additive_attention_test.py: scores, so weights are theirs
    # after a softmax. Their matrices multiply from the right.
    layer = additive(
        [[-0.2, -0.5], [0.3, 0.5]], [[0.0, 1.0, 1.0], [1.0, 1.0, -1.0]], [1.0, -1.0]
    )
    queries = torch.tensor([[[0.7, -0.8]], [[0.4, 0.9]]])
    keys = torch.tensor(
        [
            [[1.0, -1.0, 3.0], [0.5, -0.3, 0.0], [0.2, -1.0, 1.0], [0.7, 0.8, -1.0]],
            [[-2.0, 3.0, -3.0], [0.6, 0.2, 2.0], [0.5, -0.4, -1.0], [0.2, 0.2, 0.0]],
        ]
    )
    scores = torch.tensor(
        [
            [1.975072, -0.04997836, 1.2176098, -0.9205586],
            [-1.4851665, 1.489604, -1.890285, -1.0672251],
        ]
    )
    weights = layer(queries, keys, torch.eye(4).expand(2, 4, 4))[:, 0]
    assert_within(within("additive attention, weights"), weights, scores.softmax(-1))


# --- What is no number but a property ------------------------------------------------


def test_receptive_field():
    # google/flax, tests/linen/linen_attention_test.py,
    # test_autoregresive_receptive_field_1d: gradients of ten tokens, one head. Theirs
    # count as 0 below 1e-5.
    torch.manual_seed(0)
    layer = MultiHeadAttention(1, 1)
    x = torch.randn(1, 10, 1, requires_grad=True)
    for W in (layer.W_Q, layer.W_K, layer.W_V, layer.W_O):
        nn.init.ones_(W.weight)
    output = layer(x, x, x, causal_mask(10))[0, :, 0]
    for i in range(10):
        [gradient] = torch.autograd.grad(output[i], x, retain_graph=True)
        reached = gradient[0, :, 0].abs() > within("what a causal output depends on")
        assert reached.tolist() == [True] * (i + 1) + [False] * (9 - i)
