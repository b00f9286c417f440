"""What annotation tools write, as votes: a function for each tool, and one table of the tools."""

from ldl.annotations.exports.export import Export, read_export
from ldl.annotations.exports.tools import TOOLS, Tool

__all__ = ["TOOLS", "Export", "Tool", "read_export"]
