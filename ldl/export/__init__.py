"""Export: a trained model as one file that runs without ldl."""

from ldl.export.deployed import Deployed
from ldl.export.export import Exported, export

__all__ = ["Deployed", "Exported", "export"]
