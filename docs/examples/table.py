# %% [markdown]
# # A table of ratings
#
# Predict the whole distribution of the ratings of a film from six facts about
# it, and compare a head with a baseline on the same folds.
#
# The made-up table [films.csv](films.csv) has a row for each film. The columns
# `r1` to `r10` are the shares of votes for each rating.

# %%
from pathlib import Path

print(*Path("films.csv").read_text(encoding="utf-8").splitlines()[:4], sep="\n")

# %% [markdown]
# ## Cross-validate
#
# `TabularLDL` reads the table. `crossvalidate` trains and tests a new task on
# each of five folds. `MeanPredictor` is the baseline: it predicts the mean
# distribution of its training set for every film.

# %%
import matplotlib.pyplot as plt
import numpy as np

from ldl import Task, crossvalidate
from ldl.data import TabularLDL
from ldl.heads import BoostedTrees, MeanPredictor

films = TabularLDL(
    path="films.csv",
    label_columns="r*",
    votes_column="votes",
    drop="title",
    val_fraction=0,
    folds=5,
)
trainer = {
    "max_epochs": 1,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}

baseline = crossvalidate(lambda: Task(MeanPredictor()), films, trainer=trainer)
rows: list[dict[str, np.ndarray]] = []
boosted = crossvalidate(
    lambda: Task(BoostedTrees()), films, trainer=trainer, rows=rows
)
for name, results in {
    "MeanPredictor": baseline,
    "BoostedTrees": boosted,
}.items():
    mean, std = results["mean"], results["std"]
    print(f"{name:14} KL {mean['kl']:.3f} ± {std['kl']:.3f}")

# %% [markdown]
# KL is the Kullback-Leibler divergence of the predicted from the true
# distribution, here with its mean and standard deviation over the folds. Lower
# is better.
#
# ## Predicted distributions beside the votes
#
# Each film is in the test set of one fold. The chart shows the films at the
# 10th, 50th and 90th percentile of the KL.

# %%
predicted = np.concatenate([fold["prediction"] for fold in rows])
votes = np.concatenate([fold["target"] for fold in rows])
kl = np.sum(votes * np.log(np.maximum(votes, 1e-12) / predicted), axis=1)
order = np.argsort(kl)

figure, axes = plt.subplots(
    1, 3, figsize=(5.5, 2.4), sharey=True, layout="constrained"
)
for axis, share in zip(axes, (0.1, 0.5, 0.9)):
    film = order[int(share * len(order))]
    axis.bar(range(1, 11), votes[film], color="lightgrey", label="votes")
    axis.plot(
        range(1, 11), predicted[film], "o-", color="tab:blue", label="predicted"
    )
    axis.set(
        title=f"{share:.0%}: KL {kl[film]:.2f}",
        xlabel="rating",
        xticks=[1, 4, 7, 10],
    )
axes[0].set_ylabel("share")
figure.legend(
    *axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3
)
plt.show()

# %% [markdown]
# The KL is high if the predicted peak is away from the peak of the votes, as in
# the film on the right.
#
# ## Where to go next
#
# [Your own CSV](../guides/table.md) lists file formats and heads. [Which head
# for your table](../guides/compare.md) compares all heads with one command. [A
# table of votes](votes.md) compares a model with annotators.
