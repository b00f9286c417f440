# %% [markdown]
# # Votes of annotators
#
# Find out how well annotators agree, train a model on their votes, and measure
# how many annotators the model is worth (rater or survey equivalence).
#
# The annotators are simulated. Each of 20 annotators sees a noisy copy of a
# handwritten 3, 5, 8 or 9 and votes for one digit. An annotator votes on half
# of the images.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

rng = np.random.default_rng(0)
pixels, digit = load_digits(return_X_y=True)
kept = np.isin(digit, [3, 5, 8, 9])
pixels, digit = pixels[kept], digit[kept]
names = {3: "three", 5: "five", 8: "eight", 9: "nine"}
means = np.stack([pixels[digit == number].mean(0) for number in names])

votes = []
for rater in range(20):
    seen = pixels + rng.normal(0, 8, pixels.shape)
    nearest = ((seen[:, None] - means) ** 2).sum(2).argmin(1)
    for image in np.flatnonzero(rng.random(len(pixels)) < 0.5):
        votes.append(
            (image, f"rater{rater}", [*names.values()][nearest[image]])
        )
pd.DataFrame(votes, columns=["item", "rater", "label"]).to_csv(
    "votes.csv", index=False
)
print(pd.read_csv("votes.csv").head(4).to_string(index=False))

# %% [markdown]
# ## Audit the votes
#
# `read_annotations` finds the layout of a file: here one row for each vote.
# `ldl audit votes.csv` prints these lines.

# %%
from ldl.annotations import (
    DirichletMixture,
    rater_equivalence,
    read_annotations,
    summarize,
)

annotations = read_annotations("votes.csv")
print(*summarize(annotations), sep="\n")

# %% [markdown]
# ## Train on the shares of the votes
#
# The distribution of an image is the shares of its votes. The model learns from
# 120 images.

# %%
from sklearn.model_selection import train_test_split

from ldl import LDLRegressor

features = pixels[annotations.items.astype(int)]
train, test = train_test_split(
    np.arange(len(features)), train_size=120, random_state=0
)
shares = pd.DataFrame(annotations.shares, columns=annotations.labels.names)
model = LDLRegressor("StructRF").fit(features[train], shares.iloc[train])
predicted = model.predict(features[test])
print(f"KL {-model.score(features[test], shares.iloc[test]):.3f}")

# %% [markdown]
# ## Compare the model with annotators
#
# A mixture of Dirichlet distributions, which is fitted to the votes of the
# training set, combines votes. `curve[k]` is the expected negative
# log-likelihood (NLL) of a vote that `k` other votes on the same image predict.

# %%
combiner = DirichletMixture.fit(annotations.counts[train])
found = rater_equivalence(predicted, annotations.counts[test], combiner)
low, high = found.interval
print(f"The model is worth {found.worth:.1f} simulated annotators")
print(f"95% interval {low:.1f} to {high:.1f}, on {found.items} images")
print(f"{found.raters} votes at most, {combiner.size} Dirichlets, 4 labels")

figure, axis = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
axis.plot(found.curve, "o-", color="black", label="votes of k annotators")
axis.axhline(found.nll, color="tab:blue", label="model alone")
axis.set(
    xlabel="k annotators",
    ylabel="NLL of the next vote",
    xticks=range(len(found.curve)),
)
axis.legend()
plt.show()

# %% [markdown]
# The model is worth as many annotators as the place where its line meets the
# curve. The model never sees the votes on a test image.
#
# ## Where to go next
#
# [Votes of annotators](../guides/annotations.md) explains every line of the
# audit and the options that weigh votes. [Annotations and rater
# equivalence](../concepts/annotations.md) has the definitions. For photographs
# with votes, see [images with votes](../guides/images.md).
