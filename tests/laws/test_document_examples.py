"""Every command line in a code block of README and of docs is run as it stands there, over captures of its names."""

import re
import shlex
from pathlib import Path
from shutil import copy

import pytest

import kcap
from kcap.cli.commands import COMMANDS
from kcap.cli.main import main
from tests.cli.running import PCAPS

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(?:sh|bash|console)?\n(.*?)^```", re.DOTALL | re.MULTILINE)
CALL = re.compile(r"^(?:\$ )?(?:\./run|kcap) ")
NOT_RUN = {
    "kcap incident.pcapng": "the terminal UI takes a screen; tests/tui drives it",
    "kcap broker.pcapng": "the terminal UI takes a screen; tests/tui drives it",
    "kcap live -i any --tui": "takes a screen and an interface; tests/cli/test_live.py and tests/tui drive it",
    "kcap web incident.pcapng": "serves until it is interrupted; tests/tui/test_web.py holds what it serves",
    "kcap rows old.pcap --tls-key broker-key.pem": "takes the private key of a recorded broker; tests/tls decrypts with one",
}
"""Line -> why it is not run."""
STOPS = ("|", ">", "<", "#")


def lines() -> list[tuple[str, str]]:
    """Document and command line, without comments; two commands on one line are two."""
    found = []
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for block in BLOCK.findall(path.read_text(encoding="utf-8")):
            text = block.replace("\\\n", " ")
            found += [(path.name, part.strip()) for line in text.splitlines() if CALL.match(line)
                      for part in re.split(r"\s{2,}(?=kcap )", re.sub(r"\s+# .*", "", line).removeprefix("$ "))]  # fmt: skip
    return found


LINES = lines()


def test_documents_have_examples_and_none_is_excused_in_vain() -> None:
    assert len({name for name, _ in LINES}) > 10
    assert NOT_RUN.keys() <= {line for _, line in LINES}


def prepared(line: str, folder: Path) -> str:
    """The line, with the files that it reads in the folder and names of its exchanges that are there."""
    before = re.split(r" -o ", line)[0]
    capture = PCAPS / ("tls13.pcapng" if "encrypted" in line else "old-java-new-broker.pcap")
    (folder / "pcaps").symlink_to(PCAPS)
    for name in re.findall(r"(?<![\w/])[\w-]+\.pcap(?:ng)?\b", before):
        copy(capture, folder / name)
    for name in re.findall(r"[\w-]+\.keys", before):
        (folder / name).write_text("")
    for name in re.findall(r"(?<= )(?!pcaps)\w+/", before):
        (folder / name).mkdir()
        if name.startswith(("tuesday", "wednesday")):
            assert main(["rows", str(capture), "-o", str(folder / name / "rows.parquet")]) == 0
        else:
            copy(capture, folder / name / "one.pcap")
    row = kcap.open(capture).exchanges(["connection", "exchange", "client_id"]).to_arrow().slice(0, 1).to_pylist()[0]
    return re.sub(r"\bC[0-9a-f]{16}\b", row["connection"], line).replace("--explain billing", f"--explain {row['client_id']}")


@pytest.mark.parametrize(("document", "line"), [pair for pair in LINES if pair[1] not in NOT_RUN])
def test_an_example_of_a_document_runs(
    document: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KEY", "any")
    monkeypatch.chdir(tmp_path)
    words = shlex.split(prepared(line, tmp_path).replace("$KEY", "any"))[1:]
    words = words[: next((at for at, word in enumerate(words) if word in STOPS), len(words))]
    capsys.readouterr()
    code = main(words)
    said = capsys.readouterr()
    assert words[0] in COMMANDS
    assert code in ((0, 1) if "--fail-on" in line else (0,)), (document, said.err)
    if "-o" in words and words[0] != "split" and " -Y " not in line:
        assert (tmp_path / words[words.index("-o") + 1]).stat().st_size > 0
    assert said.out or said.err or "-o" in words
