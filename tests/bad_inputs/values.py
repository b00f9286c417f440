"""Values that no axis of labels can hold, and axes without end."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
from bad_inputs.harness import SMALL, Case

AGES = range(20, 50)
# Values of rows, options, and what the line says.
VALUES: dict[str, tuple[Iterable[object], str, str]] = {
    "sound": (AGES, "", ""),
    "constant": ([30] * 30, "", ""),
    "between 0 and 1": (np.linspace(0.2, 0.9, 30), "--data.step 0.05 --data.sigma 0.1", ""),
    "up to 1e300": (np.linspace(0, 1e300, 30), "", "a.csv|line 3|more than 1e100"),
    "up to 1e90": (np.linspace(0, 1e90, 30), "", "label values|1e+15|another unit"),
    "up to 1e7": (np.linspace(0, 1e7, 30), "", ""),
    "up to 1e7 in steps of 1": (np.linspace(0, 1e7, 30), "--data.step 1", "labels|data.step"),
    "one far out": ([*AGES[1:], 1e7], "", "labels|logarithm|data.step"),
    "between 0 and 1, as they are": (np.linspace(0.2, 0.9, 30), "", ""),
    "from -1e308 to 1e308": ([-1e308, *AGES[1:], 1e308], "", "a.csv|line 2|more than 1e100"),
    "step of 1e-9": (AGES, "--data.step 1e-9", "labels|data.step"),
    "step of 1e-300": (AGES, "--data.step 1e-300", "labels|data.step"),
    "step of 0": (AGES, "--data.step 0", "step 0"),
    "step that is NaN": (AGES, "--data.step .nan", "step nan"),
    "step without end": (AGES, "--data.step .inf", "step inf"),
    "sigma of 0": (AGES, "--data.sigma 0", "sigma 0"),
    "sigma that is NaN": (AGES, "--data.sigma .nan", "sigma nan"),
    "sigma without end": (AGES, "--data.sigma .inf", "sigma inf"),
    "low that is NaN": (AGES, "--data.low .nan", "low nan"),
    "low without end": (AGES, "--data.low=-.inf", "low -inf"),
    "high of 1e12": (AGES, "--data.high 1e12", "labels|data.step"),
    "low above high": (AGES, "--data.low 60 --data.high 10", "low"),
    "values outside": (AGES, "--data.low 30", "a.csv|row 0|20|data.low"),
    "a value that is NaN": ([*AGES[:-1], "nan"], "", "a.csv|line 31|nan"),
    "a value that is a word": ([*AGES[:-1], "old"], "", "a.csv|line 31|'old'"),
    "groups that are not there": (AGES, "--data.protocol leave_one_group_out", "a.csv|group_key"),
    "unknown protocol": (AGES, "--data.protocol whatever", "protocol|whatever"),
    "unknown column": (AGES, "--data.value_key old", "a.csv|'old'"),
}


def cases() -> dict[str, Case]:
    """All of them, by name."""
    base = f"--data TabularValues --data.path {{here}}/a.csv --model.backbone null --model.head Softmax {SMALL}"
    return {
        f"values, {name}": Case(args, says, partial(_write, values=list(values)), base)
        for name, (values, args, says) in VALUES.items()
    }


def _write(here: Path, values: list[object]) -> None:
    features = np.random.default_rng(0).normal(size=(len(values), 2))
    rows = [f"{a:.4f},{b:.4f},{value}\n" for (a, b), value in zip(features, values)]
    (here / "a.csv").write_text("f0,f1,value\n" + "".join(rows))
