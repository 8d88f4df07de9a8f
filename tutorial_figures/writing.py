"""A language model that writes on in the page, and whose heads can be switched off.

Any small `GPT` or `Llama` of the library: its matrices travel in 8 bits, a scale for
each row. writing_model.js computes with them; a test holds its logits equal to torch's.
Every head has a row, with a name if it is given one. Where no JavaScript runs, a text
is shown that was stored, and who attended to what.
"""

import base64
import copy

import numpy as np

from .figure import Figure, canvas

STEPS = 127  # of a weight in 8 bits, on each side of 0
# The library's names of a block's maps, and what they are called on the page.
MAPS = {
    "attention.W_Q": "Q",
    "attention.W_K": "K",
    "attention.W_V": "V",
    "attention.W_O": "O",
    "norm1": "norm1",
    "norm2": "norm2",
    "feed_forward.W_1": "up",
    "feed_forward.W_2": "down",
    "feed_forward.W_gate": "gate",
    "feed_forward.W_up": "up",
    "feed_forward.W_down": "down",
}


def show_writing(
    model,
    words,
    prompt,
    *,
    length=60,
    max_tokens=128,
    temperature=0.8,
    head_names=None,
    line=None,
    autoplay=False,
    title=None,
):
    """Show a language model that goes on with what the reader types.

    ``words`` are the names of its vocabulary, single characters or words that are
    joined by spaces; ``prompt`` is a text of them. What the model writes after it, up
    to ``length`` tokens in all, is seen at first; the model reads ``max_tokens``.

    ``head_names`` maps (layer, head) to what that head attends to. ``line`` is a pair
    of texts, what stands before a line and the line: the figure shows the model's loss
    on it, with all heads and without those that are off. With ``autoplay`` the model
    writes once by itself when it comes into view.

    Raises ValueError for a prompt with other words, for a length beyond max_tokens, for
    names of heads that the model does not have, and for a model that is no `GPT` or
    `Llama` of the library.
    """
    words = [str(word) for word in words]
    separator = "" if all(len(word) == 1 for word in words) else " "
    spec, weights = packed(model)
    data = {"words": words, "separator": separator, "sizes": _sizes(model, max_tokens)}
    if len(words) != model.token_embedding.num_embeddings:
        raise ValueError(f"{len(words)} words do not name the model's vocabulary")
    if length > max_tokens:
        raise ValueError(f"length must be at most {max_tokens}, got {length}")
    model = in_8_bits(copy.deepcopy(model)).eval()
    given = encode(prompt, words, separator)
    tokens = _write(model, given, length, temperature)
    written = separator.join(words[token] for token in tokens[len(given) :])
    data.update({"prompt": prompt, "written": written, "temperature": temperature})
    data.update({"spec": spec, "weights": base64.b64encode(weights).decode()})
    probs, maps = _last(model, tokens, temperature)
    data["probs"] = _rounded(probs)
    data["maps"] = [_rounded(row) for row in maps.double().tolist()]
    data["headNames"] = _names_of_heads(head_names or {}, data["sizes"])
    data["line"] = line and _line(model, line, words, separator)
    data["autoplay"] = autoplay
    return Figure(
        "writing",
        data,
        text=_sentence(data),
        title=title,
        shared=("colors.js", "weights.js", "writing_model.js"),
        draw=_draw,
    )


def _names_of_heads(given, sizes):
    """Return a name, or "", for each head of each layer."""
    num_heads = sizes["num_heads"]
    names = [""] * (sizes["num_layers"] * num_heads)
    for (layer, head), name in given.items():
        if not (0 <= layer < sizes["num_layers"] and 0 <= head < num_heads):
            raise ValueError(f"there is no head {head} in layer {layer} to be named")
        names[layer * num_heads + head] = name
    return names


def _line(model, line, words, separator):
    """Return the line, what stands before it, and the model's loss on it."""
    import torch
    import torch.nn.functional as F

    context = encode(line[0], words, separator)
    text = encode(line[1], words, separator)
    with torch.no_grad():
        logits = model(torch.tensor([context + text]))[0, len(context) - 1 : -1]
    loss = F.cross_entropy(logits, torch.tensor(text)).item()
    return {"context": line[0], "text": line[1], "loss": round(loss, 3)}


def _rounded(numbers):
    return [round(number, 3) for number in numbers]


def encode(text, words, separator=""):
    """Return the token ids of a text; raises ValueError for what is no word."""
    pieces = [*text] if not separator else text.split(separator)
    unknown = sorted({*pieces} - {*words})
    if unknown:
        raise ValueError(f"the model does not know: {', '.join(map(repr, unknown))}")
    return [words.index(piece) for piece in pieces]


def packed(model):
    """Return (the names and shapes of a model's weights, their bytes).

    A matrix is its rows' scales in float32 and its entries in int8, filled up to a
    multiple of 4 bytes; a vector is float32, and has 0 rows.
    """
    spec, parts = [], []
    for name, weight in _named(model).items():
        array = weight.detach().float().cpu().numpy()
        if array.ndim == 2:
            scales = np.abs(array).max(axis=1, keepdims=True) / STEPS
            whole = np.rint(array / np.maximum(scales, 1e-12)).astype("<i1").tobytes()
            parts += [scales.astype("<f4").tobytes(), whole, b"\0" * (-len(whole) % 4)]
        else:
            parts.append(array.astype("<f4").tobytes())
        rows, columns = array.shape if array.ndim == 2 else (0, len(array))
        spec.append([name, rows, columns])
    return spec, b"".join(parts)


def unpacked(spec, weights):
    """Yield the names and the values of what was packed, in float32."""
    at = 0
    for name, rows, columns in spec:
        scales = np.frombuffer(weights, "<f4", rows or columns, at)
        at += scales.nbytes
        values = scales
        if rows:
            whole = np.frombuffer(weights, "i1", rows * columns, at)
            at += -(-whole.nbytes // 4) * 4
            values = whole.reshape(rows, columns) * scales[:, None]
        yield name, np.array(values)


def with_weights(model, spec, weights):
    """Give a model the weights that were packed of one of its kind; return it."""
    import torch

    named = _named(model)
    with torch.no_grad():
        for name, values in unpacked(spec, weights):
            named[name].copy_(torch.from_numpy(values))
    return model


def in_8_bits(model):
    """Round a model's matrices, in place, to what the page computes with."""
    return with_weights(model, *packed(model))


def _named(model):
    """Map names on the page to the model's parameters."""
    matrices = {}
    for name, weight in model.named_parameters():
        name, kind = name.rsplit(".", 1)
        if name.startswith("layers."):
            _, layer, name = name.split(".", 2)
            if name not in MAPS:
                raise ValueError(f"a block has {name}, which the page cannot compute")
            name = f"{layer}.{MAPS[name]}"
        matrices[f"{name}.{kind}"] = weight
    return matrices


def _sizes(model, max_tokens):
    """Return the numbers that a page needs besides the weights."""
    from tutorial_lib.position import frequencies

    attention = model.layers[0].attention
    omega = []
    if hasattr(attention, "rope_base"):
        omega = frequencies(attention.d_k, attention.rope_base).tolist()
    return {
        "d_model": model.token_embedding.embedding_dim,
        "num_heads": attention.num_heads,
        "max_tokens": max_tokens,
        "num_kv_heads": attention.W_K.out_features // attention.d_k,
        "num_layers": len(model.layers),
        "frequencies": omega,
    }


def _write(model, tokens, length, temperature):
    """Go on until there are ``length`` tokens, by the draws that the page makes."""
    import torch

    from tutorial_lib.attention import KVCache

    tokens = [*tokens]
    new = tokens.copy()
    state = KVCache()
    with torch.no_grad():
        while len(tokens) < length:
            logits, state = model.decode_step(torch.tensor([new]), state)
            probs = (logits[0].double() / temperature).softmax(dim=-1)
            below = probs.cumsum(dim=-1) > random_number(0, len(tokens))
            new = [int(below.int().argmax())]
            tokens += new
    return tokens


def random_number(seed, position):
    """Return the random number from 0 to 1 that the page draws, to the bit."""
    bits = (seed + 1) * 0x9E3779B1 ^ (position + 1) * 0x85EBCA6B
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        bits &= 0xFFFFFFFF
        bits = (bits ^ bits >> shift) * factor
    bits &= 0xFFFFFFFF
    return (bits ^ bits >> 16) / 2**32


def _last(model, tokens, temperature):
    """Return what follows the last token, and its weights, a row for each head."""
    import torch

    from tutorial_lib.interpret import record_attention

    with torch.no_grad(), record_attention(model) as maps:
        logits = model(torch.tensor([tokens]))[0, -1]
    weights = torch.cat([weights[0, :, -1] for weights in maps.values()])
    return (logits / temperature).softmax(dim=-1).tolist(), weights


def _sentence(data):
    numbers = sum(max(rows, 1) * columns for _, rows, columns in data["spec"])
    return (
        f"A language model of {numbers:,} weights goes on with “{data['prompt']}”: "
        f"“{data['written']}”"
    )


def _draw(data):
    """Draw the text, and below it the attention of the last token by head."""
    fig = canvas(6.4, 4.8)
    above, below = fig.subfigures(2, height_ratios=[1, 3])
    whole = data["prompt"] + data["separator"] + data["written"]
    above.text(0.02, 0.9, whole, va="top", wrap=True, fontsize=9, family="monospace")
    ax = below.subplots()
    ax.imshow(data["maps"], cmap="Blues", vmin=0, vmax=1, aspect="auto")
    numbers = range(len(data["headNames"]))
    num_heads = data["sizes"]["num_heads"]
    names = [
        f"{number // num_heads}.{number % num_heads} {data['headNames'][number]}"
        for number in numbers
    ]
    ax.set_yticks(numbers, names, fontsize=7, ha="left")
    ax.tick_params(axis="y", pad=100)
    ax.set(xlabel="key: the tokens of the text", ylabel="query: the last one, by head")
    return fig
