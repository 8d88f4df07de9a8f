"""Look inside a model: what it attends to, and what its answer depends on.

`record_attention` keeps the weights of every attention layer while a model runs.
`attention_knockout` and `ablate_head` take something away while it runs. `rollout`,
`gradient_times_input`, `counterfactual` and `occlusion` say which tokens count.
"""

from tutorial_lib.interpret.ablation import ablate_head, attention_knockout
from tutorial_lib.interpret.attributions import (
    counterfactual,
    gradient_times_input,
    occlusion,
    rollout,
)
from tutorial_lib.interpret.recording import record_attention

__all__ = [
    "ablate_head",
    "attention_knockout",
    "counterfactual",
    "gradient_times_input",
    "occlusion",
    "record_attention",
    "rollout",
]
