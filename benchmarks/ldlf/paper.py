"""Label distribution learning forests (Shen et al. 2017): every table and figure."""

from __future__ import annotations

from functools import partial

from benchmarks.common.items import HUMAN_GENE, Item, Paper
from benchmarks.ldlf import figure4, growth, table1

MORPH = (
    "MORPH needs a licence. It is expected as MORPH/morph_2008_nonCommercial.csv and MORPH/Album2/009055_1M54.JPG "
    "below LDL_DATA; tests/fake_faces.py makes up pictures and a list of this layout"
)
LEAKS = (
    "The printed figure is no target: the authors' public script draws rows with replacement before it cuts folds, so "
    "that most test rows are training rows, and keeps the best test iteration. On clean folds the paper's schedule "
    "learns the training rows by heart; `{data}/ldlf.yaml` is what validation rows led to "
    "([tables](../results/tables.md))."
)

PAPER = Paper(
    "ldlf",
    "Label Distribution Learning Forests",
    (
        Item(name="Figure 1", shows="An age, and the votes on a film, as distributions"),
        Item(name="Figure 2", shows="A forest of two trees on shared units"),
        Item(
            name="Table 1, Movie",
            shows="Six measures on Movie; the published protocol leaks",
            protocol=table1.PROTOCOL,
            measure=partial(table1.table_1, name="Movie"),
            why=LEAKS.format(data="movie"),
        ),
        Item(
            name="Table 1, Human Gene",
            shows="Six measures on Human_Gene",
            absent=HUMAN_GENE,
            command="python train.py -c configs/runs/tabular/ldlf_paper.yaml --data.path ldl/Human_Gene.mat "
            "--data.download true --stage crossval",
        ),
        Item(
            name="Table 1, Natural Scene",
            shows="Six measures on Natural_Scene; the published protocol leaks",
            protocol=table1.PROTOCOL,
            measure=partial(table1.table_1, name="Natural_Scene"),
            why=LEAKS.format(data="natural_scene"),
        ),
        Item(
            name="Table 2",
            shows="Age on MORPH, ten random folds, VGG-Face: mean absolute error",
            absent=MORPH,
            command="python train.py -c configs/runs/morph/ldlf.yaml --data.protocol random_10fold --stage crossval",
            why="Of the pictures that random folds of MORPH test nearly all show a person that is in training. The "
            "protocol is there by name, and marked as leaking; the default keeps persons apart.",
        ),
        Item(
            name="Figure 3",
            shows="Age on Morph_Sub, trained on 10 to 60%, AlexNet: mean absolute error",
            absent=MORPH,
            command="python train.py -c configs/runs/morph/ldlf.yaml --data.protocol morph_sub --stage crossval",
        ),
        Item(
            name="Section 4.3",
            shows="What training costs",
            protocol=growth.PROTOCOL,
            measure=growth.growth,
        ),
        Item(
            name="Figure 4 (a)",
            shows="KL over the number of trees, joint and alternating",
            protocol=figure4.PROTOCOL,
            measure=figure4.trees,
        ),
        Item(
            name="Figure 4 (b)",
            shows="KL over depth, one tree",
            protocol=figure4.PROTOCOL,
            measure=figure4.depth,
        ),
    ),
)
