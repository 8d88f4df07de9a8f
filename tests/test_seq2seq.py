"""The recurrent translator: padding, equations, and decoding token by token."""

import pytest
import torch
from torch import nn

from tutorial_lib.interpret import record_attention
from tutorial_lib.seq2seq import AttentionDecoder, Decoder, Encoder, Seq2Seq

LENGTHS = torch.tensor([5, 1, 3])


def with_attention(**dropout):
    decoder = AttentionDecoder(13, 4, 7, 12, 5, **dropout)
    return Seq2Seq(Encoder(11, 4, 6, **dropout), decoder)


def with_a_context_vector(**dropout):
    return Seq2Seq(Encoder(11, 4, 6, **dropout), Decoder(13, 4, 7, 12, **dropout))


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


def test_padding_changes_nothing(model, source, target):
    together = model(source, LENGTHS, target)
    for i, length in enumerate(LENGTHS):
        alone = model(source[i : i + 1, :length], LENGTHS[i : i + 1], target[i : i + 1])
        torch.testing.assert_close(together[i], alone[0], rtol=0, atol=1e-6)
    other = source.where(torch.arange(5) < LENGTHS[:, None], 9)
    assert model(other, LENGTHS, target).equal(together)
    with pytest.raises(RuntimeError, match="greater than 0"):
        model(source, torch.tensor([5, 0, 3]), target)


def test_the_encoder_equals_two_grus_run_by_hand(source):
    encoder = Encoder(11, 4, 6)
    outputs, context = encoder(source, LENGTHS)
    for i, length in enumerate(LENGTHS):
        embedded = encoder.embedding(source[i, :length])
        forward = _run(encoder.gru, embedded, "")
        backward = _run(encoder.gru, embedded.flip(0), "_reverse").flip(0)
        expected = torch.cat((forward, backward), dim=-1)
        torch.testing.assert_close(outputs[i, :length], expected)
        assert outputs[i, length:].eq(0).all()
        torch.testing.assert_close(context[i], torch.cat((forward[-1], backward[0])))


def _run(gru, inputs, suffix, hidden=None):
    cell = nn.GRUCell(gru.input_size, gru.hidden_size)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        setattr(cell, name, getattr(gru, f"{name}_l0{suffix}"))
    hidden = torch.zeros(gru.hidden_size) if hidden is None else hidden
    states = []
    for x in inputs:
        hidden = cell(x, hidden)
        states.append(hidden)
    return torch.stack(states)


@pytest.mark.parametrize("sizes", [[1] * 6, [2, 3, 1]])
def test_pieces_of_the_target_give_what_teacher_forcing_gives(
    model, source, target, sizes
):
    forced = model(source, LENGTHS, target)
    state, end = model.encode(source, LENGTHS), 0
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


def test_every_weight_learns(model, source, target):
    model(source, LENGTHS, target).logsumexp(-1).sum().backward()
    still = [n for n, p in model.named_parameters() if not p.grad.abs().sum() > 0]
    assert still == []


def test_the_decoder_with_a_context_vector_is_its_formula_run_by_hand():
    decoder, tokens = Decoder(13, 4, 7, 12), torch.tensor([[1, 5, 6]])
    outputs, context = torch.randn(2, 1, 3, 12), torch.randn(1, 12)
    once, again = (
        decoder(tokens, decoder.init_state(some, context, torch.tensor([3])))[0]
        for some in outputs
    )
    assert once.equal(again)  # of the encoder it has the context vector alone
    embedded, contexts = decoder.embedding(tokens[0]), context.expand(3, -1)
    hidden = torch.tanh(decoder.init_hidden(context[0]))
    steps = _run(decoder.gru, torch.cat((embedded, contexts), 1), "", hidden)
    readout = torch.tanh(decoder.readout(torch.cat((steps, contexts, embedded), 1)))
    torch.testing.assert_close(once[0], decoder.out(readout))


def test_the_attention_decoder_equals_bahdanaus_equations():
    decoder = AttentionDecoder(13, 4, 7, 12, 5)
    outputs, tokens = torch.randn(1, 3, 12), torch.tensor([[1, 8]])
    context = torch.randn(1, 12)
    lengths = torch.tensor([2])  # the third vector is padding
    logits, _ = decoder(tokens, decoder.init_state(outputs, context, lengths))
    hidden = torch.tanh(decoder.init_hidden(context))[0]
    for t, token in enumerate(tokens[0]):
        weights = _attend_by_hand(decoder.attention, hidden, outputs[0, :2])
        context = weights[0] * outputs[0, 0] + weights[1] * outputs[0, 1]
        embedded = decoder.embedding.weight[token]
        hidden = _run(decoder.gru, [torch.cat((embedded, context))], "", hidden)[0]
        readout = torch.tanh(decoder.readout(torch.cat((hidden, context, embedded))))
        torch.testing.assert_close(logits[0, t], decoder.out(readout))


def _attend_by_hand(attention, hidden, keys):
    W_Q, W_K, w_v = (W.weight for W in (attention.W_Q, attention.W_K, attention.w_v))
    scores = [w_v[0] @ torch.tanh(W_Q @ hidden + W_K @ key) for key in keys]
    return torch.stack(scores).softmax(dim=0)


def test_keys_are_projected_once_per_sentence(source, target):
    model, calls = with_attention(), []
    model.decoder.attention.W_K.register_forward_hook(lambda *_: calls.append(1))
    model(source, LENGTHS, target)
    assert len(calls) == 1
    state = model.encode(source, LENGTHS)
    for token in target.split(1, dim=1):
        _, state = model.decode_step(token, state)
    assert len(calls) == 2


def test_recorded_weights_have_a_row_for_each_token_and_none_on_padding(source, target):
    model = with_attention()
    with record_attention(model) as maps:
        model(source, LENGTHS, target)
    weights = maps["decoder"]
    assert weights.shape == (3, 1, 6, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 1, 6))
    assert weights[1, 0, :, 1:].eq(0).all()


def test_every_weight_starts_as_its_kind_asks():
    model = Seq2Seq(Encoder(200, 40, 60), AttentionDecoder(300, 40, 80, 120, 70))
    assert model.decoder.embedding.weight.shape == (300, 40)
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


def test_dropout_acts_in_training_only(source, target):
    for make in (with_a_context_vector, with_attention):
        model = make(dropout=0.5)
        assert not model(source, LENGTHS, target).equal(model(source, LENGTHS, target))
        model.eval()
        assert model(source, LENGTHS, target).equal(model(source, LENGTHS, target))
