"""A small GPT in one file: it learns a text of yours, and goes on writing.

    python small_gpt.py my_text.txt
    python small_gpt.py my_text.txt --steps 5000 --prompt "Once upon a time"

First the tokenizer, then the model, its training, and sampling, as chapter 12 builds
them. Nothing but PyTorch is needed. With a thousand steps a processor takes some
minutes; a GPU is used where there is one.
"""

import argparse
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

PIECE = re.compile(r" ?\w+| ?[^\w\s]+|\s")  # words, punctuation, other space


# --- The tokenizer: byte-pair encoding --------------------------------------------


def merge(tokens, pair):
    """Merge the pair into one token wherever it stands."""
    merged = []
    for token in tokens:
        if merged and (merged[-1], token) == pair:
            merged[-1] = merged[-1] + token
        else:
            merged.append(token)
    return merged


def train_bpe(text, num_merges):
    """Return the merges, in the order in which they were found."""
    merges = []
    piece_counts = Counter(PIECE.findall(text))
    tokens_of = {piece: list(piece) for piece in piece_counts}
    for _ in range(num_merges):
        pair_counts = Counter()
        for piece, count in piece_counts.items():
            for pair in pairwise(tokens_of[piece]):
                pair_counts[pair] += count
        if not pair_counts:
            break
        best_pair = max(pair_counts, key=pair_counts.get)
        merges.append(best_pair)
        for piece in piece_counts:
            tokens_of[piece] = merge(tokens_of[piece], best_pair)
    return merges


class Tokenizer:
    """Text as token ids, and back."""

    def __init__(self, text, num_merges):
        self.merges = train_bpe(text, num_merges)
        merged_tokens = [left + right for left, right in self.merges]
        self.vocabulary = list(dict.fromkeys([*sorted({*text}), *merged_tokens]))
        self.token_to_id = {token: i for i, token in enumerate(self.vocabulary)}
        self.ids_of_piece = {}  # so that each piece is tokenized only once

    def encode(self, text):
        """Return the token ids of a text, a list."""
        unknown = sorted({*text} - self.token_to_id.keys())
        if unknown:
            raise ValueError(f"these characters are not in the text: {unknown}")
        token_ids = []
        for piece in PIECE.findall(text):
            if piece not in self.ids_of_piece:
                tokens = list(piece)
                for pair in self.merges:
                    tokens = merge(tokens, pair)
                self.ids_of_piece[piece] = [self.token_to_id[token] for token in tokens]
            token_ids.extend(self.ids_of_piece[piece])
        return token_ids

    def decode(self, token_ids):
        """Return the text of token ids."""
        return "".join(self.vocabulary[i] for i in token_ids)


# --- The model: a decoder-only Transformer ----------------------------------------


class CausalSelfAttention(nn.Module):
    """Each token attends to itself and to those before it, in several heads."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.W_Q = nn.Linear(d_model, d_model)
        self.W_K = nn.Linear(d_model, d_model)
        self.W_V = nn.Linear(d_model, d_model)
        self.W_O = nn.Linear(d_model, d_model)

    def split_heads(self, x):
        """Cut (batch, token, d_model) into (batch, head, token, d_k)."""
        batch, tokens, d_model = x.shape
        d_k = d_model // self.num_heads
        return x.view(batch, tokens, self.num_heads, d_k).transpose(1, 2)

    def forward(self, x):
        """Update tokens ``x`` (batch, token, d_model)."""
        Q = self.split_heads(self.W_Q(x))
        K = self.split_heads(self.W_K(x))
        V = self.split_heads(self.W_V(x))
        context = F.scaled_dot_product_attention(Q, K, V, is_causal=True)
        return self.W_O(context.transpose(1, 2).flatten(2))  # (batch, token, d_model)


class FeedForward(nn.Module):
    """Compute on each token by itself."""

    def __init__(self, d_model):
        super().__init__()
        self.W_1 = nn.Linear(d_model, 4 * d_model)
        self.W_2 = nn.Linear(4 * d_model, d_model)

    def forward(self, x):
        """Update tokens ``x`` (batch, token, d_model)."""
        return self.W_2(F.gelu(self.W_1(x), approximate="tanh"))


class Block(nn.Module):
    """Attention and feed-forward network, each with norm and residual connection."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = CausalSelfAttention(d_model, num_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model)

    def forward(self, x):
        """Update tokens ``x`` (batch, token, d_model)."""
        x = x + self.attention(self.norm1(x))
        x = x + self.feed_forward(self.norm2(x))
        return x


class GPT(nn.Module):
    """Predict each next token from the tokens before it: Radford et al. (2019)."""

    def __init__(self, vocab_size, d_model, num_heads, num_layers, max_tokens):
        super().__init__()
        self.max_tokens = max_tokens
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(max_tokens, d_model)
        layers = [Block(d_model, num_heads) for _ in range(num_layers)]
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(d_model)
        nn.init.normal_(self.token_embedding.weight, std=0.02)
        nn.init.normal_(self.position_embedding.weight, std=0.02)

    def forward(self, tokens):
        """Return the logits (batch, token, vocab) of what follows each token."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.token_embedding(tokens) + self.position_embedding(positions)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x) @ self.token_embedding.weight.T


# --- Training and sampling --------------------------------------------------------


def get_batch(data, max_tokens, batch_size=32):
    """Draw blocks of the data: inputs and targets, (batch, token)."""
    starts = torch.randint(len(data) - max_tokens, (batch_size,))
    blocks = torch.stack([data[i : i + max_tokens + 1] for i in starts])
    return blocks[:, :-1], blocks[:, 1:]


def next_token_loss(model, inputs, targets):
    """Return the mean cross-entropy of all next tokens."""
    logits = model(inputs)  # (batch, token, vocab)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def train(model, train_data, val_data, num_steps, learning_rate=1e-3):
    """Train with a learning rate that rises for a tenth of the steps, then falls."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, learning_rate, total_steps=num_steps, pct_start=0.1
    )
    for step in range(1, num_steps + 1):
        loss = next_token_loss(model, *get_batch(train_data, model.max_tokens))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % max(num_steps // 10, 1) == 0:
            with torch.no_grad():
                val_batch = get_batch(val_data, model.max_tokens, batch_size=64)
                val_loss = next_token_loss(model, *val_batch)
            print(f"step {step}: loss {loss:.2f}, validation {val_loss:.2f}")


@torch.no_grad()
def generate(model, tokens, max_new_tokens, temperature=1.0, top_k=None):
    """Append sampled tokens to ``tokens`` (batch, token)."""
    for _ in range(max_new_tokens):
        logits = model(tokens[:, -model.max_tokens :])[:, -1]  # (batch, vocab)
        logits = logits / temperature
        if top_k is not None:
            smallest_kept = logits.topk(top_k).values[:, -1:]
            logits = logits.masked_fill(logits < smallest_kept, -torch.inf)
        new_tokens = torch.multinomial(logits.softmax(dim=-1), num_samples=1)
        tokens = torch.cat([tokens, new_tokens], dim=1)
    return tokens


def main():
    """Train on a text, and print a sample."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path, help="a file of plain text")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--merges", type=int, default=200, help="of the tokenizer")
    parser.add_argument("--d-model", type=int, default=128)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--context", type=int, default=64, help="length in tokens")
    parser.add_argument("--prompt", default="\n")
    parser.add_argument("--new-tokens", type=int, default=200)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--top-k", type=int)
    options = parser.parse_args()

    torch.manual_seed(0)
    text = options.text.read_text(encoding="utf-8")
    tokenizer = Tokenizer(text + "\n", options.merges)
    prompt = tokenizer.encode(options.prompt)  # before training, in case it is refused
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = torch.tensor(tokenizer.encode(text), device=device)
    num_train = len(data) * 9 // 10
    if len(data) - num_train <= options.context:
        parser.error(f"the text has only {len(data)} tokens: it is too short")

    vocab_size = len(tokenizer.vocabulary)
    sizes = (options.d_model, options.heads, options.layers, options.context)
    model = GPT(vocab_size, *sizes).to(device)
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"{len(data)} tokens, {vocab_size} different, {num_parameters} parameters")
    train(model, data[:num_train], data[num_train:], options.steps)
    tokens = torch.tensor([prompt], device=device)
    tokens = generate(
        model, tokens, options.new_tokens, options.temperature, options.top_k
    )
    print(tokenizer.decode(tokens[0].tolist()))


if __name__ == "__main__":
    main()
