# %% [markdown]
# # Edges of several annotators
#
# Predict how many annotators draw an edge at each pixel, and where they
# disagree.
#
# The images are drawn: bright discs and one faint disc on a textured ground.
# Each of five annotators draws the outlines a little differently, and only some
# of them draw the faint disc. The files have the layout of BSDS500.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from scipy.io import savemat
from scipy.ndimage import binary_erosion

rng = np.random.default_rng(0)
y, x = np.mgrid[:96, :128]


def write_scene(part: str, name: str) -> None:
    """Write an image and the drawings of five annotators."""
    contrasts = (*rng.uniform(60, 120, size=2), 18)  # the last disc is faint
    places = rng.uniform((20, 20, 10), (76, 108, 22), size=(3, 3))
    discs = [(*place, contrast) for place, contrast in zip(places, contrasts)]
    grey = 70 + rng.normal(0, 8, x.shape)
    for row, column, radius, contrast in discs:
        grey = grey + contrast * (np.hypot(y - row, x - column) < radius)
    cells = np.empty((1, 5), object)
    for annotator in range(5):
        segments = np.ones(x.shape, np.uint16)
        boundaries = np.zeros(x.shape, bool)
        for number, (row, column, radius, contrast) in enumerate(discs):
            if contrast < 20 and annotator >= 2:  # overlooks the faint disc
                continue
            inside = np.hypot(y - row, x - column) < radius + rng.normal(0, 0.7)
            segments[inside] = number + 2
            boundaries |= inside & ~binary_erosion(inside)
        cells[0, annotator] = {
            "Segmentation": segments,
            "Boundaries": boundaries.astype(np.uint8),
        }
    for folder in (f"discs/images/{part}", f"discs/groundTruth/{part}"):
        Path(folder).mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(grey.clip(0, 255).astype(np.uint8)).convert("RGB")
    image.save(f"discs/images/{part}/{name}.jpg")
    savemat(f"discs/groundTruth/{part}/{name}.mat", {"groundTruth": cells})


for part, number in {"train": 16, "val": 4}.items():
    for k in range(number):
        write_scene(part, f"{part}{k}")
print(*sorted(Path("discs").rglob("val*")), sep="\n")

# %% [markdown]
# ## Train
#
# `StructuredEdges` fits a forest to patches of the annotators' drawings. It
# needs no network. The part `val` is the test set.

# %%
from pytorch_lightning import Trainer

from ldl import Predictor, Task
from ldl.edges import BSDS500, StructuredEdges

data = BSDS500(path="discs", crop=32, batch_size=1)
task = Task(StructuredEdges(trees=4, patches=10_000, scales=(1.0,)))
trainer = Trainer(
    max_epochs=1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(task, datamodule=data)

# %% [markdown]
# ## Predict votes
#
# A prediction is a distribution at every pixel over the labels "no edge" and
# "edge". The target is the share of annotators who draw within a pixel. The
# negative log-likelihood (NLL) of a vote measures how well the first predicts
# the second. The baseline is the mean share of all pixels.

# %%
data.setup("test")
scenes = list(data.test_dataloader())
images = np.concatenate([scene["input"] for scene in scenes])
shares = np.concatenate([scene["target"] for scene in scenes])[..., 1]
predicted = Predictor(task)(images.transpose(0, 2, 3, 1)).distribution[..., 1]


def nll(probability: np.ndarray | float) -> float:
    """Return the mean NLL of a vote at a pixel, in nats."""
    p = np.clip(probability, 1e-3, 1 - 1e-3)
    return float(-np.mean(shares * np.log(p) + (1 - shares) * np.log(1 - p)))


model_nll, baseline_nll = nll(predicted), nll(shares.mean())
print(f"NLL of a vote: model {model_nll:.4f}, baseline {baseline_nll:.4f}")

# %%
shown = {
    "image": images[0].transpose(1, 2, 0),
    "votes": shares[0],
    "predicted": predicted[0],
}
shown["disagreement"] = 4 * predicted[0] * (1 - predicted[0])
figure, axes = plt.subplots(2, 2, figsize=(5.5, 4.6), layout="constrained")
for axis, (title, panel) in zip(axes.flat, shown.items()):
    axis.imshow(panel, cmap="gray", vmin=0, vmax=1 if panel.ndim == 2 else None)
    axis.set(title=title, xticks=[], yticks=[])
plt.show()

# %% [markdown]
# The faint disc has a lower predicted share, because fewer annotators draw it.
# Disagreement is 4 *p* (1 - *p*): white if half of the annotators are expected
# to draw.
#
# ## Where to go next
#
# [Edges and other maps](../guides/pixels.md) trains networks and evaluates
# lines with the benchmark of BSDS500. [Edges as
# probabilities](../results/measures.md#of-edges-as-probabilities) defines the
# metrics for votes. [Edge data](../data/index.md#bsds500) describes the files.
