"""The Transformer: against torch.nn with copied weights, and by its properties."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.data.text import BOS
from tutorial_lib.decoding import beam_search, generate, greedy
from tutorial_lib.masks import causal_mask, padding_mask
from tutorial_lib.position import sinusoidal_encoding
from tutorial_lib.transformer import (
    Block,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    Transformer,
    TransformerDecoder,
    TransformerEncoder,
)

LENGTHS = torch.tensor([6, 3, 1])
SENTENCE_END = 6
one_or_two_layers = pytest.mark.parametrize("num_layers", [1, 2])
either_mask = pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
either_batch = pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def uneven(module):
    """Draw all parameters, so that no bias is 0 and no scale of a norm is 1."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module


def copy_attention(ours, theirs):
    weights = theirs.in_proj_weight.chunk(3)
    biases = theirs.in_proj_bias.chunk(3)
    for i, linear in enumerate([ours.W_Q, ours.W_K, ours.W_V]):
        linear.load_state_dict({"weight": weights[i], "bias": biases[i]})
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


def translator(num_layers=2):
    encoder = TransformerEncoder(11, 16, 2, num_layers, d_ff=32, max_tokens=8)
    decoder = TransformerDecoder(13, 16, 2, num_layers, d_ff=32, max_tokens=20)
    return Transformer(encoder, decoder)


def sentences():
    source = torch.randint(4, 11, (3, 6))
    target = torch.randint(4, 13, (3, 9))
    return source, LENGTHS, target


def test_feed_forward_is_two_convolutions_of_width_one():
    layer = FeedForward(4, 10)
    x = torch.randn(2, 5, 4)
    hidden = F.conv1d(x.mT, layer.W_1.weight[..., None], layer.W_1.bias)
    expected = F.conv1d(hidden.relu(), layer.W_2.weight[..., None], layer.W_2.bias)
    torch.testing.assert_close(layer(x), expected.mT)


def compare_with_torch(ours, theirs, causal, padded):
    copy_layer(ours, theirs)
    x = torch.randn(3, 6, 8)
    may_attend = torch.ones(3, 6, 6, dtype=torch.bool)
    options = {}
    if causal:
        may_attend = may_attend & causal_mask(6)
        options["src_mask"] = ~causal_mask(6)
    if padded:
        may_attend = may_attend & padding_mask(LENGTHS, 6)
        options["src_key_padding_mask"] = ~padding_mask(LENGTHS, 6)[:, 0]
    torch.testing.assert_close(ours(x, may_attend), theirs(x, **options))


@either_mask
@either_batch
@pytest.mark.parametrize("activation", [torch.relu, F.gelu], ids=["relu", "gelu"])
def test_the_block_is_torchs_encoder_layer_with_the_norm_first(
    activation, causal, padded
):
    ours = Block(8, 2, 20, activation=activation)
    theirs = nn.TransformerEncoderLayer(
        8, 2, 20, 0.0, activation, batch_first=True, norm_first=True
    )
    compare_with_torch(ours, theirs, causal, padded)


@either_mask
@either_batch
def test_the_encoder_layer_is_torchs(causal, padded):
    theirs = nn.TransformerEncoderLayer(8, 2, 20, 0.0, batch_first=True)
    compare_with_torch(EncoderLayer(8, 2, 20), theirs, causal, padded)


def test_the_decoder_layer_is_torchs():
    ours = DecoderLayer(8, 2, 20)
    theirs = nn.TransformerDecoderLayer(8, 2, 20, 0.0, batch_first=True)
    copy_layer(ours, theirs)
    x = torch.randn(3, 5, 8)
    encoder_outputs = torch.randn(3, 6, 8)
    source_mask = padding_mask(LENGTHS, 6)
    expected = theirs(
        x,
        encoder_outputs,
        tgt_mask=~causal_mask(5),
        memory_key_padding_mask=~source_mask[:, 0],
    )
    actual = ours(x, causal_mask(5), encoder_outputs, source_mask)
    torch.testing.assert_close(actual, expected)


def test_encoder_and_decoder_are_torchs_stacks_of_layers():
    model = translator()
    source, lengths, target = sentences()
    layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    layer = nn.TransformerDecoderLayer(16, 2, 32, 0.0, batch_first=True)
    decoder = nn.TransformerDecoder(layer, 2)
    for ours, theirs in zip(model.encoder.layers, encoder.layers, strict=True):
        copy_layer(ours, theirs)
    for ours, theirs in zip(model.decoder.layers, decoder.layers, strict=True):
        copy_layer(ours, theirs)

    def embed(part, tokens):
        positions = torch.arange(tokens.shape[1])
        embedded = part.token_embedding(tokens) * 4  # √d_model
        return embedded + sinusoidal_encoding(positions, 16)

    is_padding = ~padding_mask(lengths, 6)[:, 0]
    memory = encoder(embed(model.encoder, source), src_key_padding_mask=is_padding)
    hidden_states = decoder(
        embed(model.decoder, target),
        memory,
        tgt_mask=~causal_mask(9),
        memory_key_padding_mask=is_padding,
    )
    expected = F.linear(hidden_states, model.decoder.token_embedding.weight)
    torch.testing.assert_close(model(source, lengths, target), expected)


@one_or_two_layers
@pytest.mark.parametrize("sizes", [[1] * 9, [4, 5], [1, 3, 1, 4], [8, 1]])
def test_decoding_in_pieces_gives_the_logits_of_the_whole(num_layers, sizes):
    model = translator(num_layers)
    source, lengths, target = sentences()
    whole = model(source, lengths, target)
    state = model.encode(source, lengths)
    end = 0
    for piece in target.split(sizes, dim=1):
        logits, state = model.decode_step(piece, state)
        end += piece.shape[1]
        torch.testing.assert_close(logits, whole[:, end - 1])


def test_the_future_leaves_the_past_alone():
    model = translator()
    source, lengths, target = sentences()
    changed = target.clone()
    changed[:, 5:] = torch.randint(4, 13, (3, 4))
    before = model(source, lengths, target)
    after = model(source, lengths, changed)
    assert before[:, :5].equal(after[:, :5])
    assert not before[:, 5:].allclose(after[:, 5:])


def test_padding_changes_nothing():
    model = translator()
    source, lengths, target = sentences()
    batch = model(source, lengths, target)
    for i, n in enumerate(lengths.tolist()):
        alone = model(source[[i], :n], lengths[[i]], target[[i]])
        torch.testing.assert_close(batch[[i]], alone)
    other = source.clone()
    other[1, 3:] = 5  # tokens where there is only padding
    other[2, 1:] = 7
    torch.testing.assert_close(model(other, lengths, target), batch)


def decided_translator():
    """Return a model that is sure of its tokens, and nine sources for it."""
    model = translator()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            nn.init.normal_(parameter, std=0.4)
    return model, torch.randint(4, 11, (9, 6)), LENGTHS.repeat(3)


@torch.no_grad()
def test_greedy_decoding_takes_the_likeliest_tokens_of_teacher_forcing():
    model, source, lengths = decided_translator()
    bos = torch.full((9, 1), BOS)
    state = model.encode(source, lengths)
    tokens = generate(model, bos, state, greedy, max_new_tokens=15, eos=SENTENCE_END)
    assert len(tokens.unique(dim=0)) > 3
    logits = model(source, lengths, torch.cat([bos, tokens[:, :-1]], dim=1))
    assert tokens.equal(logits.argmax(dim=-1))


@torch.no_grad()
def test_beam_search_gives_the_log_probability_of_teacher_forcing():
    model, source, lengths = decided_translator()
    texts = set()
    for i in range(9):
        one_source = source[[i]]
        one_length = lengths[[i]]
        tokens, log_prob = beam_search(
            model,
            torch.tensor([[BOS]]),
            model.encode(one_source, one_length),
            num_beams=3,
            max_new_tokens=15,
            eos=SENTENCE_END,
        )
        texts.add(tuple(tokens))
        logits = model(one_source, one_length, torch.tensor([[BOS, *tokens[:-1]]]))
        log_probs = logits.log_softmax(dim=-1)[0]
        expected = log_probs.gather(1, torch.tensor(tokens)[:, None]).sum()
        assert log_prob == pytest.approx(expected.item(), abs=1e-4)
    assert len(texts) > 3


def test_every_parameter_gets_a_finite_gradient():
    model = translator()
    model(*sentences()).square().mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), name
        if "W_K.bias" not in name:  # adds the same to the scores of all keys
            assert parameter.grad.abs().sum() > 0, name


def test_no_sentences_no_tokens_and_no_source_have_an_answer():
    model = translator()
    source, lengths, target = sentences()
    assert model(source[:0], lengths[:0], target[:0]).shape == (0, 9, 13)
    assert model(source, lengths, target[:, :0]).shape == (3, 0, 13)
    all_masked = model(source, 0 * lengths, target)
    without_source = model(source[:, :0], 0 * lengths, target)
    torch.testing.assert_close(without_source, all_masked)
    assert all_masked.isfinite().all()


def test_embeddings_begin_with_a_standard_deviation_of_one_over_root_d_model():
    encoder = TransformerEncoder(500, 64, 2, 1, d_ff=128, max_tokens=9)
    decoder = TransformerDecoder(500, 64, 2, 1, d_ff=128, max_tokens=9)
    for part in (encoder, decoder):
        std = part.token_embedding.weight.std().item()
        assert std == pytest.approx(1 / 8, rel=0.05)
