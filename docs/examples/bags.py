# %% [markdown]
# # Bags of instances
#
# Learn from bags of which only the bag has a label, and find the instance that
# makes a bag positive.
#
# A bag is six handwritten digits. It is positive if one of them is a 9
# (multiple instance learning). The table says which bags are positive, but not
# which digit is the 9.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

rng = np.random.default_rng(0)
pixels, digit = load_digits(return_X_y=True)
frames, truth = [], []
for bag in range(240):
    chosen = rng.choice(np.flatnonzero(digit != 9), 6, replace=False)
    if bag % 2:
        chosen[rng.integers(6)] = rng.choice(np.flatnonzero(digit == 9))
    frame = pd.DataFrame(
        pixels[chosen], columns=[f"p{number}" for number in range(64)]
    )
    frame.insert(0, "label", bag % 2)
    frame.insert(1, "bag", f"bag{bag}")
    frames.append(frame)
    truth.append(digit[chosen])
pd.concat(frames).to_csv("bags.csv", index=False)
print(pd.read_csv("bags.csv").iloc[4:8, :9].to_string(index=False), "...")

# %% [markdown]
# ## Train
#
# `MILBoost` boosts decision stumps on instances. The probability of a bag is
# pooled over its instances.

# %%
import torch
from pytorch_lightning import Trainer

from ldl import Task
from ldl.bags import Bags, MILBoost

data = Bags(path="bags.csv", scaling="none", folds=4)
head = MILBoost(rounds=100)
task = Task(head)
trainer = Trainer(
    max_epochs=1,
    logger=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    enable_checkpointing=False,
)
trainer.fit(task, datamodule=data)
(metrics,) = trainer.test(task, datamodule=data, verbose=False)
accuracy, auc = metrics["test_accuracy"], metrics["test_auc"]
print(f"accuracy {accuracy:.3f}, area under the ROC curve {auc:.3f}")

# %% [markdown]
# ## Find the instances
#
# `instances` returns a probability for every digit of a bag. Below are four
# positive bags of the test set. The number above a digit is its probability to
# make the bag positive.

# %%
test = [number for number in data.split.test if number % 2]
bags = np.stack(
    [
        frames[number].drop(columns=["label", "bag"]).to_numpy()
        for number in test
    ]
)
probability = head.instances(torch.from_numpy(bags).float()).numpy()
found = np.mean(
    [truth[number][row.argmax()] == 9 for number, row in zip(test, probability)]
)
print(f"The most probable digit is the 9 in {found:.0%} of {len(test)} bags")

figure, axes = plt.subplots(4, 6, figsize=(5.5, 4.8), layout="constrained")
for line, images, row in zip(axes, bags, probability):
    for axis, image, share in zip(line, images, row):
        axis.imshow(image.reshape(8, 8), cmap="gray_r")
        axis.set(xticks=[], yticks=[])
        axis.set_title(
            f"{share:.2f}", color="tab:red" if share == row.max() else "black"
        )
plt.show()

# %% [markdown]
# The red number marks the most probable digit of each bag.
#
# ## Where to go next
#
# [Train on bags](../guides/bags.md) lists the heads for bags, among them
# `Bagged` for networks. `MPLBoost` finds several kinds of positive instances.
# [Results](../results/edges-and-bags.md#bags) has measured runs.
