# %% [markdown]
# # A head of your own
#
# Write a head in one class, check its contract, and compare it with a built-in
# head.
#
# The head predicts a normal distribution over ordered labels, cut off at their
# ends. It has two outputs, a mean and a standard deviation, where `Softmax` has
# one output for each label.

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor, nn

from ldl import Head, LabelSpace
from ldl.errors import LDLError


class Normal(Head):
    """A normal distribution over ordered labels."""

    def build(self, in_features: int, labels: LabelSpace) -> None:
        if labels.kind != "ordinal":
            raise LDLError(
                f"Normal needs ordinal labels, not {labels.kind}; use Softmax"
            )
        super().build(in_features, labels)
        self.layer = nn.Linear(in_features, 2)
        self.register_buffer("places", torch.linspace(-1, 1, len(labels)))

    def forward(self, features: Tensor) -> Tensor:
        mean, log_std = self.layer(features).unsqueeze(-1).unbind(-2)
        away = (self.places - mean) / (log_std - 1).exp()
        return torch.softmax(-0.5 * away**2, -1)


# %% [markdown]
# ## Check the contract
#
# `check_head` builds, trains, saves and loads the head with small random data,
# and raises an error that names what is wrong.

# %%
from ldl.testing import check_head

check_head(Normal)
print("Normal keeps the contract")

# %% [markdown]
# ## Compare
#
# The data are the ratings of [films.csv](films.csv). Both heads have the same
# features and folds, and learn by gradient.

# %%
from ldl import Task, crossvalidate
from ldl.data import TabularLDL
from ldl.heads import Softmax

films = TabularLDL(
    path="films.csv",
    label_columns="r*",
    votes_column="votes",
    drop="title",
    val_fraction=0,
    folds=5,
)
trainer = {
    "max_epochs": 60,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}
rows: dict[str, list[dict[str, np.ndarray]]] = {"Normal": [], "Softmax": []}


def mean_kl(head: type[Head]) -> float:
    """Return the mean KL on two folds."""

    def make_task() -> Task:
        return Task(
            head(), optimizer=lambda groups: torch.optim.AdamW(groups, lr=0.01)
        )

    found = rows[head.__name__]
    results = crossvalidate(
        make_task, films, folds=[0, 1], trainer=trainer, rows=found
    )
    return results["mean"]["kl"]


kl = {head.__name__: mean_kl(head) for head in (Normal, Softmax)}
print({name: round(value, 3) for name, value in kl.items()})

# %% [markdown]
# ## Predictions of both heads
#
# The chart shows three test films of the first fold: those with the lowest, the
# median and the highest predicted rating.

# %%
normal = rows["Normal"][0]
order = np.argsort(normal["predicted_value"])
figure, axes = plt.subplots(
    1, 3, figsize=(5.5, 2.4), sharey=True, layout="constrained"
)
for axis, film in zip(axes, (order[0], order[len(order) // 2], order[-1])):
    axis.bar(
        range(1, 11), normal["target"][film], color="lightgrey", label="votes"
    )
    for name, style in {"Softmax": "s-C1", "Normal": "o-C0"}.items():
        predicted = rows[name][0]["prediction"][film]
        axis.plot(range(1, 11), predicted, style, label=name)
    axis.set(xlabel="rating", xticks=[1, 4, 7, 10])
axes[0].set_ylabel("share")
figure.legend(
    *axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3
)
plt.show()

# %% [markdown]
# With a fifth of the outputs, `Normal` predicts the votes about as well as
# `Softmax`. It cannot predict two peaks.
#
# ## Where to go next
#
# [A head of your own](../guides/head.md) has the whole contract and `ldl new
# head`, which writes a head, a configuration and a test. A head in `plugins/`
# works in every command: `ldl -c tabular_softmax --model.head Normal
# --data.path FILE`.
