"""Numbers of a configuration that no class checks: Lightning would die of them, or take no notice."""

from __future__ import annotations

import math
from typing import Any

import pytest
from jsonargparse import Namespace
from places import ROOT
from pytorch_lightning.cli import LightningArgumentParser

from ldl.errors import LDLError
from ldl.running.parser import LDLCLI, whole_numbers_first
from ldl.running.ranges import RANGES, check_ranges


def configuration(**given: Any) -> Namespace:
    groups = {name: Namespace() for name in ("trainer", "model", "data", "wandb")}
    config = Namespace(seed_everything=0, run_dir=None, ckpt_path=None, **groups)
    for name, value in given.items():
        config[name.replace("__", ".")] = value
    return config


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("seed_everything", [0, 2**32 - 1, False], [-1, 2**32, 10**400, True]),
        ("trainer.num_nodes", [1], [0, -1]),
        ("trainer.max_epochs", [None, -1, 0, 5], [-2]),
        ("trainer.min_epochs", [None, 0], [-1]),
        ("trainer.max_steps", [-1, 0], [-2]),
        ("trainer.min_steps", [None, 0], [-1]),
        ("trainer.fast_dev_run", [True, False, 3], [-1]),
        ("trainer.val_check_interval", [None, 0.5, 1.0, 1000, "00:01:00:00"], [0, -1, 0.0]),
        ("trainer.check_val_every_n_epoch", [None, 1], [0, -1]),
        ("trainer.num_sanity_val_steps", [None, -1, 0], [-2]),
        ("trainer.log_every_n_steps", [None, 0, 50], [-1]),
        ("trainer.accumulate_grad_batches", [1, 1000], [0, -1]),
        ("trainer.gradient_clip_val", [None, 0, 0.5], [-1, -0.1, math.nan, math.inf]),
        ("trainer.reload_dataloaders_every_n_epochs", [0, 1], [-1]),
    ],
)
def test_lightnings_numbers(name: str, good: list[Any], bad: list[Any]) -> None:
    assert name in RANGES
    for value in good:
        check_ranges(configuration(**{name: value}))
    for value in bad:
        with pytest.raises(LDLError, match=f"^{name} ") as caught:
            check_ranges(configuration(**{name: value}))
        assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_optimisers_and_schedulers_take_finite_numbers(value: float) -> None:
    made = Namespace(class_path="torch.optim.SGD", init_args=Namespace(lr=0.1, momentum=value))
    with pytest.raises(LDLError, match=r"^model\.optimizer\.momentum is (nan|inf|-inf), which is no finite number"):
        check_ranges(configuration(model__optimizer=made))
    with pytest.raises(LDLError, match=r"^model\.optimizer\.betas is "):
        check_ranges(configuration(model__optimizer=Namespace(init_args=Namespace(betas=[0.9, value]))))
    # A class of ours says itself where infinity has a meaning.
    check_ranges(configuration(model__head=Namespace(init_args=Namespace(cap=value))))


@pytest.mark.parametrize("place", ["run_dir", "ckpt_path", "data.path", "data.root", "model.backbone.weights"])
@pytest.mark.parametrize("text", ["", "a\0b"])
def test_a_place_has_a_name(place: str, text: str) -> None:
    with pytest.raises(LDLError, match=f"^{place} is .*, which is no place; name a file or folder, or leave it out$"):
        check_ranges(configuration(**{place: text}))


@pytest.mark.parametrize("group", ["trainer", "model", "data", "wandb"])
@pytest.mark.parametrize("value", [None, 7, "x", [1]])
def test_groups_hold_options(group: str, value: Any) -> None:
    with pytest.raises(LDLError, match=f"^{group} is .*, but it holds options"):
        check_ranges(configuration(**{group: value}))


def test_one_batch_is_not_all_of_them() -> None:
    """Typing keeps one of two equal unions: which one, another library decides that is imported first."""
    parser = LightningArgumentParser()
    parser.add_argument("--limit_test_batches", type=float | int | None)
    assert type(parser.parse_args(["--limit_test_batches", "1"]).limit_test_batches) is float  # the trap
    whole_numbers_first(parser)
    for given, kind in (("1", int), ("1.0", float), ("0.5", float), ("null", type(None))):
        assert type(parser.parse_args(["--limit_test_batches", given]).limit_test_batches) is kind


def test_one_batch_is_one_batch() -> None:
    trainer = LDLCLI(["-c", str(ROOT / "configs" / "default.yaml"), "--trainer.limit_test_batches", "1"]).config.trainer
    assert type(trainer.limit_test_batches) is int
