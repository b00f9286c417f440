"""What pyproject.toml cannot say: the configurations go into the wheel, as ``ldl/configs``."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithConfigs(build_py):
    """Copies ``configs/`` beside the modules; an editable installation reads those of its checkout."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib, "ldl", "configs")
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree("configs", target)


setup(cmdclass={"build_py": BuildWithConfigs})
