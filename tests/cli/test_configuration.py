"""Defaults that were set once: typed words win over the environment, the environment over the file."""

from pathlib import Path

import pytest

from kcap.cli.commands import COMMANDS
from kcap.cli.configuration import config_file, defaults, long_names, settings
from kcap.cli.main import kcap as group
from kcap.cli.main import main
from kcap.cli.rows import run as rows
from kcap.errors import UsageError
from kcap.tui.config import config_path


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("KCAP_CONFIG", raising=False)
    (tmp_path / "kcap").mkdir()
    return tmp_path / "kcap" / "config.toml"


def test_where_it_is(config: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert config_file() == config
    assert settings() == {}
    monkeypatch.setenv("KCAP_CONFIG", str(tmp_path / "other.toml"))
    with pytest.raises(UsageError, match="names no file"):
        settings()
    (tmp_path / "other.toml").write_text("[rows]\nlimit = 3\n", encoding="utf-8")
    assert settings() == {"rows": {"limit": 3}}


def test_typed_words_win(config: Path, monkeypatch: pytest.MonkeyPatch, pcaps: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config.write_text('[rows]\nformat = "csv"\ncolumns = "api"\nlimit = 2\nquiet = true\n', encoding="utf-8")
    path = str(pcaps / "go-franz.pcap")
    assert main(["rows", path]) == 0
    assert capfd.readouterr().out == "api\nApiVersions\nApiVersions\n"
    monkeypatch.setenv("KCAP_ROWS_LIMIT", "1")
    assert main(["rows", path]) == 0
    assert capfd.readouterr().out == "api\nApiVersions\n"
    assert main(["rows", path, "--limit", "3", "--columns", "api_version"]) == 0
    assert capfd.readouterr().out == "api_version\n5\n4\n13\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[rws]\n", r"\[rws\] is no command; did you mean rows"),
        ("[rows]\nlimt = 3\n", "limt is no option of kcap rows; did you mean limit"),
        ("rows = 3\n", r"put its options below \[rows\]"),
        ("[rows\n", "config.toml: "),
    ],
)
def test_slips_are_told(config: Path, text: str, said: str) -> None:
    config.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=said):
        defaults(rows, "rows", settings(), COMMANDS)


def test_settings_of_the_terminal_ui_are_looked_for_where_they_are(config: Path) -> None:
    """They have one place: a table of the same name here would be taken for it and do nothing."""
    config.write_text("[tui]\ntheme = 'nord'\n", encoding="utf-8")
    with pytest.raises(UsageError) as reported:
        defaults(rows, "rows", settings(), COMMANDS)
    assert str(reported.value).endswith(f"keeps its settings in {config_path()}")


def test_values_of_a_wrong_kind_are_told(config: Path, pcaps: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config.write_text("[rows]\nlimit = 'many'\n", encoding="utf-8")
    assert main(["rows", str(pcaps / "go-franz.pcap")]) == 2
    assert "'--limit'" in capfd.readouterr().err


def test_options_that_are_given_several_times(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text("[rows]\nnot-kafka = [1, 2]\n", encoding="utf-8")
    assert defaults(rows, "rows", settings(), COMMANDS) == {"not_kafka": [1, 2]}
    monkeypatch.setenv("KCAP_ROWS_NOT_KAFKA", "8080,9090")
    assert defaults(rows, "rows", settings(), COMMANDS) == {"not_kafka": ["8080", "9090"]}


def test_every_long_option_can_be_set() -> None:
    names = long_names(rows)
    assert {"format", "columns", "filter", "time-format"} <= set(names)
    assert names["format"] == "form"
    assert group.name == "kcap"
