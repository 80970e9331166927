"""Machine code of kernels: the processor that it is made for, how it is called, and where it is stored.

In: object files. Out: a folder of this user, and its contents. Law: machine code is used only while all sources that it was
made from, the processor and the compilers are the same, and only from a folder that this user and root alone can write to.
"""

import os
import sys
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from kcap.folders import cache_folder, shared, write_whole

ROOT = Path(__file__).parent
KERNELS = (
    "kernels.py", "machine_code.py", "kernel_compiler.py", "every_kernel.py", "uid_kernels.py", "*/*_kernels.py",
    "fastpath/client_ids.py", "fastpath/flow_table.py",
)  # fmt: skip
"""Modules with compiled functions, and the compiler, as glob patterns within the package."""
CONSTANTS = (
    "columns.py", "limits/*.py", "decode/opcodes.py", "decode/slots.py", "fastpath/arrays.py", "fastpath/layout.py",
    "fastpath/state.py", "identities.py", "kafka/frames.py", "kafka/headers.py", "model.py", "net/segment_columns.py",
    "net/tcp.py", "records/header_facts.py", "schema/quirks.py", "tls/handshake.py", "tls/libcrypto.py",
    "tls/records.py", "wire/cursor.py", "wire/formats.py",
)  # fmt: skip
"""Other modules whose constants are compiled in, or whose arrays have the types that kernels are compiled for."""
FOLDER_VARIABLE: Final = "KCAP_KERNELS"
"""Environment variable that names the folder of the machine code."""
RESULTS: Final = 8
"""Number of words before the arguments of a call: for what the function returned, and in the last one for its exception."""
DIGEST: Final = 16
COMPLETE: Final = "complete"
"""Name of the file that marks an edition with all kernels in its folder."""


@cache
def edition() -> str:
    """A digest of all sources that are compiled in; of the archive if the package is in a zip file."""
    digest = blake2b(digest_size=DIGEST)
    archive = getattr(globals().get("__loader__"), "archive", None)
    paths = [Path(archive)] if archive else [path for one in (*KERNELS, *CONSTANTS) for path in sorted(ROOT.glob(one))]
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def version_file(package: str) -> bytes:
    """Returns a file that contains a package's version. importlib.metadata would take longer than loading all kernels."""
    found = find_spec(package)
    path = Path(found.origin if found and found.origin else "").with_name("_version.py")
    return blake2b(path.read_bytes(), digest_size=DIGEST).digest()


@cache
def compilers() -> str:
    """What machine code depends on besides its sources: the versions of the compilers, and the processor."""
    import llvmlite.binding as llvm

    versions = [f"{name} {version_file(name).hex()}" for name in ("numba", "llvmlite")]
    processor = [llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
    return " ".join((*versions, np.__version__, *processor, str(sys.implementation.cache_tag)))


@cache
def folder() -> Path:
    """The folder of this edition's machine code: in KCAP_KERNELS, `__pycache__` of the package, or the user's cache folder.

    Raises RuntimeError if there is no such folder to which this user can write and no other user but root.
    """
    named = os.environ.get(FOLDER_VARIABLE)
    home = cache_folder()
    above = next(filter(writable, [Path(named)] if named else [ROOT / "__pycache__", home]), None)
    if above is None:
        raise RuntimeError(f"compiled code cannot be kept: {named or home} cannot be written; {FOLDER_VARIABLE} names a folder")
    if not private(str(above), __file__):
        raise RuntimeError(f"compiled code is not kept in {above}: other users can write there")
    made = above / f"kernels-{blake2b((edition() + compilers()).encode(), digest_size=DIGEST).hexdigest()}"
    made.mkdir(mode=0o700, exist_ok=True)
    return made


def writable(place: Path) -> bool:
    """Whether a folder exists or can be created, and files can be created in it."""
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(place, os.W_OK | os.X_OK)


def private(place: str, source: str) -> bool:
    """Whether code in the folder `place` is as safe as its source: whoever can change the code can change the source too."""
    beside = Path(source).parent
    owner = beside.stat().st_uid
    return os.name == "nt" or not _shared(Path(place), owner) or _shared(beside, owner)


_shared = cache(shared)


@cache
def machine() -> Any:
    """The processor that code is compiled for, as llvmlite's TargetMachine."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    relocation = "static" if llvm.get_process_triple().startswith("x86") else "default"  # as numba does for its own code
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3, reloc=relocation, codemodel="jitdefault", jit=True
    )


def kept(path: Path) -> bytes | None:
    """Returns the contents of a machine code file, or None if it does not exist or is damaged."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    whole = blake2b(data[DIGEST:], digest_size=DIGEST).digest() == data[:DIGEST]
    return data[DIGEST:] if whole else None


def keep(path: Path, data: bytes) -> None:
    """Writes a machine code file. Raises OSError."""
    write_whole(path, blake2b(data, digest_size=DIGEST).digest() + data)
