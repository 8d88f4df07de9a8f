"""The translator: right under padding, the same in one call and word by word."""

import pytest
import torch
from torch import nn

from tutorial_lib.recording import record_attention
from tutorial_lib.seq2seq import AttentionDecoder, Decoder, Encoder, Seq2Seq

LENGTHS = torch.tensor([5, 1, 3])


@pytest.fixture(params=["fixed", "attention"])
def model(request):
    torch.manual_seed(0)
    encoder = Encoder(11, 4, 6)
    if request.param == "fixed":
        return Seq2Seq(encoder, Decoder(13, 4, 7, 12))
    return Seq2Seq(encoder, AttentionDecoder(13, 4, 7, 12, 5))


@pytest.fixture
def source():
    torch.manual_seed(1)
    source = torch.randint(4, 11, (3, 5))
    return source * (torch.arange(5) < LENGTHS[:, None])  # 0 on padding


@pytest.fixture
def target():
    torch.manual_seed(2)
    return torch.randint(4, 13, (3, 6))


def test_a_padded_batch_gives_what_each_sentence_alone_gives(model, source, target):
    together = model(source, LENGTHS, target)
    for i, length in enumerate(LENGTHS):
        alone = model(source[i : i + 1, :length], LENGTHS[i : i + 1], target[i : i + 1])
        torch.testing.assert_close(together[i], alone[0], rtol=0, atol=1e-6)


def test_what_stands_in_the_padding_changes_nothing(model, source, target):
    other = source.where(torch.arange(5) < LENGTHS[:, None], 9)
    assert model(source, LENGTHS, target).equal(model(other, LENGTHS, target))


def test_the_encoder_equals_two_grus_run_by_hand(source):
    torch.manual_seed(0)
    encoder = Encoder(11, 4, 6)
    memory, summary = encoder(source, LENGTHS)
    for i, length in enumerate(LENGTHS):
        words = encoder.embedding(source[i, :length])
        forward = _run(encoder.gru, words, "")
        backward = _run(encoder.gru, words.flip(0), "_reverse").flip(0)
        expected = torch.cat((forward, backward), dim=-1)
        torch.testing.assert_close(memory[i, :length], expected)
        assert memory[i, length:].eq(0).all()
        torch.testing.assert_close(summary[i], torch.cat((forward[-1], backward[0])))


def _run(gru, words, suffix, hidden=None):
    cell = nn.GRUCell(gru.input_size, gru.hidden_size)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        setattr(cell, name, getattr(gru, f"{name}_l0{suffix}"))
    hidden = torch.zeros(gru.hidden_size) if hidden is None else hidden
    states = []
    for word in words:
        hidden = cell(word, hidden)
        states.append(hidden)
    return torch.stack(states)


def test_an_empty_sentence_is_refused(model, source, target):
    with pytest.raises(RuntimeError, match="greater than 0"):
        model(source, torch.tensor([5, 0, 3]), target)


def test_word_by_word_equals_teacher_forcing_at_every_position(model, source, target):
    forced = model(source, LENGTHS, target)
    state = model.start(source, LENGTHS)
    for t in range(target.shape[1]):
        logits, state = model.step(target[:, t], state)
        torch.testing.assert_close(logits, forced[:, t], rtol=0, atol=1e-6)


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


def test_the_fixed_decoder_is_its_formula_run_by_hand():
    decoder, tokens = Decoder(13, 4, 7, 12), torch.tensor([[1, 5, 6]])
    memory, summary = torch.randn(1, 3, 12), torch.randn(1, 12)
    logits, _ = decoder(tokens, decoder.start(memory, summary, torch.tensor([3])))
    words, context = decoder.embedding(tokens[0]), summary.expand(3, -1)
    first, inputs = (
        torch.tanh(decoder.first(summary[0])),
        torch.cat((words, context), 1),
    )
    read = torch.cat((_run(decoder.gru, inputs, "", first), context, words), dim=1)
    expected = decoder.vocab(torch.tanh(decoder.readout(read)))
    torch.testing.assert_close(logits[0], expected)


def test_the_fixed_decoder_sees_the_summary_and_no_word_of_the_memory():
    decoder = Decoder(13, 4, 7, 12)
    memory, summary = torch.randn(2, 3, 12), torch.randn(2, 12)
    tokens, lengths = torch.tensor([[1, 5], [1, 6]]), torch.tensor([3, 3])
    once, _ = decoder(tokens, decoder.start(memory, summary, lengths))
    again, _ = decoder(tokens, decoder.start(memory + 1, summary, lengths))
    assert once.equal(again)
    other, _ = decoder(tokens, decoder.start(memory, summary + 1, lengths))
    assert not once.allclose(other)


def test_the_attention_decoder_equals_bahdanaus_equations():
    torch.manual_seed(0)
    decoder = AttentionDecoder(13, 4, 7, 12, 5)
    memory, tokens = torch.randn(1, 3, 12), torch.tensor([[1, 8]])
    summary = torch.randn(1, 12)
    lengths = torch.tensor([2])  # the third vector is padding
    logits, _ = decoder(tokens, decoder.start(memory, summary, lengths))
    hidden = torch.tanh(decoder.first(summary))[0]
    for t, token in enumerate(tokens[0]):
        weights = _look_by_hand(decoder.attention, hidden, memory[0, :2])
        context = weights[0] * memory[0, 0] + weights[1] * memory[0, 1]
        word = decoder.embedding.weight[token]
        hidden = _run(decoder.gru, [torch.cat((word, context))], "", hidden)[0]
        readout = torch.tanh(decoder.readout(torch.cat((hidden, context, word))))
        torch.testing.assert_close(logits[0, t], decoder.vocab(readout))


def _look_by_hand(attention, hidden, memory):
    W_Q, W_K, v = attention.W_Q.weight, attention.W_K.weight, attention.v.weight[0]
    scores = [v @ torch.tanh(W_Q @ hidden + W_K @ key) for key in memory]
    return torch.stack(scores).softmax(dim=0)


def test_keys_are_projected_once_per_sentence(source, target):
    model = Seq2Seq(Encoder(11, 4, 6), AttentionDecoder(13, 4, 7, 12, 5))
    calls = []
    model.decoder.attention.W_K.register_forward_hook(lambda *_: calls.append(1))
    model(source, LENGTHS, target)
    assert len(calls) == 1
    state = model.start(source, LENGTHS)
    for t in range(6):
        _, state = model.step(target[:, t], state)
    assert len(calls) == 2


def test_recorded_weights_have_a_row_for_each_word_and_none_on_padding(source, target):
    model = Seq2Seq(Encoder(11, 4, 6), AttentionDecoder(13, 4, 7, 12, 5))
    with record_attention(model) as maps:
        model(source, LENGTHS, target)
    weights = maps["decoder.attention"]
    assert weights.shape == (3, 1, 6, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 1, 6))
    assert weights[1, 0, :, 1:].eq(0).all()


def test_every_weight_starts_as_its_kind_asks():
    torch.manual_seed(0)
    model = Seq2Seq(Encoder(200, 40, 60), AttentionDecoder(300, 40, 80, 120, 70))
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
    model = Seq2Seq(Encoder(11, 4, 6, dropout=0.5), Decoder(13, 4, 7, 12, dropout=0.5))
    assert not model(source, LENGTHS, target).equal(model(source, LENGTHS, target))
    model.eval()
    assert model(source, LENGTHS, target).equal(model(source, LENGTHS, target))
