"""The Transformer: against torch.nn by copied weights, and word by word."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.decoding import Recomputing, beam_search, greedy
from tutorial_lib.masks import causal_mask, padding_mask
from tutorial_lib.position import sinusoids
from tutorial_lib.recording import record_attention
from tutorial_lib.transformer import (
    Decoder,
    DecoderLayer,
    Embedding,
    Encoder,
    EncoderLayer,
    FeedForward,
    Residual,
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


def copy_block(ours, theirs):
    """Give ``ours`` the weights of torch's layer, after making all of those uneven."""
    uneven(theirs)
    copy_attention(ours.attention, theirs.self_attn)
    if hasattr(ours, "cross_attention"):
        copy_attention(ours.cross_attention, theirs.multihead_attn)
    ours.feed_forward.W_1.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.W_2.load_state_dict(theirs.linear2.state_dict())
    for i, residual in enumerate(ours.residuals, start=1):
        residual.norm.load_state_dict(getattr(theirs, f"norm{i}").state_dict())


def translator(*, norm_first=True, dropout=0.0, blocks=2, **tied):
    sizes, options = (16, 2, 32, blocks), {"norm_first": norm_first, "dropout": dropout}
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


@either_norm
def test_a_residual_adds_and_normalizes_in_the_order_asked_for(norm_first):
    residual, x = Residual(4, norm_first=norm_first), torch.randn(2, 3, 4)
    nn.init.normal_(residual.norm.weight)
    out = residual.after(x, 3 * residual.before(x))
    expected = x + 3 * residual.norm(x) if norm_first else residual.norm(4 * x)
    torch.testing.assert_close(out, expected)


def test_dropout_drops_what_is_added_and_never_the_stream():
    x, memory = torch.randn(2, 3, 8), torch.randn(2, 2, 4, 4)
    encoder, decoder = (
        make(8, 2, 20, norm_first=True) for make in (EncoderLayer, DecoderLayer)
    )
    for residual in (*encoder.residuals, *decoder.residuals):
        residual.dropout.p = 1.0  # which is for training, as every block begins
    assert encoder(x).equal(x)
    prefix = [memory[:, :, :0]] * 2
    assert decoder(x, prefix, [memory] * 2)[0].equal(x)


def test_the_encoder_blocks_activation_is_relu_unless_another_is_given():
    x = torch.randn(2, 5, 8)
    for options in ({}, {"activation": F.gelu}):
        ours = EncoderLayer(8, 2, 20, norm_first=True, **options)
        theirs = nn.TransformerEncoderLayer(
            8, 2, 20, dropout=0.0, batch_first=True, norm_first=True, **options
        )
        copy_block(ours, theirs)
        torch.testing.assert_close(ours(x), theirs(x))


@either_norm
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
def test_the_encoder_block_is_torchs_layer(norm_first, causal, padded):
    ours = EncoderLayer(8, 2, 20, norm_first=norm_first)
    theirs = nn.TransformerEncoderLayer(
        8, 2, 20, dropout=0.0, batch_first=True, norm_first=norm_first
    )
    copy_block(ours, theirs)
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
    for part, stack, words in (
        (ours.encoder, encoder, source),
        (ours.decoder, decoder, target),
    ):
        for block, layer in zip(part.blocks, stack.layers, strict=True):
            copy_block(block, layer)
        part.norm.load_state_dict(uneven(stack.norm).state_dict())
        positions = sinusoids(torch.arange(words.shape[1]), 16)
        inputs.append(4 * part.embedding.words(words) + positions)  # √d_model = 4
    padding = ~padding_mask(lengths, 6)[:, 0]
    memory = encoder(inputs[0], src_key_padding_mask=padding)
    out = decoder(
        inputs[1], memory, tgt_mask=~causal_mask(9), memory_key_padding_mask=padding
    )
    torch.testing.assert_close(ours(source, lengths, target), ours.decoder.vocab(out))


@either_norm
class TestTransformer:
    @pytest.mark.parametrize("blocks", [1, 2])
    def test_any_pieces_of_the_target_give_what_the_whole_gives(
        self, norm_first, blocks
    ):
        model = translator(norm_first=norm_first, blocks=blocks)
        source, lengths, target = sentences()
        whole = model(source, lengths, target)
        for sizes in ([1] * 9, [4, 5], [1, 3, 1, 4], [8, 1]):
            state, pieces = model.start(source, lengths), []
            for piece in target.split(sizes, dim=1):
                logits, state = model.decoder(piece, state)
                pieces.append(logits)
            torch.testing.assert_close(torch.cat(pieces, dim=1), whole)

    def test_a_step_is_one_word_of_the_whole(self, norm_first):
        model = translator(norm_first=norm_first)
        source, lengths, target = sentences()
        whole, state = model(source, lengths, target), model.start(source, lengths)
        for t in range(9):
            logits, state = model.step(target[:, t], state)
            torch.testing.assert_close(logits, whole[:, t])

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
        other[1, 3:], other[2, 1:] = 5, 7  # words where there is only padding
        torch.testing.assert_close(model(other, lengths, target), batch)

    def test_greedy_and_beam_search_write_what_recomputing_everything_writes(
        self, norm_first
    ):
        model, (source, lengths, _) = translator(norm_first=norm_first), sentences()
        for parameter in model.parameters():
            if parameter.ndim > 1:
                nn.init.normal_(
                    parameter, std=0.4
                )  # decided, so that ties do not count
        slow = Recomputing(model)
        options = {"max_tokens": 15, "eos": 0}
        ours, theirs = (greedy(m, source, lengths, **options) for m in (model, slow))
        assert ours.tokens == theirs.tokens
        assert len({tuple(words) for words in ours.tokens}) > 1
        ours, theirs = (
            beam_search(m, source, lengths, width=3, **options) for m in (model, slow)
        )
        assert ours.tokens == theirs.tokens
        torch.testing.assert_close(ours.log_probabilities, theirs.log_probabilities)

    def test_every_parameter_gets_a_finite_gradient(self, norm_first):
        model = translator(norm_first=norm_first)
        source, lengths, target = sentences()
        model(source, lengths, target).square().mean().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad.isfinite().all(), name
            used = parameter.grad.abs().sum() > 0
            assert used or "W_K.bias" in name, name  # the same for every key


def test_a_tied_decoder_reads_and_writes_by_one_table():
    model = translator(tied=True)
    assert model.decoder.vocab.weight is model.decoder.embedding.words.weight
    names = [name for name, _ in model.named_parameters()]
    assert "decoder.vocab.weight" not in names
    free = sum(p.numel() for p in translator().parameters())
    assert free - sum(p.numel() for p in model.parameters()) == 13 * 16


@pytest.mark.parametrize(
    "make",
    [
        partial(FeedForward, 4, 10),
        partial(Embedding, 11, 16, max_tokens=8),
        partial(Residual, 4, norm_first=True),
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
        rates |= {part.dropout for part in parts if hasattr(part, "heads")}
        assert rates == {rate}


def test_dropout_acts_in_training_alone():
    model, inputs = translator(dropout=0.5), sentences()
    assert model(*inputs).equal(model(*inputs))
    model.train()
    assert not model(*inputs).allclose(model(*inputs))


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


def test_maps_recorded_word_by_word_are_those_of_the_whole():
    model, (source, lengths, target) = translator(), sentences()
    with record_attention(model) as maps:
        model(source, lengths, target)
        whole = dict(maps)
        state = model.start(source, lengths)
    with record_attention(model.decoder) as maps:
        model.decoder(target[:, :4], state)
    torch.testing.assert_close(
        maps["blocks.1.attention"], whole["decoder.layers.1.attention"][:, :, :4, :4]
    )


@either_norm
def test_no_sentences_no_words_and_no_source_have_an_answer(norm_first):
    model, (source, lengths, target) = translator(norm_first=norm_first), sentences()
    assert model(source[:0], lengths[:0], target[:0]).shape == (0, 9, 13)
    assert model(source, lengths, target[:, :0]).shape == (3, 0, 13)
    hidden, absent = model(source, 0 * lengths, target), source[:, :0]
    torch.testing.assert_close(model(absent, 0 * lengths, target), hidden)
    assert hidden.isfinite().all()


def test_a_sentence_longer_than_the_table_is_refused_with_advice():
    model, (source, lengths, _) = translator(), sentences()
    with pytest.raises(ValueError, match=r"positions 0 to 8 .* max_tokens"):
        model(torch.ones(1, 9, dtype=torch.long), torch.tensor([9]), source[:1])
    state = model.start(source, lengths)
    _, state = model.decoder(torch.ones(3, 20, dtype=torch.long), state)
    with pytest.raises(ValueError, match=r"positions 20 to 20 .* max_tokens"):
        model.step(torch.ones(3, dtype=torch.long), state)


def test_the_start_is_xavier_with_small_embeddings_and_untouched_norms():
    sizes = (64, 2, 128, 1)
    options = {"max_tokens": 9, "norm_first": True}
    model = Transformer(
        Encoder(500, *sizes, **options), Decoder(500, *sizes, **options)
    )
    words = model.encoder.embedding.words.weight
    assert words.std().item() == pytest.approx(64**-0.5, rel=0.05)
    W_1 = model.encoder.blocks[0].feed_forward.W_1.weight
    assert W_1.abs().max() <= (6 / (64 + 128)) ** 0.5
    assert W_1.std().item() == pytest.approx((2 / (64 + 128)) ** 0.5, rel=0.05)
    assert model.encoder.norm.weight.eq(1).all()
    assert model.decoder.blocks[0].attention.W_Q.bias.eq(0).all()
