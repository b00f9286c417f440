"""Options out of their range, of another type, or that do not go together."""

from __future__ import annotations

from bad_inputs.harness import SMALL, TABLE, Case

RUNS_A_COMMAND = '{"class_path": "os.system", "init_args": {"command": "touch PWNED"}}'
DIGITS = f"--data RotatedDigits --data.turns 1 --model.backbone Identity --model.backbone.flatten true {SMALL}"


def _with(head: str, *more: str) -> str:
    return " ".join([TABLE.replace("Softmax", head), SMALL, *more])


# By what stands before: each option with values that are refused. The line names the option's last part and the value.
REFUSED: dict[str, dict[str, list[str]]] = {
    _with("Softmax"): {
        "seed_everything": ["-1", "4294967296", "18446744073709551616", "1.5", "abc", "true"],
        "data.fold_seed": ["-1", "4294967296", "x", "1.5"],
        "data.folds": ["0", "1", "-1", "31", "1000000000", "2.5", ".nan"],
        "data.fold": ["-1", "10", "1000000000000"],
        "data.batch_size": ["-1", "0", "1.5", "1000000000000"],
        "data.num_workers": ["-1", "100000"],
        "data.val_fraction": [".nan", "-0.1", "1", ".inf", "0.999"],
        "data.scaling": ["nonsense"],
        "data.clip": ["0", "-1", ".nan"],
        "data.normalize": ["maybe"],
        "data.label_names": ["[a,a,b]", "[a,b]", "[]", "x", "[1,2,3]"],
        "data.label_values": ["[.nan,1,2]", "[1,2,.inf]", "[1,2]", "[1,1,2]", "[3,2,1]", "x", "[0,1,1e308]"],
        "data.feature_key": ["nothing"],
        "data.target_key": ["nothing"],
        "trainer.val_check_interval": ["1000", "0", "-1", "1.5", ".nan", "abc"],
        "trainer.check_val_every_n_epoch": ["0", "-1"],
        "trainer.accumulate_grad_batches": ["0", "-1", "1.5"],
        "trainer.max_epochs": ["-2", "1.5", "many"],
        "trainer.max_steps": ["-5", "x"],
        "trainer.min_epochs": ["-1"],
        "trainer.gradient_clip_val": ["-1", ".nan"],
        "trainer.gradient_clip_algorithm": ["nonsense"],
        "trainer.limit_train_batches": ["-1", "1.5", "0.0001", ".nan"],
        "trainer.limit_val_batches": ["-1", "1.5"],
        "trainer.limit_test_batches": ["-1"],
        "trainer.log_every_n_steps": ["-1"],
        "trainer.num_sanity_val_steps": ["-2"],
        "trainer.overfit_batches": ["-1", "2.5"],
        "trainer.devices": ["0", "abc", "1.5"],
        "trainer.num_nodes": ["0", "-1"],
        "trainer.strategy": ["ddp_spawn", "ddp_notebook", "ddp_fork", "fsdp", "deepspeed", "xla", "nonsense", "dp"],
        "trainer.precision": ["7", "nonsense", "transformer-engine"],
        "trainer.accelerator": ["abacus", "tpu", "7"],
        "trainer.profiler": ["nonsense"],
        "trainer.max_time": ["nonsense"],
        "trainer.plugins": ["nonsense"],
        "trainer.callbacks": ["nonsense"],
        "trainer.logger": ["nonsense"],
        "trainer.fast_dev_run": ["-1"],
        "trainer.deterministic": ["nonsense"],
        "trainer.nonsense": ["1"],
        "model.optimizer": ["os.system", "torch.nn.Linear", "AdamX", "7"],
        "model.optimizer.lr": ["-1", ".nan", ".inf"],
        "model.optimizer.weight_decay": ["-1", ".nan"],
        "model.lr_scheduler": ["os.system", "torch.nn.Linear", "StepLRR"],
        "model.mixup": ["-1", ".nan", ".inf"],
        "model.decoder": ["mode"],
        "model.lr_interval": ["week"],
        "model.head": ["os.system", "torch.nn.Linear", "LDFL", "FittedHead", "MILBoost", "StructuredEdges"],
        "model.backbone": ["os.system", "Timm", "HOG", "PixelFeatures", "Backbone", "WholeImages"],
        "data": ["os.system", "LDLDataModule", "Tabular"],
        "select": ["worst"],
        "stage": ["train"],
        "wandb.mode": ["nonsense"],
        "model.head.dropout": ["2", "-1", "1", ".nan"],
        "model.head.feature_dropout": ["2", ".nan"],
        "model.head.hidden": ["[0]", "[-1]", "[1000000000000]", "x", "[1.5]"],
        "model.head.objective": ["mse", "sord", "dldl_v2", "mean_variance"],
        "model.head.sord_scale": [".nan", "0", "-1"],
        "model.head.expectation_weight": [".nan", ".inf"],
        "model.head.dept": ["3"],
    },
    _with("LDLF"): {
        "model.head.trees": ["0", "-1", "1000000000", "1.5"],
        "model.head.depth": ["1", "17", "deep"],
        "model.head.outputs": ["0", "-1", "3", "1000000000000"],
        "model.head.batches": ["0"],
        "model.head.buffer_rows": ["0", "-1"],
        "model.head.iterations": ["0", "-3"],
        "model.head.routing": ["past"],
        "model.head.ensemble": ["both"],
        "model.head.anneal": [".nan", "0"],
        "model.head.anneal_steps": ["0"],
        "model.head.leaf_smoothing": [".nan", "-1", ".inf"],
        "model.head.leaf_floor": [".nan", "-1", "2"],
        "model.head.tree_dropout": ["1", ".nan"],
    },
    _with("StructRF"): {
        "model.head.trees": ["0"],
        "model.head.depth": ["65", "-1"],
        "model.head.sampling": ["0", ".nan", "2"],
        "model.head.features": [".nan", "0", "1.1"],
        "model.head.min_samples": ["0"],
        "model.head.min_leaf": ["0"],
        "model.head.min_gain": [".nan", "-1"],
        "model.head.search": ["nonsense"],
        "model.head.alpha": [".nan", "-1"],
        "model.head.beta": [".nan"],
        "model.head.bins": ["1", "257"],
        "model.head.seed": ["-1", "9223372036854775808"],
        "model.head.threads": ["0"],
    },
    _with("AAKNN"): {"model.head.neighbours": ["0", "-1", "1.5"]},
    _with("MaxEnt"): {
        "model.head.l2": ["-1", ".nan"],
        "model.head.iterations": ["0"],
        "model.head.tolerance": [".nan", "-1"],
    },
    _with("MSLP"): {
        "model.head.positives": ["0"],
        "model.head.spread": [".nan", "0"],
        "model.head.sigma": [".nan", "0"],
        "model.head.ridge": [".nan", "-1"],
        "model.head.ratio": [".nan", "0"],
        "model.head.metric": ["nonsense"],
        "model.head.neighbours": ["0"],
        "model.head.kernel": ["nonsense"],
        "model.head.landmarks": ["0"],
        "model.head.gamma": [".nan", "0"],
        "model.head.beta": ["2", ".nan"],
    },
    _with("DSNA", "--model.head.trees 2"): {
        "model.head.clusters": ["0"],
        "model.head.overlap": [".nan", "-1"],
        "model.head.tau": [".nan", "0"],
        "model.head.energy": [".nan", "2"],
        "model.head.width": [".nan", "0"],
        "model.head.sparsity": [".nan", "-1"],
        "model.head.attraction": [".nan", "-1"],
        "model.head.start": ["nonsense"],
        "model.head.rounds": ["0"],
        "model.head.tolerance": [".nan", "0"],
        "model.head.penalty": [".nan", "0"],
        "model.head.cap": [".nan", "-1"],
        "model.head.epsilon": [".nan", "-1"],
        "model.head.gamma": [".nan", "0"],
        "model.head.sets": ["0"],
    },
    f"{DIGITS} --model.head Softmax": {
        "data.turns": ["0", "1000000000"],
        "data.max_angle": [".nan", "0", "181"],
        "data.step": ["1e-9", ".nan", "0", "7"],
        "data.sigma": [".nan", "0", "-1"],
        "data.turn_seed": ["-1"],
    },
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
    "best of no epoch": Case("--trainer.max_epochs 0 --select best", "--select best"),
    "best of no validation batches": Case("--trainer.limit_val_batches 0 --select best", "--select best"),
    "best where validation never comes": Case(
        "--trainer.check_val_every_n_epoch 5 --select best", "--select best|check_val_every_n_epoch"
    ),
    "best without checkpoints": Case("--trainer.enable_checkpointing false --select best", "enable_checkpointing"),
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
    "model.head MILBoost": "MILBoost|two labels",
    "model.head StructuredEdges": "WholeImages|images",
    "model.backbone Timm": "Timm|images",
    "model.backbone HOG": "HOG|images",
    "model.backbone PixelFeatures": "PixelFeatures|images",
}


def cases() -> dict[str, Case]:
    """All of them, by name."""
    found = dict(TOGETHER)
    for base, table in REFUSED.items():
        for option, values in table.items():
            for value in values:
                name = f"{option} {value}"
                says = SAID.get(name, option.rpartition(".")[2])
                found[f"{_head(base)}{name}"] = Case(f"--{option}={value}", says, base=base)
    for base, lines in ACCEPTED.items():
        found |= {f"{_head(base)}{line.replace('--', '')}, fine": Case(line, base=base) for line in lines}
    return found


def _head(base: str) -> str:
    name = base.split("--model.head ")[1].split()[0]
    return "" if name == "Softmax" else f"{name} "
