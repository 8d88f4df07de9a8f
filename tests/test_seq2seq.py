"""The recurrent translator: padding, equations, and decoding token by token."""

import pytest
import torch
from torch import nn

from tutorial_lib.seq2seq import (
    AttentionDecoder,
    Decoder,
    Encoder,
    Seq2Seq,
    initialize,
)

LENGTHS = torch.tensor([5, 1, 3])


def with_attention():
    decoder = AttentionDecoder(13, 4, d_hidden=7, d_encoder=12, d_attention=5)
    return Seq2Seq(Encoder(11, 4, d_hidden=6), decoder)


def with_a_context_vector():
    decoder = Decoder(13, 4, d_hidden=7, d_encoder=12)
    return Seq2Seq(Encoder(11, 4, d_hidden=6), decoder)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.fixture(params=[with_a_context_vector, with_attention])
def model(request):
    return request.param()


@pytest.fixture
def source():
    source = torch.randint(4, 11, (3, 5))
    return source * (torch.arange(5) < LENGTHS[:, None])  # 0 on padding


@pytest.fixture
def target():
    return torch.randint(4, 13, (3, 6))


def run_gru(gru, inputs, suffix="", hidden=None):
    """Run a GRU over vectors (token, d) with torch's cell; return its hidden states."""
    cell = nn.GRUCell(gru.input_size, gru.hidden_size)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        setattr(cell, name, getattr(gru, f"{name}_l0{suffix}"))
    if hidden is None:
        hidden = torch.zeros(gru.hidden_size)
    states = []
    for x in inputs:
        hidden = cell(x, hidden)
        states.append(hidden)
    return torch.stack(states)


def test_the_encoder_equals_two_grus_run_by_hand(source):
    encoder = Encoder(11, 4, d_hidden=6)
    outputs, context = encoder(source, LENGTHS)
    for i, length in enumerate(LENGTHS):
        embedded = encoder.embedding(source[i, :length])
        forward = run_gru(encoder.gru, embedded)
        backward = run_gru(encoder.gru, embedded.flip(0), "_reverse").flip(0)
        expected = torch.cat([forward, backward], dim=-1)
        torch.testing.assert_close(outputs[i, :length], expected)
        assert outputs[i, length:].eq(0).all()
        torch.testing.assert_close(context[i], torch.cat([forward[-1], backward[0]]))


def test_a_forward_encoder_knows_nothing_of_the_words_to_come(source):
    encoder = Encoder(11, 4, d_hidden=6, bidirectional=False)
    outputs, context = encoder(source, LENGTHS)
    assert outputs.shape == (3, 5, 6)
    torch.testing.assert_close(context[0], outputs[0, -1])
    changed = source.clone()
    changed[0, 3] = 4 + (source[0, 3] - 3) % 7
    changed_outputs, _ = encoder(changed, LENGTHS)
    assert changed_outputs[0, :3].equal(outputs[0, :3])
    assert not changed_outputs[0, 3].equal(outputs[0, 3])


def test_padding_changes_nothing(model, source, target):
    together = model(source, LENGTHS, target)
    for i, length in enumerate(LENGTHS):
        alone = model(source[i : i + 1, :length], LENGTHS[i : i + 1], target[i : i + 1])
        torch.testing.assert_close(together[i], alone[0], rtol=0, atol=1e-6)
    other_padding = source.where(torch.arange(5) < LENGTHS[:, None], 9)
    assert model(other_padding, LENGTHS, target).equal(together)


@pytest.mark.parametrize("sizes", [[1] * 6, [2, 3, 1]])
def test_decoding_in_steps_gives_the_logits_of_teacher_forcing(
    model, source, target, sizes
):
    forced = model(source, LENGTHS, target)
    state = model.encode(source, LENGTHS)
    end = 0
    for piece in target.split(sizes, dim=1):
        logits, state = model.decode_step(piece, state)
        end += piece.shape[1]
        torch.testing.assert_close(logits, forced[:, end - 1], rtol=0, atol=1e-6)


def test_the_future_of_the_target_does_not_reach_the_past(model, source, target):
    before = model(source, LENGTHS, target)
    target[:, 4] = 4 + (target[:, 4] - 3) % 9
    after = model(source, LENGTHS, target)
    assert before[:, :4].equal(after[:, :4])
    assert not torch.isclose(before[:, 4:], after[:, 4:]).all(-1).any()


def test_every_weight_has_a_gradient(model, source, target):
    model(source, LENGTHS, target).logsumexp(-1).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


def test_the_decoder_with_a_context_vector_is_its_formula_run_by_hand():
    decoder = Decoder(13, 4, d_hidden=7, d_encoder=12)
    tokens = torch.tensor([[1, 5, 6]])
    context = torch.randn(1, 12)
    logits, _ = decoder(tokens, decoder.init_state(None, context, None))
    embedded = decoder.embedding(tokens[0])
    contexts = context.expand(3, -1)
    hidden = torch.tanh(decoder.init_hidden(context[0]))
    states = run_gru(decoder.gru, torch.cat([embedded, contexts], dim=1), "", hidden)
    features = torch.cat([states, contexts, embedded], dim=1)
    expected = decoder.out(torch.tanh(decoder.readout(features)))
    torch.testing.assert_close(logits[0], expected)


def test_the_attention_decoder_equals_bahdanaus_equations():
    decoder = AttentionDecoder(13, 4, d_hidden=7, d_encoder=12, d_attention=5)
    attention = decoder.attention
    encoder_outputs = torch.randn(1, 3, 12)
    context = torch.randn(1, 12)
    lengths = torch.tensor([2])  # the third position is padding
    tokens = torch.tensor([[1, 8]])
    state = decoder.init_state(encoder_outputs, context, lengths)
    logits, _ = decoder(tokens, state)
    hidden = torch.tanh(decoder.init_hidden(context))[0]
    for t, token in enumerate(tokens[0]):
        scores = []
        for key in encoder_outputs[0, :2]:
            hidden_units = torch.tanh(attention.W_Q(hidden) + attention.W_K(key))
            scores.append(attention.w_v(hidden_units))
        weights = torch.cat(scores).softmax(dim=0)
        context = weights @ encoder_outputs[0, :2]
        embedded = decoder.embedding(token)
        [hidden] = run_gru(decoder.gru, [torch.cat([embedded, context])], "", hidden)
        features = torch.tanh(decoder.readout(torch.cat([hidden, context, embedded])))
        torch.testing.assert_close(logits[0, t], decoder.out(features))


def test_the_first_weights_are_small_and_recurrent_ones_orthogonal():
    decoder = AttentionDecoder(300, 40, d_hidden=80, d_encoder=120, d_attention=70)
    model = Seq2Seq(Encoder(200, 40, d_hidden=60), decoder).apply(initialize)
    for name, weight in model.named_parameters():
        if weight.ndim == 1:
            assert weight.eq(0).all(), name
        elif "embedding" in name:
            assert weight.std().item() == pytest.approx(0.3, rel=0.05), name
        elif "weight_hh" in name:
            for gate in weight.split(weight.shape[1]):
                torch.testing.assert_close(gate @ gate.T, torch.eye(len(gate)))
        else:  # Glorot and Bengio (2010), equation 16
            bound = (6 / sum(weight.shape)) ** 0.5
            assert 0.9 * bound < weight.abs().max() <= bound, name
