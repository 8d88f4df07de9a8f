"""The Transformer: against torch.nn by copied weights, and token by token."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.data.text import BOS
from tutorial_lib.decoding import beam_search, greedy
from tutorial_lib.interpret import record_attention
from tutorial_lib.masks import causal_mask, padding_mask
from tutorial_lib.position import sinusoids
from tutorial_lib.transformer import (
    Decoder,
    DecoderLayer,
    Embeddings,
    Encoder,
    EncoderLayer,
    FeedForward,
    Transformer,
)

LENGTHS = torch.tensor([6, 3, 1])
either_norm = pytest.mark.parametrize("norm_first", [True, False], ids=["pre", "post"])


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def uneven(module):
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module


def copy_attention(ours, theirs):
    weights, biases = theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3)
    for name, weight, bias in zip(("W_Q", "W_K", "W_V"), weights, biases, strict=True):
        getattr(ours, name).load_state_dict({"weight": weight, "bias": bias})
    ours.W_O.load_state_dict(theirs.out_proj.state_dict())


def copy_layer(ours, theirs):
    """Give ``ours`` the weights of torch's layer, after making all of those uneven."""
    uneven(theirs)
    copy_attention(ours.attention, theirs.self_attn)
    norms = ["norm1", "norm2"]
    if hasattr(ours, "cross_attention"):
        copy_attention(ours.cross_attention, theirs.multihead_attn)
        norms.append("norm3")
    ours.feed_forward.W_1.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.W_2.load_state_dict(theirs.linear2.state_dict())
    for norm in norms:
        getattr(ours, norm).load_state_dict(getattr(theirs, norm).state_dict())


def translator(*, norm_first=True, dropout=0.0, num_layers=2, **tied):
    sizes = (16, 2, 32, num_layers)
    options = {"norm_first": norm_first, "dropout": dropout}
    encoder = Encoder(11, *sizes, max_tokens=8, **options)
    decoder = Decoder(13, *sizes, max_tokens=20, **options)
    return Transformer(encoder, decoder, **tied).eval()


def sentences():
    source, target = torch.randint(4, 11, (3, 6)), torch.randint(4, 13, (3, 9))
    return source, LENGTHS, target


def test_feed_forward_is_two_convolutions_of_width_one():
    layer, x = FeedForward(4, 10), torch.randn(2, 5, 4)
    wide = F.conv1d(x.mT, layer.W_1.weight[..., None], layer.W_1.bias)
    out = F.conv1d(wide.relu(), layer.W_2.weight[..., None], layer.W_2.bias)
    torch.testing.assert_close(layer(x), out.mT)


def test_dropout_drops_what_is_added_and_never_the_residual_stream():
    x, memory = torch.randn(2, 3, 8), torch.randn(2, 4, 8)
    encoder, decoder = (
        make(8, 2, 20, norm_first=True) for make in (EncoderLayer, DecoderLayer)
    )
    encoder.dropout.p = decoder.dropout.p = 1.0  # in training, as every layer begins
    assert encoder(x).equal(x)
    assert decoder(x, memory).equal(x)


@either_norm
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize("options", [{}, {"activation": F.gelu}], ids=["", "gelu"])
def test_the_encoder_layer_is_torchs(norm_first, causal, padded, options):
    options = {"norm_first": norm_first, **options}
    ours = EncoderLayer(8, 2, 20, **options)
    options |= {"dropout": 0.0, "batch_first": True}
    theirs = nn.TransformerEncoderLayer(8, 2, 20, **options)
    copy_layer(ours, theirs)
    x, mask = torch.randn(3, 6, 8), padding_mask(LENGTHS, 6) if padded else None
    expected = theirs(
        x,
        src_mask=~causal_mask(6) if causal else None,
        src_key_padding_mask=None if mask is None else ~mask[:, 0],
    )
    torch.testing.assert_close(ours(x, mask, causal=causal), expected)


@either_norm
def test_encoder_and_decoder_are_torchs_stacks_of_layers(norm_first):
    ours, (source, lengths, target) = translator(norm_first=norm_first), sentences()
    options = {"dropout": 0.0, "batch_first": True, "norm_first": norm_first}
    layers = (
        nn.TransformerEncoderLayer(16, 2, 32, **options),
        nn.TransformerDecoderLayer(16, 2, 32, **options),
    )
    norms = [nn.LayerNorm(16) if norm_first else nn.Identity() for _ in layers]
    encoder = nn.TransformerEncoder(layers[0], 2, norms[0], enable_nested_tensor=False)
    decoder = nn.TransformerDecoder(layers[1], 2, norms[1])
    inputs = []
    for part, stack, tokens in (
        (ours.encoder, encoder, source),
        (ours.decoder, decoder, target),
    ):
        for layer, theirs in zip(part.layers, stack.layers, strict=True):
            copy_layer(layer, theirs)
        part.norm.load_state_dict(uneven(stack.norm).state_dict())
        positions = sinusoids(torch.arange(tokens.shape[1]), 16)
        embedded = part.embeddings.token_embedding(tokens)
        inputs.append(4 * embedded + positions)  # √d_model = 4
    padding = ~padding_mask(lengths, 6)[:, 0]
    memory = encoder(inputs[0], src_key_padding_mask=padding)
    out = decoder(
        inputs[1], memory, tgt_mask=~causal_mask(9), memory_key_padding_mask=padding
    )
    torch.testing.assert_close(ours(source, lengths, target), ours.decoder.lm_head(out))


@either_norm
class TestTransformer:
    @pytest.mark.parametrize("num_layers", [1, 2])
    def test_with_a_cache_any_pieces_give_what_the_whole_gives(
        self, norm_first, num_layers
    ):
        model = translator(norm_first=norm_first, num_layers=num_layers)
        source, lengths, target = sentences()
        whole = model(source, lengths, target)
        for sizes in ([1] * 9, [4, 5], [1, 3, 1, 4], [8, 1]):
            state, end = model.encode(source, lengths), 0
            for piece in target.split(sizes, dim=1):
                logits, state = model.decode_step(piece, state)
                end += piece.shape[1]
                torch.testing.assert_close(logits, whole[:, end - 1])
            memory, mask, cache = model.encode(source, lengths)
            pieces = [
                model.decoder(piece, memory, mask, kv_cache=cache)
                for piece in target.split(sizes, dim=1)
            ]
            torch.testing.assert_close(torch.cat(pieces, dim=1), whole)
            assert cache.length == 9

    def test_cross_attention_projects_the_source_once(self, norm_first):
        model = translator(norm_first=norm_first)
        (source, lengths, target), calls = sentences(), []
        for layer in model.decoder.layers:
            for W in (layer.cross_attention.W_K, layer.cross_attention.W_V):
                W.register_forward_hook(lambda *_: calls.append(1))
        state = model.encode(source, lengths)
        for token in target.split(1, dim=1):
            _, state = model.decode_step(token, state)
        assert len(calls) == 2 * 2  # keys and values of two layers

    def test_the_future_leaves_the_past_alone_in_training_and_evaluation(
        self, norm_first
    ):
        model = translator(norm_first=norm_first)
        source, lengths, target = sentences()
        changed = target.clone()
        changed[:, 5:] = torch.randint(4, 13, (3, 4))
        for training in (False, True):
            model.train(training)
            before, after = (model(source, lengths, t) for t in (target, changed))
            assert before[:, :5].equal(after[:, :5])
            assert not before[:, 5:].allclose(after[:, 5:])

    def test_padding_changes_nothing(self, norm_first):
        model = translator(norm_first=norm_first)
        source, lengths, target = sentences()
        batch = model(source, lengths, target)
        for i, n in enumerate(lengths.tolist()):
            alone = model(source[i : i + 1, :n], lengths[i : i + 1], target[i : i + 1])
            torch.testing.assert_close(batch[i : i + 1], alone)
        other = source.clone()
        other[1, 3:], other[2, 1:] = 5, 7  # tokens where there is only padding
        torch.testing.assert_close(model(other, lengths, target), batch)

    @torch.no_grad()
    @pytest.mark.parametrize("decode", [greedy, partial(beam_search, num_beams=3)])
    def test_decoding_gives_the_log_probabilities_of_teacher_forcing(
        self, norm_first, decode
    ):
        model = translator(norm_first=norm_first)
        for parameter in model.parameters():
            if parameter.ndim > 1:  # so that the model is decided
                nn.init.normal_(parameter, std=0.4)
        source, lengths = torch.randint(4, 11, (9, 6)), LENGTHS.repeat(3)
        first, state = torch.full((9, 1), BOS), model.encode(source, lengths)
        found = decode(model, first, state, max_new_tokens=15, eos=6)
        assert len({tuple(tokens) for tokens in found.tokens}) > 3
        for i, tokens in enumerate(found.tokens):
            target = torch.tensor([[BOS, *tokens, 6][:16]])
            logits = model(source[i : i + 1], lengths[i : i + 1], target[:, :-1])
            expected = logits.log_softmax(-1)[0].gather(1, target[0, 1:, None]).sum()
            torch.testing.assert_close(found.log_probs[i], expected)

    def test_every_parameter_gets_a_finite_gradient(self, norm_first):
        model = translator(norm_first=norm_first)
        model(*sentences()).square().mean().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad.isfinite().all(), name
            used = parameter.grad.abs().sum() > 0
            assert used or "W_K.bias" in name, name  # the same for every key

    def test_no_sentences_no_tokens_and_no_source_have_an_answer(self, norm_first):
        model = translator(norm_first=norm_first)
        source, lengths, target = sentences()
        assert model(source[:0], lengths[:0], target[:0]).shape == (0, 9, 13)
        assert model(source, lengths, target[:, :0]).shape == (3, 0, 13)
        hidden, absent = model(source, 0 * lengths, target), source[:, :0]
        torch.testing.assert_close(model(absent, 0 * lengths, target), hidden)
        assert hidden.isfinite().all()


def test_tied_input_and_output_embeddings_are_one_table():
    model = translator(tied=True)
    table = model.decoder.embeddings.token_embedding.weight
    assert model.decoder.lm_head.weight is table
    free = sum(p.numel() for p in translator().parameters())
    assert free - sum(p.numel() for p in model.parameters()) == 13 * 16


@pytest.mark.parametrize(
    "make",
    [
        partial(FeedForward, 4, 10),
        partial(Embeddings, 11, 16, max_tokens=8),
        partial(EncoderLayer, 8, 2, 20, norm_first=True),
        partial(DecoderLayer, 8, 2, 20, norm_first=True),
        partial(Encoder, 11, 16, 2, 32, 2, max_tokens=8, norm_first=True),
        partial(Decoder, 11, 16, 2, 32, 2, max_tokens=8, norm_first=True),
    ],
    ids=lambda make: make.func.__name__,
)
def test_dropout_is_nowhere_or_everywhere(make):
    for options, rate in (({}, 0.0), ({"dropout": 0.3}, 0.3)):
        parts = [*make(**options).modules()]
        rates = {part.p for part in parts if isinstance(part, nn.Dropout)}
        rates |= {part.dropout for part in parts if hasattr(part, "num_heads")}
        assert rates == {rate}


def test_the_maps_of_all_three_uses_of_attention_are_recorded():
    model, (source, lengths, target) = translator(), sentences()
    with record_attention(model) as maps:
        model(source, lengths, target)
    assert maps["encoder.layers.1.attention"].shape == (3, 2, 6, 6)
    assert maps["decoder.layers.0.cross_attention"].shape == (3, 2, 9, 6)
    own = maps["decoder.layers.0.attention"]
    assert own.masked_select(~causal_mask(9)).eq(0).all()
    for name in ("encoder.layers.0.attention", "decoder.layers.1.cross_attention"):
        assert maps[name][1, ..., 3:].eq(0).all(), name  # padding
    for weights in maps.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))


def test_a_sentence_longer_than_the_table_is_refused_with_advice():
    model, (source, lengths, _) = translator(), sentences()
    with pytest.raises(ValueError, match=r"positions 0 to 8 .* max_tokens"):
        model(torch.ones(1, 9, dtype=torch.long), torch.tensor([9]), source[:1])
    state, tokens = model.encode(source, lengths), torch.ones(3, 20, dtype=torch.long)
    _, state = model.decode_step(tokens, state)
    with pytest.raises(ValueError, match=r"positions 20 to 20 .* max_tokens"):
        model.decode_step(tokens[:, :1], state)


def test_the_initialization_is_xavier_with_small_embeddings_and_untouched_norms():
    sizes = (64, 2, 128, 1)
    options = {"max_tokens": 9, "norm_first": True}
    model = Transformer(
        Encoder(500, *sizes, **options), Decoder(500, *sizes, **options)
    )
    table = model.encoder.embeddings.token_embedding.weight
    assert table.std().item() == pytest.approx(64**-0.5, rel=0.05)
    W_1 = model.encoder.layers[0].feed_forward.W_1.weight
    assert W_1.abs().max() <= (6 / (64 + 128)) ** 0.5
    assert W_1.std().item() == pytest.approx((2 / (64 + 128)) ** 0.5, rel=0.05)
    assert model.encoder.norm.weight.eq(1).all()
    assert model.decoder.layers[0].attention.W_Q.bias.eq(0).all()
