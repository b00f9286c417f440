"""Words of a command line as arguments."""

from __future__ import annotations

from ldl.command.arguments import Argument, below, dotted, tokenize, words_of


def test_words_and_arguments() -> None:
    words = ["-c", "a.yaml", "--model.lr=-1", "--model.lr", "-2", "--flag", "--data.path", "x"]
    arguments = tokenize(words)
    assert [each[:2] for each in arguments] == [
        ("-c", "a.yaml"),
        ("--model.lr", "-1"),
        ("--model.lr", "-2"),
        ("--flag", ""),
        ("--data.path", "x"),
    ]
    assert words_of(arguments) == words
    assert [each.is_config for each in arguments] == [True, False, False, False, False]


def test_options_become_words() -> None:
    assert dotted({"a.b": [1, "x"], "c": None, "d": "007"}) == ['--a.b=[1, "x"]', "--c=null", "--d=007"]
    assert Argument("--model.head.init_args.trees", "3", []).option == "model.head.trees"


def test_names_below_a_part() -> None:
    given = tokenize(
        ["-c", "a.yaml", "--model.head=Pool", "--model.head.members=[]", "--model.headless=1", "--model", "x"]
    )
    assert below(given, "model.head") == ["", "members"]
    assert below(tokenize(["--model.head.init_args.head.init_args.trees", "3"]), "model.head") == ["head.trees"]
