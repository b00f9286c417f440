"""The server of ``ldl demo``: hosts, ports, and images that are deleted."""

from __future__ import annotations

import http.client
import os
import socket
import tempfile
from pathlib import Path

import numpy as np
import pytest
from fakes.photographs import drawn_model, photographs
from PIL import Image

from ldl.deploy.demo_server import serving
from ldl.errors import LDLError
from ldl.inference import Predictor

gradio_client = pytest.importorskip("gradio_client", reason="pip install 'ldl[demo]'")


@pytest.mark.slow
def test_only_hosts_of_this_machine_are_answered(checkpoint: Path) -> None:
    """A web page with a name of its own for 127.0.0.1 reads nothing (DNS rebinding)."""
    with serving(checkpoint, 0) as address:
        port = int(address.rsplit(":", 1)[1].strip("/"))
        for host, status in (("127.0.0.1", 200), ("localhost", 200), ("evil.example", 400), ("", 400)):
            for path in ("/", "/config", "/gradio_api/info"):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
                connection.request("GET", path, headers={"Host": f"{host}:{port}" if host else ""})
                assert connection.getresponse().status == status, (host, path)
                connection.close()


@pytest.mark.slow
def test_a_proxy_is_not_asked_for_this_machine(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("http_proxy", "http://127.0.0.1:9"), ("no_proxy", "intern.example"), ("NO_PROXY", "")):
        monkeypatch.setenv(name, value)
    with serving(checkpoint, 0) as address:
        assert address.startswith("http://127.0.0.1:")
    assert os.environ["no_proxy"] == os.environ["NO_PROXY"] == "intern.example,127.0.0.1,localhost"


@pytest.mark.slow
def test_faces(ldl_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("facenet_pytorch", reason="pip install 'ldl[faces]'")
    photographs(ldl_data, tmp_path / "photographs")
    checkpoint, picture = drawn_model(tmp_path / "a.ckpt"), tmp_path / "photographs" / "turned.jpg"
    predictor = Predictor.from_checkpoint(checkpoint)
    (tmp_path / "served").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "served"))
    for detector in (None, "mtcnn"):
        predictions = predictor.predict(picture, detector=detector)
        with serving(checkpoint, 0, detector) as address:
            client = gradio_client.Client(address, verbose=False)
            drawn, table, _, _ = client.predict(gradio_client.handle_file(picture), 1, api_name="/predict")
            assert any((tmp_path / "served").iterdir())
            with pytest.raises(gradio_client.exceptions.AppError, match="face 2 must be in 1..1"):
                client.predict(gradio_client.handle_file(picture), 2, api_name="/predict")
        expected = [1 if detector else 0, predictions.value[0], predictions.std[0], *predictions.interval(0.9)[0]]
        np.testing.assert_allclose(np.array(table["data"][0], dtype=float), expected, rtol=6e-4)
        assert table["headers"][:2] == ["face" if detector else "row", "value (years)"]
        width, height = Image.open(drawn).size
        assert height > width  # the picture is upright
        assert not any((tmp_path / "served").glob("ldl_demo_*"))  # pictures of faces are not left behind


@pytest.mark.slow
def test_what_cannot_be_shown(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADIO_TEMP_DIR", "mine")
    with (
        pytest.raises(LDLError, match="not trained on crops of images; leave --detector out"),
        serving(checkpoint, 0, "mtcnn"),
    ):
        pass
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(LDLError, match=f"port {port} of 127.0.0.1 cannot be taken"), serving(checkpoint, port):
            pass
    assert os.environ["GRADIO_TEMP_DIR"] == "mine"
