"""A reader of LaTeX that knows just enough to check tables: tokens, braces and rows."""

import re

TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[^\\]", re.DOTALL)
PRINTED = {
    r"\textbackslash": "\\",
    r"\textasciicircum": "^",
    r"\textasciitilde": "~",
    r"\textless": "<",
    r"\textgreater": ">",
    r"\textbar": "|",
}


def printed(source):
    """The text that LaTeX prints for escaped text; refuses all that is a command or special."""
    text, depth = "", 0
    for token in TOKEN.findall(source):
        if token in PRINTED:
            text += PRINTED[token]
        elif token in {"{", "}"}:
            depth += 1 if token == "{" else -1
            assert depth >= 0
        elif len(token) == 2:
            assert token[1] in "{}$&#_%", token
            text += token[1]
        else:
            assert len(token) == 1, token
            assert token not in "$&#^_~%", token
            text += token
    assert depth == 0
    return text


def check_table(source):
    """Refuse a table with open braces or environments, or rows with a wrong number of cells."""
    assert not re.search(r"(?<!\\)%", source)
    depth = 0
    for token in TOKEN.findall(source):
        depth += {"{": 1, "}": -1}.get(token, 0)
        assert depth >= 0
    assert depth == 0
    begun = re.findall(r"\\begin\{(\w+)\}", source)
    assert begun == ["table", "tabular"]
    assert re.findall(r"\\end\{(\w+)\}", source) == begun[::-1]
    for command in (r"\toprule", r"\midrule", r"\bottomrule", r"\caption{", r"\label{tab:"):
        assert source.count(command) == 1
    width = len(re.search(r"\\begin\{tabular\}\{(l r*|lr*)\}", source)[1])
    body = source.split(r"\toprule")[1].split(r"\bottomrule")[0]
    rows = [line for line in body.splitlines() if line.endswith(r" \\")]
    assert rows
    for row in rows:
        spans = [int(span) - 1 for span in re.findall(r"\\multicolumn\{(\d+)\}", row)]
        assert len(re.findall(r"(?<!\\)&", row)) + sum(spans) == width - 1, row
