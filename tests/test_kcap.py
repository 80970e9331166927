"""Laws of the package: public names exist and are documented, nothing is loaded before it is used, errors have exit codes."""

import ast
import doctest
import inspect
import pydoc
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import kcap
from kcap import errors
from kcap.cli import main as command_line

ROOT = Path(__file__).resolve().parent.parent
ERRORS = {name: value for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)}


@pytest.mark.parametrize("name", kcap.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(kcap, name) is not None


@pytest.mark.parametrize("name", [name for name in kcap.__all__ if name != "__version__"])
def test_every_public_name_has_a_docstring(name: str) -> None:
    assert inspect.getdoc(getattr(kcap, name))


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        kcap.opne  # type: ignore[attr-defined]


def test_importing_kcap_loads_nothing() -> None:
    program = (
        "import sys, kcap; dir(kcap);"
        "print(*(name for name in sys.modules if name.startswith('kcap') or name in ('numpy', 'pyarrow')))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["kcap"]


def test_dir_is_the_public_api() -> None:
    """Also after submodules were imported, which Python adds to the module."""
    assert "cli" in vars(kcap)
    assert dir(kcap) == sorted(kcap.__all__)


def test_type_checkers_see_what_is_there_at_run_time() -> None:
    """The imports under TYPE_CHECKING, which type checkers and the API reference read, equal the table that imports follow."""
    tree = ast.parse(Path(kcap.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: (node.module, alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == kcap._WHERE
    assert set(kcap.__all__) == {*kcap._WHERE, "__version__"}


def test_help_is_a_first_page() -> None:
    """`help(kcap)` names and shows every public name."""
    assert kcap.__doc__ is not None
    page = pydoc.plain(pydoc.render_doc(kcap))
    shown = page.partition("PACKAGE CONTENTS")[2]
    names = [name for name in kcap.__all__ if name != "__version__"]
    assert [name for name in names if f"`{name}`" not in kcap.__doc__] == []
    assert [name for name in names if name not in shown] == []
    assert kcap.__version__ in shown


def test_the_tour_in_the_docstring_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    examples = doctest.DocTestFinder(recurse=False).find(kcap, "kcap", module=False)
    done = [doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(each) for each in examples]
    assert sum(each.attempted for each in done) >= 8
    assert sum(each.failed for each in done) == 0


def test_every_error_is_public() -> None:
    assert {name: getattr(kcap, name) for name in ERRORS} == ERRORS


@pytest.mark.parametrize("name", sorted({*ERRORS, "FilterError"} - {"KcapError"}))
def test_an_error_ends_the_command_line_with_its_exit_code(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The code is that of the class, what the docstring says, and what the README's table has."""
    kind = getattr(kcap, name)
    error = kind("port = 1", 5, 6, "the reason") if name == "FilterError" else kind("the reason")

    def fails(_context: object) -> None:
        raise error

    monkeypatch.setattr(command_line.kcap, "invoke", fails)
    assert command_line.main(["rows", "a.pcap"]) == kind.exit_code
    assert capsys.readouterr().err.startswith("kcap: the reason")
    assert f"| {kind.exit_code} |" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"Exit code {kind.exit_code}." in next(base.__doc__ or "" for base in kind.__mro__ if base.__name__ in ERRORS)


def test_exit_codes_tell_errors_apart() -> None:
    """One code for each class, none of them the 0 of success or the 1 of a --fail-on condition that is met."""
    codes = [kind.exit_code for kind in ERRORS.values() if kind is not kcap.KcapError]
    assert sorted(codes) == [2, 3, 4, 5]
    assert kcap.FilterError.exit_code == kcap.UsageError.exit_code


def test_only_subclasses_of_the_base_error_are_raised() -> None:
    """`KcapError` itself has the code of --fail-on, so that nothing may raise it."""
    raised = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("kcap", "spark_jobs")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
        and (node.func.id if isinstance(node.func, ast.Name) else node.func.attr) == "KcapError"
    ]  # fmt: skip
    assert raised == []


def test_both_places_name_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == kcap.__version__
