import json

import nbformat
import pytest
from gallery_pages import gallery_index, gallery_page
from nbclient.exceptions import CellExecutionError

SCRIPT = """\
# %% [markdown]
# # Which nodes are strange?
#
# The answer in one paragraph,
# on two lines.

# %%
print("two", "words")

# %%
class Picture:
    def _repr_svg_(self):
        return "<svg xmlns='http://www.w3.org/2000/svg'/>"

    def __repr__(self):
        return "a [small] picture"


Picture()

# %%
import pandas as pd

pd.DataFrame({"node": [7]})

# %% [markdown]
# How to read it.

# %%
6 * 7
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "01_strange.py"
    path.write_text(SCRIPT)
    return path


def test_without_execution_a_page_has_text_and_code(script, tmp_path):
    page = gallery_page(script, execute=False, folder=tmp_path)
    assert page.title == "Which nodes are strange?"
    assert page.summary == "The answer in one paragraph, on two lines."
    assert '```python\nprint("two", "words")\n```' in page.markdown
    assert "```text" not in page.markdown
    assert page.picture is None
    assert set(page.files) == {"01_strange.py", "01_strange.ipynb"}


def test_execution_adds_what_cells_show(script, tmp_path):
    page = gallery_page(script, execute=True, folder=tmp_path)
    assert "```text\ntwo words\n```" in page.markdown
    assert "```text\n42\n```" in page.markdown
    assert "![a (small) picture](01_strange-1.svg)" in page.markdown
    assert page.picture == "01_strange-1.svg"
    assert "<table>" in page.markdown
    assert "<style" not in page.markdown
    assert page.files["01_strange-1.svg"].startswith(b"<svg")
    notebook = nbformat.reads(page.files["01_strange.ipynb"].decode(), as_version=4)
    assert [cell.cell_type for cell in notebook.cells][:2] == ["markdown", "code"]
    assert "42" in json.dumps(notebook.cells[-1].outputs)


def test_a_cell_that_fails_ends_the_build(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("# %%\nraise ValueError('no such graph')\n")
    with pytest.raises(CellExecutionError, match="no such graph"):
        gallery_page(path, execute=True, folder=tmp_path)


def test_code_that_holds_fences_stays_one_block(tmp_path):
    path = tmp_path / "a.py"
    path.write_text('# %% [markdown]\n# # A\n#\n# Text.\n\n# %%\nx = """\n```\n"""\n')
    page = gallery_page(path, execute=False, folder=tmp_path)
    assert '````python\nx = """\n```\n"""\n````' in page.markdown


def test_the_index_lists_every_example_with_its_question(script, tmp_path):
    page = gallery_page(script, execute=False, folder=tmp_path)
    index = gallery_index([page])
    assert "**[Which nodes are strange?](01_strange.md)**" in index
    assert page.summary in index
