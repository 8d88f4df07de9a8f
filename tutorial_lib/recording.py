"""Recording: keep the weights of every attention layer while a model runs.

Any torch model will do, since every function that it asks of torch passes through one
object here. Fused functions never hold their weights, so those are computed a second
time, beside the call.

This module knows no model and no layer, and no model knows of it.
"""

import inspect
import sys
import threading
from contextlib import ExitStack, contextmanager

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

SOFTMAX = {"softmax", "special_softmax"}
PRODUCTS = {"matmul", "bmm", "einsum"}
# What may happen to weights between the softmax and the values: masks, types, shapes.
STEPS = {"masked_fill", "where", "nan_to_num", "mul", "div"}
STEPS |= {"to", "type", "type_as", "float", "double", "half", "bfloat16", "clone"}
STEPS |= {"contiguous", "view", "reshape", "flatten", "unflatten", "squeeze"}
STEPS |= {"unsqueeze", "transpose", "permute", "swapaxes", "movedim"}
STEPS |= {"__get__", "__getitem__"}  # weights.mT and weights[:, None]


@contextmanager
def record_attention(model):
    """Record the attention weights of every layer of ``model`` within a ``with`` block.

    Yields a dictionary from the name of each module that attends ("" is the model
    itself) to its weights (batch, head, query, key), detached and before dropout. Each
    call of the model starts afresh, and so does each call of a part of it, for the
    layers in that part: after decoding token by token the maps are those of the last
    step, and mean nothing for a sentence that ended before it. After a beam search they
    mean nothing at all, because beams change places: record the model on what was
    found. A layer that runs several times within one call has its queries joined.

    Attention is ``F.scaled_dot_product_attention``, ``nn.MultiheadAttention`` and all
    that is made of them. Besides, it is a softmax over the last axis whose result,
    masked, reshaped or dropped out on the way, multiplies something by ``@``, ``bmm``
    or ``einsum``; a classifier's last softmax, which multiplies nothing, is none. A
    model that merges batch and head for ``bmm`` has them merged in its maps.

    A query that may attend to nothing has weights 0; what made an output NaN makes its
    weights NaN. Outputs are the same to the bit, but for torch's own attention and
    encoder layers in evaluation: they leave their fast path, which moves the seventh
    digit, and do not write zeros over padding as it does. What ``torch.compile`` made
    runs uncompiled meanwhile, in every thread, and its maps have the uncompiled names.

    Raises ValueError if the model ran and nothing in it attended, if a layer ran twice
    within one call for batches of different sizes, if anything in the model is
    TorchScript, and if the block is itself within a compiled function.
    """
    recorder = _Recorder(model)
    with recorder:
        yield recorder.maps
    if recorder.ran and not recorder.call_of:
        raise ValueError(
            f"{type(model).__name__} ran, but nothing in it attended: it has neither "
            "torch's own attention nor a softmax over the last axis that multiplies "
            "values by @, bmm or einsum"
        )


class _Recorder(TorchFunctionMode):
    """Sees every torch function of its thread, and keeps the weights of attention."""

    # The compiler has one stance for all threads, so the last recorder sets it back.
    lock, stance, open = threading.Lock(), ExitStack(), set()

    def __init__(self, model):
        super().__init__()
        if any(isinstance(part, torch.jit.ScriptModule) for part in model.modules()):
            raise ValueError(
                f"{type(model).__name__} is compiled by torch.jit, and what runs in it "
                "cannot be seen: record the model from before it was compiled"
            )
        self.model, self.maps = model, {}
        # A module and what torch.compile wrapped around it have one name: the wrapper
        # adds "_orig_mod", which nothing public tells, to every name within it.
        names = ((id(part), f".{name}") for name, part in model.named_modules())
        self.names = {i: name.replace("._orig_mod", "")[1:] for i, name in names}
        self.ran, self.call_of = False, {}  # for each map, the call that it belongs to
        # Weights on their way to the values, and what they would be without a dropout
        # and without the NaN of a softmax over nothing (None: just what they are).
        self.undropped = WeakTensorKeyDictionary()

    def __enter__(self):
        """Begin to record."""
        self.run_uncompiled()
        return super().__enter__()

    def __exit__(self, *error):
        """Stop, and let compiled functions run again unless another still records."""
        super().__exit__(*error)
        with self.lock:
            self.open.discard(self)
            if not self.open:
                self.stance.close()

    def run_uncompiled(self):
        """Make compiled functions run as they were written, from now on."""
        # Before this module is there, nothing is compiled; to import it takes seconds.
        compiler = sys.modules.get("torch._dynamo")
        if self in self.open or not hasattr(compiler, "set_stance"):
            return
        with self.lock:
            if not self.open:
                try:
                    stance = torch.compiler.set_stance("force_eager")
                except RuntimeError as error:  # raised within what is compiled
                    raise ValueError(
                        "attention cannot be recorded within a compiled function: "
                        "record it around the call"
                    ) from error
                self.stance.enter_context(stance)
            self.open.add(self)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Let the function run as it would, then record what it attended to."""
        self.run_uncompiled()  # what was compiled within the block
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        with torch.DisableTorchFunction(), torch.no_grad():  # nobody records this
            self.ran = self.ran or self.running()[0] is not None
            if function is F.scaled_dot_product_attention:
                self.keep(_fused_weights(*args, **kwargs))
            elif function is F.multi_head_attention_forward:
                self.keep(_multi_head_weights(*args, **kwargs))
            else:
                self.follow(function, args, kwargs, result)
        return result

    def follow(self, function, args, kwargs, result):
        """Follow the result of a softmax until it multiplies something."""
        name, known = getattr(function, "__name__", ""), self.undropped
        if name in SOFTMAX and _is_over_last_axis(*args, **kwargs):
            nothing = _attends_to_nothing(args[0] if args else kwargs["input"])
            known[result] = result.masked_fill(nothing, 0) if nothing.any() else None
            return
        places = [i for i, arg in enumerate(args) if torch.is_tensor(arg)]
        place = next((i for i in places if args[i] in known), None)
        if place is None:
            return
        undropped = known[args[place]]
        weights = args[place].detach() if undropped is None else undropped
        if name in PRODUCTS:
            self.keep(_by_query_and_key(args, place, weights))
        elif name == "dropout":
            known[result] = weights
        elif name in STEPS and _is_as_large(result, weights):
            args = (*args[:place], weights, *args[place + 1 :])
            known[result] = None if undropped is None else function(*args, **kwargs)

    def keep(self, weights):
        """Keep weights (..., query, key) as the map of the module that runs."""
        name, call = self.running()
        if name is None or weights is None:
            return
        if self.is_whole(call) and call not in self.call_of.values():
            self.maps.clear()
            self.call_of.clear()
        while weights.ndim < 4:
            weights = weights.unsqueeze(-3)
        weights = weights.flatten(0, -4).clone()  # (batch, head, query, key)
        if name in self.maps and self.call_of.get(name) is call:
            weights = _join(self.maps[name], weights, name)
        self.maps[name], self.call_of[name] = weights, call

    def running(self):
        """Return the name of the module whose method runs, and the frame of its call.

        That is the call of the model, or else of what is called of it by itself. Hooks
        would not do, since a layer can be used by other methods than ``forward``.
        """
        frame, name, call = inspect.currentframe(), None, None
        while frame is not None and not (call and self.is_whole(call)):
            is_method = "self" in frame.f_code.co_varnames
            module = id(frame.f_locals.get("self")) if is_method else None
            if module in self.names:
                name, call = self.names[module] if call is None else name, frame
            frame = frame.f_back
        return name, call

    def is_whole(self, call):
        """Tell whether a call is one of the model as a whole."""
        is_forward = call.f_code.co_name == "forward"
        return is_forward and self.names[id(call.f_locals["self"])] == ""


def _is_over_last_axis(input, dim=None, *_, **__):
    return input.ndim > 1 and dim in (-1, input.ndim - 1)


def _attends_to_nothing(scores):
    return scores.isneginf().all(dim=-1, keepdim=True)  # (..., query, 1)


def _is_as_large(result, weights):
    same = torch.is_tensor(result) and result.numel() == weights.numel()
    return same and result.is_floating_point()


def _fused_weights(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    scale=None,
    enable_gqa=False,
):
    """Return the weights of ``F.scaled_dot_product_attention``, whose arguments it has.

    Scores are computed in float32 at least, as fused functions do.
    """
    precise = torch.promote_types(query.dtype, torch.float32)
    Q, K = query.to(precise), key.to(precise)
    if enable_gqa:  # several heads of queries share one of keys
        K = K.repeat_interleave(Q.shape[-3] // K.shape[-3], dim=-3)
    with torch.autocast(Q.device.type, enabled=False):
        scores = Q @ K.mT * (Q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        mask = torch.ones_like(scores, dtype=torch.bool).tril()
        scores = scores.masked_fill(~mask, -torch.inf)
    elif attn_mask is not None:
        if attn_mask.dtype == torch.bool:  # added, so that a hidden NaN is not healed
            attn_mask = scores.new_zeros(()).where(attn_mask, -torch.inf)
        scores = scores + attn_mask
    weights = scores.softmax(dim=-1).masked_fill(_attends_to_nothing(scores), 0)
    return weights.to(query.dtype)


def _multi_head_weights(query, *args, **kwargs):
    """Return the weights of ``F.multi_head_attention_forward``, for every head."""
    kwargs |= {"need_weights": True, "average_attn_weights": False, "training": False}
    weights = F.multi_head_attention_forward(query, *args, **kwargs)[1]
    if all(x.isfinite().all() for x in (query, *args) if torch.is_tensor(x)):
        weights = weights.nan_to_num(nan=0.0)  # the softmax over nothing
    return weights if query.ndim == 3 else weights[None]  # (batch, head, query, key)


def _by_query_and_key(args, place, weights):
    """Turn weights so that their last axis is the one that a product sums over.

    ``args`` are those of ``matmul``, ``bmm`` or ``einsum``, and ``place`` is where the
    weights stood among them. Returns None for an ``einsum`` that sums over no axis of
    the weights, or over several.
    """
    if torch.is_tensor(args[0]):
        return weights if place == 0 else weights.mT
    terms, _, output = args[0].replace(" ", "").partition("->")
    terms = terms.split(",")
    own, values = terms.pop(place - 1), "".join(terms)
    axes = own.replace("...", "")
    if sum(axis not in output for axis in axes) != 1:
        return None
    # Batch and head are also in the values, queries are not, keys not in the output.
    order = sorted(axes, key=lambda axis: (axis not in output, axis not in values))
    before = "..." if "..." in own else ""
    return torch.einsum(f"{own}->{before}{''.join(order)}", weights)


def _join(earlier, later, name):
    """Append queries; an earlier query gives weight 0 to keys that came after it."""
    if earlier.shape[:2] != later.shape[:2]:
        raise ValueError(
            f"the module {name!r} ran twice within one call, with (batch, head) = "
            f"{tuple(earlier.shape[:2])} and {tuple(later.shape[:2])}, which make no "
            "one map: record the part of the model that runs once"
        )
    keys = max(earlier.shape[-1], later.shape[-1])
    earlier, later = (F.pad(w, (0, keys - w.shape[-1])) for w in (earlier, later))
    return torch.cat((earlier, later), dim=-2)
