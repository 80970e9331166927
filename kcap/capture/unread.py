"""The parts of capture files that were not read, in sentences for the user.

In: the files as far as they were read. Out: path and error of each file that could not be opened, ended in the middle of a
record, or holds packets of a link type that kcap does not read. Law: every loss is reported; a file may occur twice.
"""

from typing import TYPE_CHECKING

from kcap.errors import CaptureError
from kcap.model import CaptureFile

if TYPE_CHECKING:
    from kcap.capture.fileset import FileSet


def unread(files: "FileSet") -> list[tuple[str, CaptureError]]:
    """Path -> why the file, or a part of it, was not read. Complete once the files were read."""
    failed = {path for path, _ in files.failed}
    partly = [(file.path, CaptureError(why)) for file in files.files if file.path not in failed for why in faults(file)]
    return [*files.failed, *partly]


def faults(file: CaptureFile) -> list[str]:
    """The sentences about a file that was opened."""
    found = []
    if not file.complete:
        found.append(f"{file.path}: the file is cut ({file.fault}); everything before the cut was read")
    if file.skipped_secrets:
        found.append(
            f"{file.path}: keys in Decryption Secrets Blocks above the bound ({file.skipped_secrets:,} bytes) were not read; "
            "--tls-keylog reads a key log of any size"
        )
    if file.unread_links:
        of = f"of {file.packets:,} packets" if file.packets > 1 else "of 1 packet"
        names = "; ".join(f"{name} is not read ({count:,} {of})" for name, count in file.unread_links.most_common())
        found.append(f"{file.path}: {names}")
    return found
