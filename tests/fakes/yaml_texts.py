"""Texts that YAML reads as something else, or not at all."""

WORDS = [
    "001", "010", "1:30", "00:01:00:00", "on", "off", "yes", "No", "y", "true", "True", "1e3", "1_000", "0x10", "0o17",
    "~", "Null", "=", "<<", "2020-01-01", "1.50", ".5", "+5", ".inf", "5", "1.0",
    "-3", "\u0661", "\u00b2", "1e999", "12e03",
    "0b1", "a:b", "C:\\x", "190:20:30", "1.", "9" * 5000,
]  # fmt: skip
"""Plain texts in YAML too; version 1.1 reads many of them as something else."""

MARKS = [
    "#subject", "#1", "a #b", "a: b", "a:", "[a", "{a", "[a, b] c", "*a", "&a", "!a", "%a", "@a", "`a", "- a", "| a",
    "> a", "? a", "'a", '"a', "a'b", "a, b", "",
    "\u00a0&", "a\u00a0#b", "\u2003*a", "a:\u00a0b",
]  # fmt: skip
"""Texts that need quotes in YAML, and none on the command line."""
