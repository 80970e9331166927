"""Copies read back the same, with what pcapng says beside the packets."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from struct import pack

import pytest

from kcap.capture.fileset import FileSet, ignore
from kcap.capture.packet_copy import PCAP, PCAPNG, Origin, form_of, notes_of, open_copy
from kcap.capture.pcapng_annotations import read_annotations
from kcap.capture.sections import FileSection, FileSections
from kcap.errors import OutputError, UsageError
from kcap.model import CaptureFile
from tests.capture.handmade import block, enhanced, interface, option, pcap, read_all, save, section

PACKETS = [(1_700_000_000_000_000_000 + n * 1001, bytes([n]) * n, n + n % 3) for n in range(1, 40)]


def copied(path: Path, form: str, tmp_path: Path) -> Path:
    files = FileSet([str(path)], ignore)
    stream, copy, origins = BytesIO(), None, []
    for batch in files.batches():
        if copy is None:
            origins = [
                Origin(file, FileSections(), note) for file, note in zip(files.files, notes_of(files.files, form), strict=True)
            ]
            copy = open_copy(stream, form, origins, "a part")
        origins[batch.file].sections = files.layouts[batch.file]
        for at in range(len(batch)):
            copy.write(batch, at)
    assert copy is not None
    copy.tells_drops = True
    copy.close()
    return save(tmp_path, stream.getvalue(), f"copy.{form}")


class Sections(FileSections):
    """Sections of a file that are looked up, never gone through."""

    def __iter__(self) -> Iterator[FileSection]:
        raise AssertionError("all sections are looked at for one packet")


def test_a_packet_costs_the_same_in_a_file_of_many_sections(tmp_path):
    """Law: writing is linear in the packets, however many sections a file has."""
    data = b"".join(
        section("<") + interface(1, order="<") + enhanced(1_700_000_000_000_000 + n, b"x", 0, order="<") for n in range(20)
    )
    files = FileSet([str(save(tmp_path, data))], ignore)
    copy = None
    for batch in files.batches():
        if copy is None:
            origin = Origin(files.files[0], FileSections(), notes_of(files.files, PCAPNG)[0])
            copy = open_copy(BytesIO(), PCAPNG, [origin], "a part")
        origin.sections = Sections()
        origin.sections.become(files.layouts[0])
        for at in range(len(batch)):
            copy.write(batch, at)
    assert copy is not None
    assert copy.packets == 20


@pytest.mark.parametrize("form", [PCAP, PCAPNG])
def test_packets_read_back_the_same(form, tmp_path):
    got, files, weirds = read_all(copied(save(tmp_path, pcap(PACKETS, ns=True)), form, tmp_path))
    assert [(time, data, wire) for _, time, data, wire, *_ in got] == PACKETS
    assert files.files[0].format == form
    assert not weirds.seen


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_keeps_interfaces_comments_names_secrets_and_drops(order, tmp_path):
    names = option(1, bytes((10, 0, 0, 1)) + b"broker\0", order) + option(0, b"", order)
    data = section(order) + interface(1, order=order) + interface(276, 9, order=order)
    data += block(10, pack(order + "II", 0x544C534B, 4) + b"KEYS", order) + block(4, names, order)
    noted = option(1, b"look here", order) + option(0, b"", order)
    data += enhanced(1_700_000_000_000_000, b"one", 0, order=order, options=noted)
    data += enhanced(1_700_000_000_000_000_123, b"two", 1, order=order)
    data += block(5, pack(order + "III", 0, 0, 0) + option(5, pack(order + "Q", 3), order), order)
    data += section(order) + interface(101, order=order) + enhanced(1_700_000_000_000_200, b"three", 0, order=order)
    original = save(tmp_path, data)
    want, _, _ = read_all(original)
    copy = copied(original, PCAPNG, tmp_path)
    got, files, weirds = read_all(copy)
    assert [entry[1:4] + entry[5:] for entry in got] == [entry[1:4] + entry[5:] for entry in want]
    assert not [kind for kind in weirds.kinds if kind != "kernel_drops"]
    file = files.files[0]
    assert (file.secrets, file.names, file.kernel_drops, file.links) == ([b"KEYS"], {"10.0.0.1": "broker"}, 3, {1, 276, 101})
    assert b"look here" in Path(copy).read_bytes()
    notes = read_annotations(str(copy))
    assert [described.link for described in notes.sections[0]] == [1, 276, 101]
    assert b"a part" in notes.headers[0]


def test_pcap_has_room_for_one_link_type(tmp_path):
    data = section() + interface(1) + interface(276) + enhanced(1, b"one", 0) + enhanced(2, b"two", 1)
    with pytest.raises(OutputError, match="write pcapng"):
        copied(save(tmp_path, data), PCAP, tmp_path)


def test_the_name_says_the_format_or_the_input_does():
    plain, rich = CaptureFile("a", "a", format="pcap", links={1}), CaptureFile("b", "b", format="pcapng+gzip", links={1})
    other = CaptureFile("c", "c", format="pcap", links={276})
    assert [form_of(name, None, [plain]) for name in ("x.pcap", "x.PCAPNG", "x", "-", None)] == [PCAP, PCAPNG, PCAP, PCAP, PCAP]
    assert form_of("x", None, [rich]) == form_of("x", None, [plain, other]) == PCAPNG
    assert form_of("x.pcap", PCAPNG, [plain]) == PCAPNG
    with pytest.raises(UsageError, match="compress"):
        form_of("x.pcap.gz", None, [plain])
