"""The paths of modules and classes that moved: old imports, checkpoints and configurations go on to work.

An import from an old path raises a DeprecationWarning. :func:`alias_old_modules` is called once, by :mod:`ldl`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MODULES = {
    "ldl.backbones.each_instance": "ldl.bags.each_instance",
    "ldl.backbones.pixel_features": "ldl.edges.pixel_features",
    "ldl.charts.edges": "ldl.edges.charts",
    "ldl.cli.audit": "ldl.command.audit",
    "ldl.cli.command": "ldl.command.console",
    "ldl.cli.faces": "ldl.faces.command",
    "ldl.cli.help": "ldl.command.help",
    "ldl.cli.options": "ldl.command.options",
    "ldl.cli.scaffold": "ldl.command.scaffold",
    "ldl.cli.training": "ldl.run.main",
    "ldl.data.bags": "ldl.bags.bags",
    "ldl.data.edges.bsds500": "ldl.edges.bsds500",
    "ldl.data.edges.crops": "ldl.edges.crops",
    "ldl.data.faces.ages": "ldl.faces.ages",
    "ldl.data.faces.detection": "ldl.faces.detection",
    "ldl.data.faces.detectors": "ldl.faces.detectors",
    "ldl.data.faces.lists": "ldl.faces.lists",
    "ldl.data.faces.module": "ldl.faces.module",
    "ldl.data.faces.morph": "ldl.faces.morph",
    "ldl.data.faces.morph_lists": "ldl.faces.morph_lists",
    "ldl.data.faces.pointing04": "ldl.faces.pointing04",
    "ldl.data.faces.releases": "ldl.faces.releases",
    "ldl.demo.page": "ldl.deploy.demo_page",
    "ldl.demo.server": "ldl.deploy.demo_server",
    "ldl.engine._compat": "ldl.command._compat",
    "ldl.engine.arguments": "ldl.command.arguments",
    "ldl.engine.beside": "ldl.command.beside",
    "ldl.engine.classes": "ldl.command.classes",
    "ldl.engine.configs": "ldl.command.configs",
    "ldl.engine.console": "ldl.run.console",
    "ldl.engine.loggers": "ldl.run.loggers",
    "ldl.engine.messages": "ldl.command.messages",
    "ldl.engine.output": "ldl.run.output",
    "ldl.engine.parser": "ldl.command.config",
    "ldl.engine.processes": "ldl.run.processes",
    "ldl.engine.ranges": "ldl.run.run_options",
    "ldl.engine.record": "ldl.run.record",
    "ldl.engine.results": "ldl.run.results",
    "ldl.engine.resume": "ldl.run.resume",
    "ldl.engine.run": "ldl.run.run",
    "ldl.engine.run_dir": "ldl.run.run_dir",
    "ldl.engine.signals": "ldl.run.signals",
    "ldl.engine.training": "ldl.run.training",
    "ldl.engine.values": "ldl.command.values",
    "ldl.experiments.candidates": "ldl.search.candidates",
    "ldl.experiments.compare": "ldl.search.compare",
    "ldl.experiments.identity": "ldl.jobs.identity",
    "ldl.experiments.runs": "ldl.search.runs",
    "ldl.experiments.search": "ldl.search.space",
    "ldl.experiments.selection": "ldl.search.selection",
    "ldl.experiments.statistics": "ldl.search.statistics",
    "ldl.experiments.study": "ldl.search.study",
    "ldl.experiments.tune": "ldl.search.tune",
    "ldl.heads.bagged": "ldl.bags.bagged",
    "ldl.heads.milboost": "ldl.bags.milboost",
    "ldl.heads.structured_edges": "ldl.edges.structured_edges",
    "ldl.inference.export": "ldl.deploy.export",
    "ldl.inference.export_columns": "ldl.deploy.export_columns",
    "ldl.inference.export_formats": "ldl.deploy.export_onnx",
    "ldl.inference.export_graph": "ldl.deploy.export_graph",
    "ldl.inference.export_metadata": "ldl.deploy.export_metadata",
    "ldl.inference.pretrained": "ldl.deploy.pretrained",
    "ldl.methods.boosting.bags": "ldl.bags.layout",
    "ldl.methods.boosting.boost": "ldl.bags.boost",
    "ldl.methods.boosting.likelihood": "ldl.bags.likelihood",
    "ldl.methods.boosting.pooling": "ldl.bags.pooling",
    "ldl.reports.edges": "ldl.edges.report",
}
"""Current modules, by their paths in version 0.2.0."""

NAMES = {
    "ldl.annotations.equivalence.held_out_nll": "ldl.annotations.power.held_out_nll",
    "ldl.annotations.votes.read_annotations": "ldl.annotations.reading.read_annotations",
    "ldl.backbone.Identity": "ldl.backbones.base.Identity",
    "ldl.backbone.Timm": "ldl.backbones.timm.Timm",
    "ldl.backbones.EachInstance": "ldl.bags.each_instance.EachInstance",
    "ldl.backbones.PixelFeatures": "ldl.edges.pixel_features.PixelFeatures",
    "ldl.backbones.haar.MOST": "ldl.backbones.haar.MOST_RECTANGLES",
    "ldl.batch.keep_truth": "ldl.batch.convert_inputs_only",
    "ldl.callbacks.calibration.LEAST": "ldl.protocols.LEAST_UNITS",
    "ldl.callbacks.drivers": "ldl.callbacks.build.head_callbacks",
    "ldl.callbacks.feature_smoothing.FeatureSmoothing": "ldl.callbacks.averages.FeatureSmoothing",
    "ldl.callbacks.leaf_update.FIX": "ldl.callbacks.leaf_update.LEAF_FIX",
    "ldl.callbacks.moving_average.MovingAverage": "ldl.callbacks.averages.MovingAverage",
    "ldl.cli.main": "ldl.command.console.main",
    "ldl.command.config.LDLCLI": "ldl.command.command_line.parse_anew",
    "ldl.command.config.MatmulPrecision": "ldl.run.run_options.MatmulPrecision",
    "ldl.command.config.Stage": "ldl.run.run_options.Stage",
    "ldl.command.config.whole_numbers_first": "ldl.command.values.whole_numbers_first",
    "ldl.command.configs.read_value": "ldl.command.configs.read_option",
    "ldl.data.BSDS500": "ldl.edges.bsds500.BSDS500",
    "ldl.data.Bags": "ldl.bags.bags.Bags",
    "ldl.data.FGNET": "ldl.faces.ages.FGNET",
    "ldl.data.FGNETAAM": "ldl.faces.fgnet_aam.FGNETAAM",
    "ldl.data.FaceFolder": "ldl.faces.ages.FaceFolder",
    "ldl.data.Morph": "ldl.faces.morph.Morph",
    "ldl.data.Pointing04": "ldl.faces.pointing04.Pointing04",
    "ldl.data.UTKFace": "ldl.faces.ages.UTKFace",
    "ldl.data.bags.bags.Bags": "ldl.bags.bags.Bags",
    "ldl.data.base.Trained": "ldl.data.unlabelled.TrainedInputs",
    "ldl.data.bsds500.BSDS500": "ldl.edges.bsds500.BSDS500",
    "ldl.data.clutter.PosedFaces": "ldl.data.synthetic.PosedFaces",
    "ldl.data.clutter.ShiftedFaces": "ldl.data.synthetic.ShiftedFaces",
    "ldl.data.faces.face_folder.FaceFolder": "ldl.faces.ages.FaceFolder",
    "ldl.data.faces.fgnet.FGNET": "ldl.faces.ages.FGNET",
    "ldl.data.faces.morph.morph.Morph": "ldl.faces.morph.Morph",
    "ldl.data.faces.pointing04.pointing04.Pointing04": "ldl.faces.pointing04.Pointing04",
    "ldl.data.faces.utkface.UTKFace": "ldl.faces.ages.UTKFace",
    "ldl.data.fgnet_aam.FGNETAAM": "ldl.faces.fgnet_aam.FGNETAAM",
    "ldl.data.images.records.FaceProtocol": "ldl.data.images.records.SplitProtocol",
    "ldl.data.images.records.FaceRecords": "ldl.data.images.records.ImageRecords",
    "ldl.data.mnist.MixedDigits": "ldl.data.synthetic.MixedDigits",
    "ldl.data.mnist.ShiftedDigits": "ldl.data.synthetic.ShiftedDigits",
    "ldl.data.picture_folder.shows_faces": "ldl.faces.locator.shows_faces",
    "ldl.data.rotated_digits.RotatedDigits": "ldl.data.synthetic.RotatedDigits",
    "ldl.data.storage.Column": "ldl.data.storage.BatchColumn",
    "ldl.data.synthetic.Faces": "ldl.data.synthetic.FaceSet",
    "ldl.data.tables.fgnet_aam.FGNETAAM": "ldl.faces.fgnet_aam.FGNETAAM",
    "ldl.data.tables.tabular_values.FGNETAAM": "ldl.faces.fgnet_aam.FGNETAAM",
    "ldl.data.tabular.TabularLDL": "ldl.data.tables.tabular.TabularLDL",
    "ldl.data.tabular_values.TabularValues": "ldl.data.tables.tabular_values.TabularValues",
    "ldl.data.trials.clutter.PosedFaces": "ldl.data.synthetic.PosedFaces",
    "ldl.data.trials.clutter.ShiftedFaces": "ldl.data.synthetic.ShiftedFaces",
    "ldl.data.trials.mnist.MixedDigits": "ldl.data.synthetic.MixedDigits",
    "ldl.data.trials.mnist.ShiftedDigits": "ldl.data.synthetic.ShiftedDigits",
    "ldl.each_instance.EachInstance": "ldl.bags.each_instance.EachInstance",
    "ldl.data.base.TrainedInputs": "ldl.data.unlabelled.TrainedInputs",
    "ldl.data.base.Unlabelled": "ldl.data.unlabelled.Unlabelled",
    "ldl.edges.backbone.PixelFeatures": "ldl.edges.pixel_features.PixelFeatures",
    "ldl.experiments.crossval.CollectRows": "ldl.jobs.folds.CollectRows",
    "ldl.experiments.crossval.FoldResult": "ldl.jobs.folds.FoldResult",
    "ldl.experiments.crossval.Folds": "ldl.jobs.folds.Folds",
    "ldl.experiments.crossval.SameFolds": "ldl.jobs.folds.SameFolds",
    "ldl.experiments.crossval.all_folds": "ldl.jobs.folds.all_folds",
    "ldl.experiments.crossval.configured_folds": "ldl.jobs.crossval.configured_folds",
    "ldl.experiments.crossval.crossvalidate": "ldl.jobs.crossval.crossvalidate",
    "ldl.experiments.crossval.fold_folder": "ldl.jobs.folds.fold_folder",
    "ldl.experiments.crossval.run_crossval": "ldl.jobs.crossval.run_crossval",
    "ldl.experiments.jobs.PerProcess": "ldl.jobs.workers.PerProcess",
    "ldl.experiments.jobs.Store": "ldl.jobs.store.Store",
    "ldl.experiments.jobs.Workers": "ldl.jobs.workers.Workers",
    "ldl.experiments.jobs.describe": "ldl.jobs.store.describe",
    "ldl.experiments.jobs.devices_of": "ldl.jobs.executors.devices_of",
    "ldl.experiments.jobs.end_with_parent": "ldl.jobs.executors.end_with_parent",
    "ldl.experiments.jobs.name_of": "ldl.jobs.store.name_of",
    "ldl.experiments.jobs.one_line": "ldl.jobs.workers.one_line",
    "ldl.experiments.jobs.open_executor": "ldl.jobs.executors.open_executor",
    "ldl.experiments.jobs.processors": "ldl.jobs.executors.processors",
    "ldl.experiments.jobs.threads_of": "ldl.jobs.executors.threads_of",
    "ldl.haar.Haar": "ldl.backbones.haar.Haar",
    "ldl.head.wanted_of": "ldl.methods.rows.wanted_of",
    "ldl.heads.Bagged": "ldl.bags.bagged.Bagged",
    "ldl.heads.MILBoost": "ldl.bags.milboost.MILBoost",
    "ldl.heads.MPLBoost": "ldl.bags.milboost.MPLBoost",
    "ldl.heads.StructuredEdges": "ldl.edges.structured_edges.StructuredEdges",
    "ldl.heads.aa_knn.AAKNN": "ldl.heads.baselines.AAKNN",
    "ldl.heads.cost_sensitive_forest.MOST": "ldl.heads.cost_sensitive_forest.MOST_COUNT",
    "ldl.heads.dsna.PART": "ldl.heads.dsna.FEATURES_AT_ONCE",
    "ldl.heads.mean_predictor.MeanPredictor": "ldl.heads.baselines.MeanPredictor",
    "ldl.heads.mirrored.Mirrored": "ldl.heads.wrappers.Mirrored",
    "ldl.heads.mplboost.MPLBoost": "ldl.bags.milboost.MPLBoost",
    "ldl.heads.scaled.Scaled": "ldl.heads.wrappers.Scaled",
    "ldl.heads.structrf.PART": "ldl.heads.structrf.OUT_OF_BAG_ROWS",
    "ldl.heads.structrf.Search": "ldl.heads.structrf.SplitSearch",
    "ldl.hog.HOG": "ldl.backbones.hog.HOG",
    "ldl.inference.table_file.TableFile": "ldl.inference.data.TableFile",
    "ldl.inference.whole_pictures.WholePictures": "ldl.inference.data.WholePictures",
    "ldl.labels.Kind": "ldl.labels.LabelKind",
    "ldl.methods.conformal.scores.LEAST": "ldl.methods.conformal.scores.LEAST_PROBABILITY",
    "ldl.methods.lbp.MOST": "ldl.methods.lbp.MOST_NEIGHBOURS",
    "ldl.methods.max_ent.LEAST": "ldl.methods.max_ent.LEAST_CURVATURE",
    "ldl.metrics.metric.Kind": "ldl.metrics.metric.MetricInput",
    "ldl.metrics.metric.Mean": "ldl.metrics.metric.MeanOverRows",
    "ldl.metrics.ordinal.Rows": "ldl.metrics.ordinal.OrdinalPredictions",
    "ldl.run.run.make_task": "ldl.run.parts.make_task",
    "ldl.run.run.make_trainer": "ldl.run.parts.make_trainer",
    "ldl.run.run.seed_of": "ldl.command.config.seed_of",
}
"""Current paths of classes and functions, by their paths in older checkpoints and configurations."""

OPTIONS = {"model.crisp": "data.crisp"}
"""Current names of options, by their names in older command lines and configurations."""

PACKAGES = (
    "cli",
    "data.edges",
    "data.faces",
    "demo",
    "engine",
    "experiments",
    "experiments.crossval",
    "experiments.jobs",
    "methods.boosting",
)
"""Packages and modules of ldl that went, or whose names moved to several modules."""


def current_path(path: str) -> str:
    """Return the current import path of a class or function, which may have moved."""
    if path in NAMES:
        return NAMES[path]
    module, _, name = path.rpartition(".")
    return f"{MODULES.get(module, module)}.{name}" if module else path


def current_option(word: str) -> str:
    """Return a word of a command line with the current name of an option, which may have moved."""
    name, equals, value = word.partition("=")
    current = OPTIONS.get(name.removeprefix("--")) if name.startswith("--") else None
    return f"--{current}{equals}{value}" if current else word


def old_names(package: str) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a package, which imports names that moved out of it, with a DeprecationWarning."""

    def get(name: str) -> Any:
        path = NAMES.get(f"{package}.{name}")
        if path is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, attribute = path.rpartition(".")
        _warn(f"{package}.{name}", path)
        return getattr(import_module(module), attribute)

    return get


def alias_old_modules() -> None:
    """Let imports of old modules return the current ones."""
    if not any(isinstance(finder, _OldModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OldModules())


class _OldModules(MetaPathFinder):
    """Finds modules at their old paths, before a folder that an older version left is found."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name in MODULES:
            return ModuleSpec(name, _Alias())
        is_package = name.startswith("ldl.") and name.removeprefix("ldl.") in PACKAGES
        return ModuleSpec(name, _EmptyPackage(), is_package=True) if is_package else None


class _Alias(Loader):
    """Puts the current module in place of an old one."""

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        _warn(name, MODULES[name])
        sys.modules[name] = import_module(MODULES[name])


class _EmptyPackage(Loader):
    """Makes a package that only old modules lie in."""

    def exec_module(self, module: ModuleType) -> None:
        module.__getattr__ = old_names(module.__name__)  # type: ignore[method-assign]


def _warn(old: str, new: str) -> None:
    warnings.warn(f"{old} moved to {new}; change the import", DeprecationWarning, stacklevel=3)
