"""Models handed on: folders, and a server on the loopback that speaks the requests of the hub."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from fakes.tasks import AGES, rows, saved, small_task
from packaging.version import Version

import ldl
from ldl import Predictor
from ldl.data import TabularLDL
from ldl.errors import LDLError
from ldl.estimator import LDLRegressor
from ldl.heads import MeanPredictor, Softmax, StructRF
from ldl.jobs.crossval import crossvalidate
from ldl.methods.conformal import Conformal
from ldl.task import Task

OID = "0" * 39 + "1"


class Hub(BaseHTTPRequestHandler):
    """The requests of a push and a download, without accounts and large files."""

    repositories: dict[str, dict[str, bytes]]

    def do_POST(self) -> None:
        content, path = self.rfile.read(int(self.headers["Content-Length"])), self.path.partition("?")[0]
        if path == "/api/repos/create":
            name = "ann/" + json.loads(content)["name"]
            self.repositories.setdefault(name, {})
            self._answer({"url": f"http://{self.headers['Host']}/{name}", "name": name})
        elif path == "/api/validate-yaml":
            self._answer({"errors": [], "warnings": []})
        elif match := re.fullmatch("/api/models/(.+)/preupload/main", path):
            files = [file["path"] for file in json.loads(content)["files"]]
            self._answer({"files": [{"path": file, "uploadMode": "regular", "shouldIgnore": False} for file in files]})
        elif match := re.fullmatch("/api/models/(.+)/commit/main", path):
            for line in map(json.loads, content.splitlines()):
                if line["key"] == "file":
                    file = line["value"]
                    self.repositories[match[1]][file["path"]] = base64.b64decode(file["content"])
            self._answer({"commitUrl": f"http://{self.headers['Host']}/{match[1]}/commit/{OID}", "commitOid": OID})

    def do_HEAD(self) -> None:
        match = re.fullmatch("/(.+)/resolve/([^/]+)/([^/]+)", self.path)
        assert match is not None
        name, revision, file = match.groups()
        if name not in self.repositories:
            self._refuse("RepoNotFound")
        elif revision not in ("main", OID):
            self._refuse("RevisionNotFound")
        elif file not in self.repositories[name]:
            self._refuse("EntryNotFound")
        else:
            content = self.repositories[name][file]
            self.send_response(200)
            self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
            self.send_header("X-Repo-Commit", OID)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

    do_GET = do_HEAD

    def _refuse(self, code: str) -> None:
        self.send_response(404)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(self, content: dict[str, Any]) -> None:
        text = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[tuple[str, dict[str, dict[str, bytes]]]]:
    """The address of a server, and its repositories."""
    repositories: dict[str, dict[str, bytes]] = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Hub", (Hub,), {"repositories": repositories}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", repositories
    server.shutdown()
    server.server_close()


def header(card: str) -> dict[str, Any]:
    metadata: dict[str, Any] = yaml.safe_load(card.split("---\n")[1])
    return metadata


@pytest.fixture
def calibrated() -> Predictor:
    """A model of ages with a temperature and a calibration."""
    task = small_task(Softmax(), AGES)
    task.temperature = 1.5
    task.calibration = Conformal.fit(AGES, np.full((40, 6), 1 / 6), np.linspace(11, 59, 40))
    return Predictor(task)


def test_a_folder_predicts_the_same(calibrated: Predictor, tmp_path: Path) -> None:
    folder = calibrated.save_pretrained(tmp_path / "model", license="mit")
    assert {file.name for file in folder.iterdir()} == {"model.ckpt", "README.md", "config.json"}
    again = Predictor.from_pretrained(folder)
    loaded, before = again(rows(9)), calibrated(rows(9))
    np.testing.assert_array_equal(loaded.distribution, before.distribution)
    np.testing.assert_array_equal(loaded.value, before.value)
    np.testing.assert_array_equal(loaded.interval(0.8), before.interval(0.8))
    card, facts = (folder / "README.md").read_text(), json.loads((folder / "config.json").read_text())
    assert header(card)["license"] == "mit" and header(card)["library_name"] == "ldl"
    assert header(card)["pipeline_tag"] == "tabular-regression" and "softmax" in header(card)["tags"]
    assert "temperature 1.5" in card and "not described" in card and "metrics" not in header(card)
    assert facts["labels"] == AGES.to_dict() | {
        "axes": [list(AGES.axes[0])],
        "names": list(AGES.names),
        "axis_names": [],
    }
    assert facts["head"]["class_path"] == "ldl.heads.softmax.Softmax" and facts["input_shape"] == [6]
    assert facts["calibrated_on"] == 40 and facts["temperature"] == 1.5
    # States of optimiser and trainer stay behind.
    kept = torch.load(folder / "model.ckpt", weights_only=True)
    assert not {"optimizer_states", "loops", "callbacks", "lr_schedulers"} & kept.keys()


def test_the_card_of_a_run_goes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "moods.npz", features=rng.normal(size=(30, 4)), labels=rng.dirichlet(np.ones(3), 30))
    data = TabularLDL(path=str(tmp_path / "moods.npz"), folds=2, val_fraction=0.2)
    options = {"enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu", "max_epochs": 1}
    crossvalidate(lambda: Task(Softmax()), data, [1], trainer=options, folder=tmp_path / "run", select="best")
    run = tmp_path / "run" / "fold_1"
    folder = Predictor.from_checkpoint(run / "checkpoints" / "best.ckpt").save_pretrained(tmp_path / "model")
    card, results = (folder / "README.md").read_text(), json.loads((run / "results.json").read_text())
    assert "# Softmax on moods\n" in card and f"| kl | {results['mean']['kl']:.4g} |" in card
    assert "30 instances" in card and 'Predictor.from_pretrained(".")' in card and "from_checkpoint" not in card
    assert card.count("## How to use it") == 1 and "## Limits" in card
    (entry,) = header(card)["model-index"]
    measured = {metric["type"]: metric["value"] for metric in entry["results"][0]["metrics"]}
    assert measured["kl"] == results["mean"]["kl"] and entry["results"][0]["dataset"]["name"] == "moods"
    # The snippet runs.
    (snippet,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    np.savetxt(folder / "new.csv", rng.normal(size=(2, 4)), delimiter=",", header="a,b,c,d", comments="")
    monkeypatch.chdir(folder)
    exec(snippet, scope := {})  # type: ignore[var-annotated]
    assert scope["found"].distribution.shape == (2, 3)
    # A folder is saved again with its card, which people may have edited.
    (folder / "README.md").write_text(card.replace("# Softmax on moods", "# Moods"))
    again = Predictor.from_pretrained(folder).save_pretrained(tmp_path / "again", license="mit")
    edited = (again / "README.md").read_text()
    assert "# Moods\n" in edited and f"| kl | {results['mean']['kl']:.4g} |" in edited
    assert header(edited) == {
        name: "mit" if name == "license" else value for name, value in header(card).items() if name != "license_name"
    }
    (folder / "README.md").write_text("---\n[\n---\nno card")
    with pytest.raises(LDLError, match="has metadata that are no YAML"):
        Predictor.from_pretrained(folder).save_pretrained(tmp_path / "again")
    # Other weights than those that were tested have no results.
    folder = Predictor.from_checkpoint(run / "checkpoints" / "last.ckpt").save_pretrained(tmp_path / "other")
    assert "model-index" not in header((folder / "README.md").read_text())


def test_push_and_load(calibrated: Predictor, hub: Any, tmp_path: Path) -> None:
    endpoint, repositories = hub
    url = calibrated.push_to_hub("ages", endpoint=endpoint, token=False)
    assert url == f"{endpoint}/ann/ages/commit/{OID}"
    assert repositories["ann/ages"].keys() == {"model.ckpt", "README.md", "config.json"}
    assert 'from_pretrained("ann/ages")' in repositories["ann/ages"]["README.md"].decode()
    options = {"endpoint": endpoint, "cache_dir": tmp_path, "token": False}
    for revision in (None, OID):
        again = Predictor.from_pretrained("ann/ages", revision, **options)
        np.testing.assert_array_equal(again(rows(9)).distribution, calibrated(rows(9)).distribution)


def test_an_estimator_is_handed_on(tmp_path: Path) -> None:
    model = LDLRegressor(StructRF(trees=3)).fit(rows(), np.random.default_rng(0).dirichlet(np.ones(3), 60))
    distribution = Predictor.from_pretrained(model.save_pretrained(tmp_path))(rows(9)).distribution
    np.testing.assert_array_equal(distribution, model.predict_distribution(rows(9)))


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ('{"ldl_version": "99.0.1"}', "was written by ldl 99.0.1, and this is ldl"),
        ('{"ldl_version": "%d.%d.0"}', "was written by ldl"),
        ("{", "has no readable ldl_version; the model is read from model.ckpt alone"),
        ("[" * 100_000, "has no readable ldl_version"),
        ("[]", "has no readable ldl_version"),
        ("{}", "has no readable ldl_version"),
        ('{"ldl_version": 3}', "has no readable ldl_version"),
        ('{"ldl_version": "new"}', "has no readable ldl_version"),
        ('{"ldl_version": "0.0.1"}', ""),
        (None, ""),
    ],
)
def test_facts_of_a_later_version_warn(
    calibrated: Predictor, hub: Any, tmp_path: Path, config: str | None, words: str
) -> None:
    if config is not None and "%d" in config:
        major, minor = Version(ldl.__version__).release[:2]
        config %= major, minor + 1
    endpoint, repositories = hub
    calibrated.push_to_hub("ann/facts", endpoint=endpoint, token=False)
    calibrated.save_pretrained(tmp_path)
    (tmp_path / "config.json").unlink()
    del repositories["ann/facts"]["config.json"]
    if config is not None:
        (tmp_path / "config.json").write_text(config)
        repositories["ann/facts"]["config.json"] = config.encode()
    options = {"endpoint": endpoint, "cache_dir": tmp_path / "cache", "token": False}
    for name, arguments in ((tmp_path, {}), ("ann/facts", options)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            again = Predictor.from_pretrained(name, **arguments)
        messages = [str(each.message) for each in caught if "ldl" in str(each.message)]
        assert len(messages) == bool(words) and all(words in each and "\n" not in each for each in messages)
        assert all(each.filename == __file__ for each in caught if str(each.message) in messages)
        np.testing.assert_array_equal(again(rows(9)).distribution, calibrated(rows(9)).distribution)


def test_missing_and_damaged_repositories(hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # huggingface_hub waits 23 seconds in all before it gives up.
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    endpoint, repositories = hub
    repositories |= {"ann/empty": {}, "ann/broken": {"model.ckpt": b"nothing"}}
    options = {"endpoint": endpoint, "cache_dir": tmp_path, "token": False}
    for name, revision, words in (
        ("ann/none", None, "no folder ann/none, and the hub's repository ann/none does not exist or is private"),
        ("ann/empty", None, "the hub's repository ann/empty has no model.ckpt"),
        ("ann/broken", "v2", "the hub's repository ann/broken has no revision 'v2'"),
        ("ann/broken", None, "cannot be read as a checkpoint"),
    ):
        with pytest.raises(LDLError, match=re.escape(words)) as refused:
            Predictor.from_pretrained(name, revision, **options)
        assert "\n" not in str(refused.value)
    with pytest.raises(LDLError, match="cannot be reached, and no copy is in the cache"):
        Predictor.from_pretrained("ann/none", endpoint="http://127.0.0.1:9", cache_dir=tmp_path / "other", token=False)


def test_wrong_folders_and_names(calibrated: Predictor, hub: Any, tmp_path: Path) -> None:
    with pytest.raises(LDLError, match="has no model.ckpt; give a folder of save_pretrained"):
        Predictor.from_pretrained(tmp_path)
    for name in (tmp_path / "none", "../none", "a/b/c", saved(calibrated.task, tmp_path / "a.ckpt")):
        with pytest.raises(LDLError, match="neither a folder nor the name of a repository"):
            Predictor.from_pretrained(name)
    (tmp_path / "model.ckpt").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(LDLError, match="cannot be read as a checkpoint"):
        Predictor.from_pretrained(tmp_path)
    with pytest.raises(LDLError, match="the hub's repository a//b cannot be used: .*"):
        calibrated.push_to_hub("a//b", endpoint=hub[0], token=False)
    with pytest.raises(LDLError, match="cannot be written"):
        calibrated.save_pretrained(tmp_path / "a.ckpt" / "below")


def test_a_repository_chooses_no_code(hub: Any, tmp_path: Path) -> None:
    endpoint, repositories = hub
    Predictor(small_task(MeanPredictor())).push_to_hub("ann/evil", endpoint=endpoint, token=False)
    checkpoint = torch.load(_written(repositories["ann/evil"]["model.ckpt"], tmp_path), weights_only=True)
    checkpoint["ldl"]["head"]["class_path"] = "antigravity.Head"
    torch.save(checkpoint, tmp_path / "evil.ckpt")
    repositories["ann/evil"]["model.ckpt"] = (tmp_path / "evil.ckpt").read_bytes()
    with pytest.raises(LDLError, match="the checkpoint needs antigravity.Head, which is not imported"):
        Predictor.from_pretrained("ann/evil", endpoint=endpoint, cache_dir=tmp_path / "cache", token=False)


def _written(content: bytes, folder: Path) -> Path:
    (folder / "pushed.ckpt").write_bytes(content)
    return folder / "pushed.ckpt"
