"""Options out of their range, of another type, or that do not go together."""

from __future__ import annotations

from bad_inputs.harness import SMALL, TABLE, Case

RUNS_A_COMMAND = '{"class_path": "os.system", "init_args": {"command": "touch PWNED"}}'


def _with(head: str, *more: str) -> str:
    return " ".join([TABLE.replace("Softmax", head), SMALL, *more])


# Options that no `option` declares, and one of each kind that one does (`tests/test_options.py` tries the ranges of all
# classes). The line names the option's last part.
REFUSED: dict[str, list[str]] = {
    "seed_everything": ["-1", "4294967296", "1.5", "abc"],
    "data.fold_seed": ["-1"],
    "data.folds": ["0", "31", "2.5"],
    "data.fold": ["10"],
    "data.batch_size": ["0", "1000000000000"],
    "data.num_workers": ["100000"],
    "data.val_fraction": [".nan", "0.999"],
    "data.scaling": ["nonsense"],
    "data.normalize": ["maybe"],
    "data.label_names": ["[a,a,b]", "[a,b]", "[]", "x", "[1,2,3]"],
    "data.label_values": ["[.nan,1,2]", "[1,2]", "[1,1,2]", "[3,2,1]", "x", "[0,1,1e308]"],
    "data.feature_key": ["nothing"],
    "data.target_key": ["nothing"],
    "trainer.val_check_interval": ["1000", "1.5"],
    "trainer.max_epochs": ["1.5", "many"],
    "trainer.gradient_clip_algorithm": ["nonsense"],
    "trainer.limit_train_batches": ["1.5", "0.0001", ".nan"],
    "trainer.limit_test_batches": ["-1"],
    "trainer.overfit_batches": ["2.5"],
    "trainer.devices": ["0", "abc"],
    "trainer.strategy": ["ddp_spawn", "fsdp", "xla", "nonsense"],
    "trainer.precision": ["nonsense", "transformer-engine"],
    "trainer.accelerator": ["abacus", "tpu"],
    "trainer.profiler": ["nonsense"],
    "trainer.max_time": ["nonsense"],
    "trainer.callbacks": ["nonsense"],
    "trainer.deterministic": ["nonsense"],
    "trainer.nonsense": ["1"],
    "model.optimizer": ["os.system", "torch.nn.Linear", "AdamX", "7"],
    "model.optimizer.lr": ["-1", ".nan"],
    "model.lr_scheduler": ["os.system", "StepLRR"],
    "model.mixup": ["-1", ".nan"],
    "model.decoder": ["mode"],
    "model.lr_interval": ["week"],
    "model.head": ["os.system", "torch.nn.Linear", "LDFL", "FittedHead", "MILBoost", "StructuredEdges"],
    "model.backbone": ["Timm", "HOG", "PixelFeatures", "Backbone", "WholeImages"],
    "data": ["os.system", "LDLDataModule", "Tabular"],
    "select": ["worst"],
    "stage": ["train"],
    "wandb.mode": ["nonsense"],
    "model.head.dropout": ["2", ".nan"],
    "model.head.hidden": ["[0]", "x"],
    "model.head.dept": ["3"],
}

# What is as it should be, and is not to be refused by the way.
ACCEPTED: dict[str, list[str]] = {
    _with("Softmax"): [
        "--seed_everything=0",
        "--seed_everything=4294967295",
        "--data.fold_seed=4294967295",
        "--trainer.val_check_interval=1",
        "--trainer.check_val_every_n_epoch=1",
        "--trainer.gradient_clip_val=0",
        "--trainer.accumulate_grad_batches=1000",
        "--trainer.limit_val_batches=0",
        "--model.optimizer.lr=0",
        "--data.folds=30",
        "--data.val_fraction=0",
        "--trainer.log_every_n_steps=0",
        "--trainer.precision=64",
        "--model.lr_scheduler=torch.optim.lr_scheduler.ReduceLROnPlateau --model.lr_monitor=val_chebyshev",
    ],
    _with("StructRF", "--model.head.trees 2"): ["--model.head.depth=0", "--model.head.min_leaf=1000000"],
    _with("MeanPredictor"): ["--trainer.max_epochs=1"],
}

# Options that each are fine, but not together.
TOGETHER: dict[str, Case] = {
    "best without validation": Case("--data.val_fraction 0 --select best", "--select best|val_fraction"),
    "jobs without folds": Case("--jobs 2", "--jobs|--stage fit"),
    "best of no validation batches": Case("--trainer.limit_val_batches 0 --select best", "--select best"),
    "best where validation never comes": Case(
        "--trainer.check_val_every_n_epoch 5 --select best", "--select best|check_val_every_n_epoch"
    ),
    "best without checkpoints": Case("--trainer.enable_checkpointing false --select best", "--select best"),
    "plateau of what is not logged": Case(
        "--model.lr_scheduler torch.optim.lr_scheduler.ReduceLROnPlateau --model.lr_monitor nothing", "nothing"
    ),
    "early stopping on what is not logged": Case(
        "--trainer.callbacks '[{class_path: EarlyStopping, init_args: {monitor: nothing}}]'", "nothing"
    ),
    "sampler of Lightning": Case("--trainer.use_distributed_sampler true"),
    "cross-validation of a checkpoint": Case("--stage crossval --ckpt_path a.ckpt", "crossval|--ckpt_path"),
    "test without checkpoint": Case("--stage test", "--stage test|--ckpt_path"),
    "prediction without checkpoint": Case("--stage predict", "--stage predict|--ckpt_path"),
    "option of another head": Case("--model.head.trees 3", "Softmax has no option 'trees'"),
    "unknown option": Case("--modle.head LDLF", "--modle.head|did you mean"),
    "scheduler without what it needs": Case("--model.lr_scheduler StepLR", "StepLR|step_size"),
    "class path that is a function": Case(f"--model.optimizer '{RUNS_A_COMMAND}'", "os.system"),
    "callback that is a function": Case(
        f"--trainer.callbacks '[{RUNS_A_COMMAND}]'",
        "os.system",
    ),
    "logger that is a function": Case(f"--trainer.logger '{RUNS_A_COMMAND}'", "os.system"),
    "strategy that is a function": Case(f"--trainer.strategy '{RUNS_A_COMMAND}'", "os.system"),
    "optimiser that is a process": Case(
        '--model.optimizer \'{"class_path": "subprocess.check_output", "init_args": {"args": "touch PWNED"}}\'',
        "check_output",
    ),
    "optimiser that needs closures": Case("--model.optimizer LBFGS"),
    "optimiser for sparse gradients": Case("--model.optimizer SparseAdam", "SparseAdam"),
    "betas out of range": Case("--model.optimizer.betas [2,2]", "beta"),
    "one beta": Case("--model.optimizer.betas [0.9]", "betas"),
}


# What the line says where it does not name the option: the value is known too late for that, and the fix is said.
SAID = {
    "data.label_names [a,a,b]": "unique|'a', 'a'",
    "data.label_values [1,1,2]": "rise strictly",
    "data.label_values [3,2,1]": "rise strictly",
    "data.label_values [0,1,1e308]": "1e+15",
    "trainer.precision transformer-engine": "trainer|transformer_engine",
    "trainer.accelerator tpu": "trainer|torch_xla",
    "trainer.max_time nonsense": "trainer|nonsense",
    "model.optimizer.lr -1": "optimiser|-1",
    "model.optimizer.lr .nan": "optimiser|nan",
    "data.feature_key nothing": "table.csv|must be null",
    "data.target_key nothing": "table.csv|must be null",
    "model.head MILBoost": "MILBoost|two labels",
    "model.head StructuredEdges": "WholeImages|images",
    "model.backbone Timm": "Timm|images",
    "model.backbone HOG": "HOG|images",
    "model.backbone PixelFeatures": "PixelFeatures|images",
}


def cases() -> dict[str, Case]:
    """All of them, by name."""
    found = dict(TOGETHER)
    for option, values in REFUSED.items():
        for value in values:
            name = f"{option} {value}"
            found[name] = Case(f"--{option}={value}", SAID.get(name, option.rpartition(".")[2]))
    for base, lines in ACCEPTED.items():
        found |= {f"{line.replace('--', '')}, fine": Case(line, base=base) for line in lines}
    return found
