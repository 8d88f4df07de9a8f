"""Recording: keep the weights of every attention layer while a model runs.

Any torch model will do, since every function that it asks of torch passes through one
object here. Fused functions never hold their weights, so those are computed a second
time, beside the call. A softmax of somebody's own is followed to the values.

This module knows no model and no layer, and no model knows of it.
"""

import inspect
import sys
import threading
import warnings
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from tutorial_lib.following import (
    SOFTMAX,
    Follower,
    attends_to_nothing,
)

NOTHING = (
    "it has neither torch's own attention nor a softmax over the last axis whose "
    "result, masked or reshaped, multiplies values by @, bmm or einsum"
)


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
    masked, reshaped, cut or dropped out on the way, multiplies something by ``@``,
    ``bmm`` or ``einsum``; a classifier's last softmax, which multiplies nothing, is
    none. A key that has no value, as an attention sink, has no column. Heads that are
    merged with the batch for ``bmm`` are told apart again, if they were apart in the
    softmax. A module whose weights go another way, or of whose queries only some
    attended, has no map, and a warning names it.

    A query that may attend to nothing has weights 0; what made an output NaN makes its
    weights NaN. Outputs are the same to the bit, but for torch's own attention and
    encoder layers in evaluation: they leave their fast path, which moves the seventh
    digit, and writes zeros over padding, and NaN for a sentence of nothing else. What
    ``torch.compile`` made runs uncompiled meanwhile, in every thread, and its maps have
    the uncompiled names.

    Raises ValueError if the model ran and no attention in it could be recorded, if a
    module attended twice within one call for batches of different sizes, if weights
    have no values (as on the meta device, or within ``torch.vmap``), if anything in the
    model is TorchScript, and if the block is itself within a compiled function.
    """
    recorder = _Recorder(model)
    with recorder:
        yield recorder.maps
    recorder.report()


class _Kept(NamedTuple):
    """What the map of a module was made of."""

    call: object  # the frame of the call that it belongs to
    softmaxes: list  # None for a fused function's
    before: torch.Tensor | None  # the map without the last of them


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
        self.ran, self.whole, self.kept = False, None, {}
        self.missed = {}  # for each module without a map, the call, and why
        self.follower = Follower()

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
            self.ran = self.ran or self.module() is not None
            if inspect.currentframe().f_back.f_code.co_name == "flex_attention":
                self.miss("flex_attention")
            elif function is F.scaled_dot_product_attention:
                if self.has_values(result):
                    self.keep(_fused_weights(*args, **kwargs))
            elif function is F.multi_head_attention_forward:
                if self.has_values(result[0]):
                    self.keep(_multi_head_weights(*args, **kwargs))
            else:
                self.follow(function, args, kwargs, result)
        return result

    def has_values(self, result):
        """Tell whether the model runs, or raise ValueError if it computes no values."""
        if self.module() is None:
            return False
        try:
            result.flatten()[:1].tolist()
        except RuntimeError as error:
            raise ValueError(
                f"the attention of {self.module()!r} has no values to be recorded: run "
                "the model outside torch.vmap, and not on the meta device"
            ) from error
        return True

    def follow(self, function, args, kwargs, result):
        """Keep what a softmax multiplied, or why it cannot be kept."""
        name = getattr(function, "__name__", "")
        if name in SOFTMAX and _is_over_last_axis(*args, **kwargs):
            if self.has_values(result):
                scores = args[0] if args else kwargs["input"]
                self.follower.begin(scores, result)
            return
        found = self.follower.follow(function, args, kwargs, result, self.module)
        if isinstance(found, str):
            self.miss(found)
        elif found is not None:
            self.keep(found.map, found)

    def enter(self):
        """Return what `running` does; forget all if another call of the model began."""
        name, call = self.running()
        if name is not None and self.is_whole(call) and call is not self.whole:
            self.whole = call
            for one in (self.maps, self.kept, self.missed):
                one.clear()
        return name, call

    def keep(self, weights, softmax=None):
        """Keep weights (..., query, key) as the map of the module that runs."""
        name, call = self.enter()
        while weights.ndim < 4:
            weights = weights.unsqueeze(-3)
        weights = weights.flatten(0, -4)  # (batch, head, query, key)
        kept = self.kept.get(name)
        if kept is None or kept.call is not call:
            kept = _Kept(call, [], None)
            if self.missed.get(name, (call,))[0] is not call:
                del self.missed[name]
        elif softmax is None or softmax is not kept.softmaxes[-1]:
            kept = kept._replace(before=self.maps[name])
        if softmax not in kept.softmaxes or softmax is None:
            kept.softmaxes.append(softmax)
        elif softmax is not kept.softmaxes[-1]:
            self.miss("pieces of two softmaxes in turns")
        if kept.before is not None:
            weights = _join(kept.before, weights, name)
        self.maps[name], self.kept[name] = weights, kept

    def miss(self, why):
        """Say of the module that runs, if one does, why it has no map."""
        name, call = self.enter()
        if name is not None:
            self.missed[name] = call, why

    def report(self):
        """Take out maps that are not whole; say what could not be recorded."""
        for name, kept in self.kept.items():
            if any(softmax and softmax.is_partial() for softmax in kept.softmaxes):
                self.missed[name] = kept.call, "some queries only"
        missed = ", ".join(
            f"{name!r} ({why})" for name, (_, why) in self.missed.items()
        )
        for name in self.missed:
            self.maps.pop(name, None)
        if self.ran and not self.maps:
            reason = f"it is not followed in {missed}" if missed else NOTHING
            raise ValueError(
                f"{type(self.model).__name__} ran, but no attention could be recorded: "
                f"{reason}"
            )
        if missed:
            warnings.warn(
                f"the maps are not of all attention: it is not followed in {missed}",
                stacklevel=4,
            )

    def module(self):
        """Return the name of the module whose method runs, None if none does."""
        return self.running()[0]

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
    weights = scores.softmax(dim=-1).masked_fill(attends_to_nothing(scores), 0)
    return weights.to(query.dtype)


def _multi_head_weights(query, *args, **kwargs):
    """Return the weights of ``F.multi_head_attention_forward``, for every head."""
    kwargs |= {"need_weights": True, "average_attn_weights": False, "training": False}
    weights = F.multi_head_attention_forward(query, *args, **kwargs)[1]
    if all(x.isfinite().all() for x in (query, *args) if torch.is_tensor(x)):
        weights = weights.nan_to_num(nan=0.0)  # the softmax over nothing
    return weights if query.ndim == 3 else weights[None]  # (batch, head, query, key)


def _join(earlier, later, name):
    """Append queries; an earlier query gives weight 0 to keys that came after it."""
    if earlier.shape[:2] != later.shape[:2]:
        raise ValueError(
            f"the module {name!r} attended twice within one call, with (batch, head) = "
            f"{tuple(earlier.shape[:2])} and {tuple(later.shape[:2])}, which make no "
            "one map: record a part of the model that attends once"
        )
    keys = max(earlier.shape[-1], later.shape[-1])
    earlier, later = (F.pad(w, (0, keys - w.shape[-1])) for w in (earlier, later))
    return torch.cat((earlier, later), dim=-2)
