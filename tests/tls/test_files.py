"""Key logs and private keys from files."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kcap.errors import CaptureError
from kcap.tls.files import read_secrets
from tests.support.tls import certificate

LINE = "CLIENT_RANDOM " + "61" * 32 + " " + "62" * 48 + "\n"


def test_several_key_logs_are_one(tmp_path: Path) -> None:
    for name, byte in (("a", "61"), ("b", "63")):
        (tmp_path / name).write_text(LINE.replace("61", byte))
    secrets = read_secrets([str(tmp_path / "a"), str(tmp_path / "b")])
    assert set(secrets.keylog.stored) == {b"a" * 32, b"c" * 32}


def test_a_file_that_others_may_read_gets_a_hint(tmp_path: Path) -> None:
    path, hints = tmp_path / "keys", list[str]()
    path.write_text(LINE)
    path.chmod(0o644)
    read_secrets([str(path)], hint=hints.append)
    path.chmod(0o600)
    read_secrets([str(path)], hint=hints.append)
    assert hints == [f"{path} holds secrets and others may read it: chmod 600"]


def test_private_keys_are_read_as_pem_and_der(tmp_path: Path) -> None:
    pem, der = certificate("rsa")
    (tmp_path / "der").write_bytes(der)
    assert len(read_secrets((), [pem, str(tmp_path / "der")]).private_keys) == 2


@pytest.mark.parametrize("text", [b"no key log\n", b"\xff\xd8\xff\xe0"])
def test_what_is_no_key_log_is_refused_by_name(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(text)
    with pytest.raises(CaptureError, match="no TLS key log"):
        read_secrets([str(path)])


def test_keys_that_decrypt_nothing_are_refused(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (tmp_path / "ec").write_bytes(key.private_bytes(*form, serialization.NoEncryption()))
    (tmp_path / "locked").write_bytes(key.private_bytes(*form, serialization.BestAvailableEncryption(b"x")))
    with pytest.raises(CaptureError, match="not an RSA key"):
        read_secrets((), [str(tmp_path / "ec")])
    with pytest.raises(CaptureError, match="without a password"):
        read_secrets((), [str(tmp_path / "locked")])
    with pytest.raises(CaptureError, match=r"none: no such file or directory$"):
        read_secrets([str(tmp_path / "none")])


def test_lines_that_are_written_later_are_taken_by_following_and_by_each_copy(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(LINE)
    secrets = read_secrets([str(path)])
    copy = secrets.copy()
    with path.open("a") as file:
        file.write(LINE.replace("61", "63"))
    for each in (secrets, copy):
        assert set(each.keylog.stored) == {b"a" * 32}
        each.follow()
        assert set(each.keylog.stored) == {b"a" * 32, b"c" * 32}
