"""Cells: pieces of work that are done once, in any process, and whose outcome lies in a file each."""
