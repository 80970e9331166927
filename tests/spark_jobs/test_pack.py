"""The zip for executors holds what tasks import, and nothing but the packages."""

import zipfile
from pathlib import Path

import pytest

from spark_jobs.pack import ROOT, main


def test_the_zip_has_every_module_and_what_they_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "kcap.zip"
    assert main([str(place)]) == 0
    with zipfile.ZipFile(place) as packed:
        names = packed.namelist()
        assert packed.read("kcap/version.py") == (ROOT / "kcap" / "version.py").read_bytes()
    sources = [file for package in ("kcap", "spark_jobs") for file in (ROOT / package).rglob("*.py")]
    assert {file.relative_to(ROOT).as_posix() for file in sources} <= set(names)
    assert any(name.endswith("facts.jsonl") for name in names)
    assert {name.partition("/")[0] for name in names} == {"kcap", "spark_jobs"}
    assert f"{len(names)} files" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["a.zip", "b.zip"], ["--help"]])
def test_one_name_is_needed(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert "usage" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
