from gpn_scale.cli import code_fingerprint as module
from gpn_scale.cli.code_fingerprint import code_fingerprint


def test_the_code_has_one_fingerprint():
    assert code_fingerprint() == code_fingerprint()


def test_names_and_content_of_source_files_count(tmp_path, monkeypatch):
    monkeypatch.setattr(module.gpn_scale, "__file__", str(tmp_path / "__init__.py"))
    (tmp_path / "__init__.py").write_text("")
    prints = [code_fingerprint()]
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.py").write_text("x = 1\n")
    prints.append(code_fingerprint())
    (tmp_path / "folder" / "a.py").write_text("x = 2\n")
    prints.append(code_fingerprint())
    (tmp_path / "folder" / "a.py").rename(tmp_path / "folder" / "b.py")
    prints.append(code_fingerprint())
    assert len(set(prints)) == 4
    (tmp_path / "notes.txt").write_text("not code")
    assert code_fingerprint() == prints[-1]
