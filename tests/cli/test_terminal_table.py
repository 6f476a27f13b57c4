from gpn_scale.cli.terminal_table import cell, table_lines


def test_lines_are_aligned_and_texts_are_cut():
    lines = table_lines([["id", "p"], ["a", 0.12345], ["c" * 60, None]])
    assert lines[0].split() == ["id", "p"]
    assert lines[1].split() == ["a", "0.123"]
    assert lines[2].split() == ["c" * 39 + "…", "-"]
    assert lines[1].index("0.123") == lines[2].index("-") == lines[0].index("p")


def test_control_characters_are_escapes():
    assert cell("a\u202eb\x1b[31m") == "a\\u202eb\\x1b[31m"
    assert cell("x" * 10, 5) == "xxxx…"
    assert cell(7) == "7"
