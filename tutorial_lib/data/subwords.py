"""Subword tokens: a text cut by byte-pair encoding, with scores, as Llama cuts it.

Byte-pair encoding begins with characters and merges neighbors into tokens of the
vocabulary, the one with the best score first: Sennrich et al. (2016), and with scores
Kudo and Richardson (2018). A character that the vocabulary lacks becomes its bytes.

This module knows no model, and trains no vocabulary.
"""

import re
import struct
from pathlib import Path

BYTE = re.compile(r"<0x([0-9A-F]{2})>")


class SubwordTokenizer:
    """Text as ids of subword tokens, and back.

    ``tokens`` are the texts by id: "<unk>", "<s>" and "</s>", the 256 bytes from
    "<0x00>" to "<0xFF>", then the subwords; ``scores`` say which merge comes first.
    """

    unk, bos, eos = range(3)

    def __init__(self, tokens, scores):
        self.tokens = list(tokens)
        self.scores = list(scores)
        self._ids = {token: i for i, token in reversed([*enumerate(self.tokens)][259:])}

    def __len__(self):
        return len(self.tokens)

    def encode(self, text):
        """Return the ids of a text, the one that begins every text before them."""
        ids = [self.bos]
        for character in f" {text}" if text else "":  # as if a word stood before it
            ids += self._character(character)
        best = self._best_merge(ids)
        while best is not None:
            merged = self._ids[self.tokens[ids[best]] + self.tokens[ids[best + 1]]]
            ids[best : best + 2] = [merged]
            best = self._best_merge(ids)
        return ids

    def _character(self, character):
        if character in self._ids:
            return [self._ids[character]]
        return [3 + byte for byte in character.encode()]

    def _best_merge(self, ids):
        """Return where the pair stands whose merge has the best score, or None."""
        found = []
        for i in range(1, len(ids) - 1):
            merged = self._ids.get(self.tokens[ids[i]] + self.tokens[ids[i + 1]])
            if merged is not None:
                found.append((-self.scores[merged], i))
        return min(found)[1] if found else None

    def decode(self, ids):
        """Return the text of ids, without the tokens that mark its ends.

        The blank that ``encode`` puts before the first word goes with them.
        """
        ids = [int(i) for i in ids]
        content = b"".join(self._bytes(i) for i in ids if i not in (self.bos, self.eos))
        text = content.decode(errors="replace")
        return text.removeprefix(" ") if ids[:1] == [self.bos] else text

    def _bytes(self, i):
        byte = BYTE.fullmatch(self.tokens[i])
        return bytes([int(byte[1], 16)]) if byte else self.tokens[i].encode()


def read_tokenizer(path):
    """Read the ``tokenizer.bin`` of github.com/karpathy/llama2.c.

    An int32 is the length of the longest token; each token is its score as float32, its
    length as int32, and its bytes. Raises ValueError for another file, or a part of it.
    """
    content = Path(path).read_bytes()
    tokens = []
    scores = []
    position = 4
    try:
        (longest,) = struct.unpack_from("<i", content)
        while position < len(content):
            score, length = struct.unpack_from("<fi", content, position)
            token = content[position + 8 :][:length]
            if len(token) != length:
                raise ValueError("a token is cut off")
            position += 8 + length
            tokens.append(token.decode())
            scores.append(score)
    except (struct.error, ValueError) as error:
        raise ValueError(f"{path} is no tokenizer of llama2.c: {error}") from None
    if len(tokens) < 259 or tokens[258] != "<0xFF>":
        raise ValueError(f"{path} is no tokenizer of llama2.c: it lacks the bytes")
    if max(len(token.encode()) for token in tokens) != longest:
        raise ValueError(
            f"{path} is no tokenizer of llama2.c: it lacks a token of {longest} bytes"
        )
    return SubwordTokenizer(tokens, scores)


def byte_tokenizer():
    """Return a tokenizer that knows bytes and no subword: every text comes back."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    return SubwordTokenizer(tokens, [0.0] * len(tokens))
