# %% [markdown]
# # Ages of faces
#
# Predict a distribution over ages from face images, in folds that keep the
# images of a person together.
#
# The faces are drawn. Hair turns grey, wrinkles appear and the hairline rises
# with age, and each person looks different. `faces.csv` names an image, its age
# and its person in each row.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageDraw

rng = np.random.default_rng(0)


def draw(age: float, person: np.random.Generator) -> Image.Image:
    """Return a face of 64 x 64 pixels, with looks from ``person``."""
    skin, width, hair = (
        person.uniform(140, 230),
        person.uniform(18, 23),
        person.uniform(20, 120),
    )
    grey = hair + (200 - hair) * np.clip((age - 30) / 45, 0, 1)
    image = Image.new("RGB", (64, 64), (90, 110, 140))
    pen = ImageDraw.Draw(image)
    pen.ellipse(
        (32 - width - 2, 4, 34 + width, 50),
        fill=(int(grey), int(grey), int(grey)),
    )
    pen.ellipse(
        (32 - width, 10 + 8 * (80 - age) / 80, 32 + width, 60),
        fill=(int(skin), int(0.8 * skin), int(0.7 * skin)),
    )
    dark = (int(0.6 * skin), int(0.45 * skin), int(0.4 * skin))
    for x in (23, 41):
        pen.ellipse((x - 3, 30, x + 3, 34), fill="white")
        pen.ellipse((x - 1, 31, x + 1, 33), fill="black")
    pen.line((32, 34, 30, 42, 33, 42), fill=dark)
    pen.arc((24, 40, 40, 52), 30, 150, fill=(150, 60, 60), width=2)
    for number in range(round(person.normal(age / 14, 0.5))):  # wrinkles
        y = 20 + 2 * number if number < 3 else 36 + 3 * (number - 3)
        pen.line(
            (26, y, 38, y) if number < 3 else (18, y, 22, y + 2), fill=dark
        )
    noisy = np.asarray(image) + rng.normal(0, 6, (64, 64, 3))
    return Image.fromarray(noisy.clip(0, 255).astype(np.uint8))


folder = Path("faces")
folder.mkdir(exist_ok=True)
lines = ["path,age,person"]
for person in range(80):
    for age in rng.choice(np.arange(8, 81), size=4, replace=False):
        image = draw(age, np.random.default_rng(person))
        image.save(folder / f"{person}_{age}.png")
        lines.append(f"{person}_{age}.png,{age},person{person}")
(folder / "faces.csv").write_text("\n".join(lines), encoding="utf-8")
print(*lines[:4], sep="\n")

# %% [markdown]
# ## Cross-validate
#
# `FaceFolder` encodes an age as a normal distribution around it. `HOG` computes
# histograms of gradients, which need no pretrained network, and `StructRF` fits
# a forest to them. The evaluation protocol `subject_exclusive` tests subjects
# that are not in the training set.

# %%
from ldl import Task, crossvalidate
from ldl.backbones import HOG
from ldl.faces import FaceFolder
from ldl.heads import MeanPredictor, StructRF

data = FaceFolder(
    path="faces/faces.csv",
    protocol="subject_exclusive",
    alignment="none",
    crop_size=64,
    sigma=4.0,
    val_fraction=0,
)
trainer = {
    "max_epochs": 1,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}
rows: list[dict[str, np.ndarray]] = []
baseline = crossvalidate(
    lambda: Task(MeanPredictor(), HOG(), decoder="median"),
    data,
    trainer=trainer,
)
forest = crossvalidate(
    lambda: Task(StructRF(), HOG(), decoder="median"),
    data,
    trainer=trainer,
    rows=rows,
)
for name, results in {"MeanPredictor": baseline, "StructRF": forest}.items():
    print(f"{name:14} mean absolute error {results['mean']['mae']:.1f} years")

# %% [markdown]
# `MeanPredictor` is the baseline: the distribution of all ages in the training
# set.
#
# ## Predicted distributions
#
# The first row of images shows faces of the first test fold, from young to old.
# Below each face are the predicted distribution and the true age.

# %%
fold = rows[0]
files = [line.split(",")[0] for line in lines[1:]]
order = np.argsort(fold["value"])
figure, axes = plt.subplots(
    2, 5, figsize=(5.5, 2.9), height_ratios=[3, 2], layout="constrained"
)
for (top, bottom), row in zip(
    axes.T, order[np.linspace(2, len(order) - 3, 5).astype(int)]
):
    top.imshow(Image.open(folder / files[fold["index"][row]]))
    top.set(xticks=[], yticks=[])
    bottom.fill_between(
        range(101), fold["prediction"][row], color="tab:blue", alpha=0.5
    )
    bottom.axvline(fold["value"][row], color="black")
    bottom.set(
        xlabel=f"{fold['value'][row]:.0f} years",
        xticks=[0, 50, 100],
        yticks=[],
        ylim=(0, 0.1),
    )
plt.show()

# %% [markdown]
# The black line is the true age.
#
# ## Where to go next
#
# [Faces](../guides/faces.md) trains networks with pretrained weights and finds
# faces in photographs. [Splits and leakage](../concepts/splits-and-leakage.md)
# shows why a person must not be in training and test.
# [Benchmarks](../results/index.md#ages-of-faces) has results on FG-NET.
