"""The laws of the house: what a reader may rely on in every file, and what no linter knows."""

import ast
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Set
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kcap.weird import WeirdKind

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(p for folder in ("kcap", "spark_jobs") for p in (ROOT / folder).rglob("*.py"))
OWN = {"pcaps", "docs", "tests", "kcap", "spark_jobs", "benchmarks", ".ci"}
TEXT = {".py", ".md", ".toml", ".lock", ".json", ".jsonl", ".lark", ".tcss", ".txt", ".cfg", ".ini", ".sh", ".yml", ".yaml", ""}

WITHOUT_MIRROR = {
    f"kcap/limits/{name}.py": "numbers with reasons"
    for name in ("capture", "connections", "fast_path", "messages", "programs", "results", "tls")
}
BOUND = re.compile(r"_?(?:[A-Z0-9_]+_)?(?:MAX|MOST|LIMIT|KEPT|COST|ONCE)")
AMOUNT, AMOUNT_LEAST = re.compile(r"_?(?:[A-Z0-9_]+_)?(?:BYTES|ROWS|PACKETS)"), 128
"""Numbers of bytes are bounds from here on: fields of formats have fewer."""
NO_BOUNDS = {
    "kcap/capture/pcapng_blocks.py OFFSET_SECONDS_MAX": "the format's field",
    "kcap/capture/pcapng_blocks.py RESOLUTION_MAX": "the format's field",
    "kcap/capture/sections.py TIME_LIMIT": "64 bits",
    "kcap/export/packet_headers.py LINK_HEADER_MAX": "the layout of link headers",
    "kcap/export/packet_headers.py EXTENSIONS_MAX": "the layout of IPv6",
    "kcap/export/pseudonyms.py KEY_BYTES_MAX": "BLAKE2b's",
    "kcap/fastpath/handshakes.py MOST": "room that grows",
    "kcap/fastpath/large_kernels.py COUNTED_MAX": "a limit and a length prefix",
    "kcap/kafka/headers.py HEADER_BYTES_MAX": "16 bits",
    "kcap/kafka/proxy_header.py HEADER_MOST": "16 bits",
    "kcap/net/link.py LENGTH_MAX": "IEEE 802.3",
    "kcap/net/sack_kernels.py BLOCKS_MOST": "RFC 2018",
    "kcap/reports/findings/producing.py STICKY_BYTES": "a setting of clients",
    "kcap/runtime.py M_ARENA_MAX": "a parameter of mallopt",
    "kcap/schema/facts.py VERSION_MAX": "16 bits",
    "kcap/tls/records.py LENGTH_MAX": "RFC 8446",
    "kcap/tui/list_columns.py NEEDED_MOST": "cells of a column",
    "kcap/tui/rates.py MOST": "cells of a sparkline",
    "kcap/wire/cursor.py STRING_BYTES_MAX": "Kafka's own",
}
"""Numbers with the names of bounds that formats, or widths of a screen, decide."""
PRINTERS = ("kcap/cli/", "spark_jobs/", "kcap/schema/importer.py")
HEAVY = {"textual", "ibis", "duckdb", "pandas", "scapy", "pyspark", "numba", "rich.live"}


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    """The tree of a source."""
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def _trees() -> Iterator[None]:
    """Trees are objects by the million, which later tests do not need."""
    yield
    parsed.cache_clear()


def own_text_files() -> Iterator[Path]:
    """The project's own text files; what tools leave behind is not among them."""
    yield from (p for p in ROOT.iterdir() if p.is_file() and p.suffix in TEXT and p.name != ".git")
    for folder in OWN:
        yield from (p for p in (ROOT / folder).rglob("*") if p.is_file() and p.suffix in TEXT and "__pycache__" not in p.parts)


def imports_of(path: Path, modules: Set[str]) -> set[str]:
    """The modules among these that a file imports, for types and in functions too."""
    found = set[str]()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= below if below <= modules else {str(node.module), *below}
    return found & modules


def test_no_modules_import_each_other_in_a_circle() -> None:
    """The parts of a folder have an order, too: what cannot be read by itself is one module, or is cut at the wrong place."""
    names = {".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): p for p in SOURCES}
    reached = {name: imports_of(path, names.keys() - {name}) for name, path in names.items()}
    for middle in names:  # Warshall: what can be reached through each module in turn
        behind = reached[middle]
        for found in reached.values():
            if middle in found:
                found |= behind
    assert {name: {one for one in found if name in reached[one]} for name, found in reached.items() if name in found} == {}


def is_function(node: ast.AST) -> bool:
    """Whether it is a function or a method."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def test_every_module_has_its_mirror() -> None:
    """kcap/x/y.py is tested by tests/x/test_y.py, spark_jobs/y.py, unless it only starts a job of another module, by
    tests/spark_jobs/test_y.py; the list of exceptions only gets shorter.
    """
    modules = [p for p in SOURCES if relative(p).startswith(("kcap/", "spark_jobs/")) and not p.name.startswith("__")]
    places = {p: p.relative_to(ROOT / "kcap" if relative(p).startswith("kcap/") else ROOT) for p in modules}
    starting = {p for p in modules if p.parent.name == "spark_jobs" and not any(map(is_function, ast.walk(parsed(p))))}
    mirrors = {relative(p): ROOT / "tests" / places[p].with_name(f"test_{p.name}") for p in modules if p not in starting}
    missing = {module for module, mirror in mirrors.items() if not mirror.exists()}
    assert missing - WITHOUT_MIRROR.keys() == set()
    assert WITHOUT_MIRROR.keys() - missing == set(), "has its test, or is gone: take it off the list"


ARITHMETIC = ast.Tuple | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop | ast.Name | ast.Attribute | ast.expr_context


def numbers_of(path: Path) -> Iterator[tuple[str, float | None]]:
    """Names of a module whose values are written there as numbers, or calculated from others; the largest that is written."""
    for node in parsed(path).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            names = [one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
            parts = list(ast.walk(node.value))
            written = [one.value for one in parts if isinstance(one, ast.Constant)]
            if written and all(isinstance(one, ARITHMETIC | ast.Constant) for one in parts) and all(map(is_number, written)):
                calculated = any(isinstance(one, ast.Name) for one in parts)
                largest = None if calculated else max(numbers_in(eval(ast.unparse(node.value))))
                yield from ((name, largest) for name in names)


def numbers_in(value: Any) -> Iterator[float]:
    """The numbers of a number, or of tuples of them."""
    if isinstance(value, tuple):
        for one in value:
            yield from numbers_in(one)
    else:
        yield value


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_bound(name: str, value: float | None) -> bool:
    """Whether a number's name says that it bounds something."""
    return bool(BOUND.fullmatch(name) or (AMOUNT.fullmatch(name) and value is not None and value >= AMOUNT_LEAST))


def test_every_bound_is_among_the_limits() -> None:
    """What bounds work, memory or lengths is found in one place, with its reason."""
    elsewhere = {
        f"{relative(path)} {name}"
        for path in SOURCES
        if not relative(path).startswith("kcap/limits/")
        for name, value in numbers_of(path)
        if is_bound(name, value)
    }
    assert elsewhere - NO_BOUNDS.keys() == set()
    assert NO_BOUNDS.keys() - elsewhere == set(), "is gone: take it off the list"


def test_no_bound_has_two_values() -> None:
    """A later module of the limits would hide the bound of an earlier one."""
    every = [name for path in SOURCES if relative(path).startswith("kcap/limits/") for name, _ in numbers_of(path)]
    assert len(every) > 200
    assert len(every) == len(set(every))


def test_every_mirror_has_its_module() -> None:
    """A test file in a mirrored folder is named after what it tests."""
    folders = {p.parent.relative_to(ROOT / "kcap") for p in SOURCES if relative(p).startswith("kcap/")} - {Path()}
    tests = [p for folder in folders for p in (ROOT / "tests" / folder).glob("test_*.py")]
    modules = {p: ROOT / "kcap" / p.parent.relative_to(ROOT / "tests") / p.name.removeprefix("test_") for p in tests}
    assert [relative(p) for p, module in modules.items() if not module.exists()] == []


def test_modules_hold_one_idea() -> None:
    """No module is longer than 600 lines."""
    lengths = {relative(p): len(p.read_text(encoding="utf-8").splitlines()) for p in SOURCES}
    assert {name: n for name, n in lengths.items() if n > 600} == {}


def test_no_two_classes_have_one_name() -> None:
    """A name that is searched for leads to one place."""
    found: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(relative(path))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_modules_say_what_they_are_for() -> None:
    """Every module that holds code opens with a docstring."""
    trees = {relative(p): parsed(p) for p in SOURCES}
    assert [name for name, tree in trees.items() if tree.body and not ast.get_docstring(tree)] == []


def test_every_weird_is_seen_somewhere() -> None:
    """A kind of oddity that nothing reports is not in the list."""
    used = {
        node.attr
        for p in SOURCES
        if relative(p) != "kcap/weird.py"
        for node in ast.walk(parsed(p))
        if isinstance(node, ast.Attribute)
    }
    assert {kind.name for kind in WeirdKind} - used == set()


def test_only_the_front_ends_print() -> None:
    """The core has no output: neither print nor the standard streams."""
    talkers = set()
    for path in SOURCES:
        for node in ast.walk(parsed(path)):
            prints = isinstance(node, ast.Name) and node.id == "print"
            streams = isinstance(node, ast.Attribute) and node.attr in ("stdout", "stderr", "__stdout__", "__stderr__")
            if prints or (streams and isinstance(node.value, ast.Name) and node.value.id == "sys"):
                talkers.add(relative(path))
    assert {name for name in talkers if not name.startswith(PRINTERS)} == set()


def test_nothing_swallows_what_it_does_not_know() -> None:
    """No bare except, and no `except Exception` that goes on as if nothing had happened."""
    silent = []
    for path in SOURCES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ExceptHandler):
                broad = isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException")
                if node.type is None or (broad and isinstance(node.body[0], ast.Pass)):
                    silent.append(f"{relative(path)}:{node.lineno}")
    assert silent == []


def test_the_tree_knows_no_machine() -> None:
    """No home folders and no package-index addresses in any file: a checkout works wherever it is."""
    places = [r"/home/[a-z]", r"/Users/[A-Za-z]", r"/root\b/", r"[A-Z]:\\Users", r"(?<![\w.])/work/"]
    indexes = [r"--(extra-)?index-url", r"index-url\s*=", r"find-links", r"https?://[^\s)\"']*/simple\b"]
    pattern = re.compile("|".join(places + indexes))
    found = [
        f"{relative(path)}:{number}: {line.strip()[:80]}"
        for path in own_text_files()
        if path != Path(__file__).resolve()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_every_dependency_says_why_it_is_there() -> None:
    """Each requirement in pyproject.toml carries its reason; each lock line its hashes and no address."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    requirements = [line for line in project.splitlines() if re.match(r'\s+"[a-z][\w.\[\]-]*[<>=~!]', line)]
    assert len(requirements) > 20
    assert [line for line in requirements if "#" not in line] == []
    for name in ("requirements.lock", "requirements-run.lock"):
        lock = (ROOT / name).read_text(encoding="utf-8")
        assert "--hash=sha256:" in lock
        assert "://" not in lock


def test_the_small_lock_is_part_of_the_large_one() -> None:
    """Both commands of the README install the same versions."""
    full, small = (
        set(re.findall(r"^[a-z][\w.-]*==[^\s;]+", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))
        for name in ("requirements.lock", "requirements-run.lock")
    )
    assert small - full == set()


def test_every_capture_has_its_story(pcaps: Path) -> None:
    """A capture in pcaps/ stands in its README and in truths.json, with its packets counted."""
    spec = importlib.util.spec_from_file_location("trim", pcaps / "trim.py")
    assert spec is not None
    assert spec.loader is not None
    trim = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(trim)
    captures = json.loads((pcaps / "truths.json").read_text(encoding="utf-8"))["captures"]
    story = (pcaps / "README.md").read_text(encoding="utf-8")
    files = {name for entry in captures.values() for name in entry["files"]}
    assert files == {p.name for p in pcaps.iterdir() if ".pcap" in p.name}
    assert [name for name in captures if name not in story] == []
    for entry in captures.values():
        counts = [sum(link >= 0 for _, link, _ in trim.pieces((pcaps / name).read_bytes())) for name in entry["files"]]
        assert counts == entry["packets"], entry["files"]


def modules_after(*arguments: str) -> set[str]:
    """Top-level modules that a run of kcap has loaded when it ends."""
    program = (
        "import sys\n"
        "sys.argv = ['kcap', *sys.argv[1:]]\n"
        "from kcap.cli.main import main\n"
        "code = 0\n"
        "try:\n"
        "    code = main()\n"
        "except SystemExit as stop:\n"
        "    code = stop.code\n"
        "sys.stderr.write('\\n' + ' '.join(sorted(sys.modules)))\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("arguments", [["--help"], ["rows", "--help"], ["rows", "pcaps/node-platformatic.pcap"]], ids=" ".join)
def test_a_command_loads_only_what_it_uses(arguments: list[str]) -> None:
    """Help and the rows of a small file come without the terminal UI, the report engines, Spark or a compiler."""
    assert modules_after(*arguments) & HEAVY == set()


def test_the_readme_claims_what_exists() -> None:
    """Every command in the README's table is one that `kcap --help` lists."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    claimed = set(re.findall(r"^\| `kcap ([a-z]+)", readme, re.MULTILINE))
    shown = subprocess.run(
        [sys.executable, "-c", "from kcap.cli.main import main; main()", "--help"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    ).stdout  # fmt: skip
    assert claimed
    assert {command for command in claimed if not re.search(rf"^\s*{command}\b", shown, re.MULTILINE)} == set()


def test_the_layers_name_every_part() -> None:
    """A module or package of kcap that stands in no layer of the import contract would be held by nothing."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    layers = set(re.findall(r"\(kcap\.(\w+)\)", text))
    parts = {path.stem for path in (ROOT / "kcap").iterdir() if path.is_dir() or path.suffix == ".py"} - {
        "__init__",
        "__main__",
        "__pycache__",
    }
    assert parts - layers == set()


def test_no_class_of_the_terminal_ui_is_half_of_another() -> None:
    """A class that no code makes and only one class inherits from is a part of that class, which holds it instead; an interface
    is no class that code makes."""
    text = {path: path.read_text(encoding="utf-8") for path in SOURCES if "tui" in path.parts}
    nodes = [node for path in text for node in ast.walk(parsed(path))]
    kinds = {node.name: node.bases for node in nodes if isinstance(node, ast.ClassDef)}
    made = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    bases = [ast.unparse(base).partition("[")[0] for some in kinds.values() for base in some]
    made |= {name for name, some in kinds.items() if "Protocol" in map(ast.unparse, some)}
    halves = {name for name in kinds if bases.count(name) == 1 and name not in made}
    assert halves == {"KeyQueue"}, "which waits for keys in any app"
