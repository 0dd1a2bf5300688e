"""The wheel and the sdist hold the one import tree and nothing else, and what is installed from them runs."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.dlog.command import ROOT, closure

pytestmark = pytest.mark.slow

SOURCES = ("dlog", "grammar", "engine")


def sources() -> set[str]:
    """Every source file as it must be named in the wheel."""
    names = set()
    for folder in SOURCES:
        for path in (ROOT / folder).rglob("*"):
            relative = path.relative_to(ROOT)
            # Some versions of Python follow the two links in dlog/.
            through_link = folder == "dlog" and relative.parts[1] in SOURCES
            if path.is_file() and "__pycache__" not in relative.parts and not through_link:
                names.add(str(relative) if folder == "dlog" else f"dlog/{relative}")
    library = ROOT / "programs" / "graph"
    return names | {f"dlog/graphs/programs/{path.relative_to(library)}" for path in library.rglob("*") if path.is_file()}


def python(*words: str, cwd: Path) -> str:
    """Standard output of this interpreter, which must succeed without a word on standard error."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.run([sys.executable, *words], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "")
    return process.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True, capture_output=True)
    return folder


def only(folder: Path, pattern: str) -> Path:
    [path] = folder.glob(pattern)
    return path


def test_the_wheel_holds_each_source_file_once_and_no_machine_code(built: Path) -> None:
    names = zipfile.ZipFile(only(built, "*.whl")).namelist()
    assert len(names) == len(set(names))
    code = {name for name in names if ".dist-info/" not in name}
    assert code == sources()
    assert {"dlog/grammar/datalog.lark", "dlog/py.typed"} <= code
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_the_sdist_holds_tests_programs_and_no_links_twice(built: Path) -> None:
    with tarfile.open(only(built, "*.tar.gz")) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    sources = {"grammar/parser.py", "engine/compiler.py", "dlog/command/cli.py"}
    assert {"pyproject.toml", "LICENSE", "README.md", *sources} <= set(names)
    assert any(name.startswith("tests/") for name in names)
    assert any(name.startswith("programs/") for name in names)
    unwanted = (".nbi", ".nbc", ".pyc")
    assert not [name for name in names if name.startswith(("dlog/grammar/", "dlog/engine/")) or name.endswith(unwanted)]


@pytest.mark.parametrize("way", ["wheel", "editable"])
def test_what_is_installed_runs(way: str, built: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    source = [str(only(built, "*.whl"))] if way == "wheel" else ["--editable", str(ROOT)]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site)]
    subprocess.run([*pip, *source], check=True, capture_output=True)
    closure(tmp_path)
    # A module of the user's called like a folder of ours is none of our business.
    (tmp_path / "engine.py").write_text("raise AssertionError")
    # Before what this environment has installed, which may be the checkout itself.
    start = f"import site, sys; sys.path.insert(0, {str(site)!r}); site.addsitedir({str(site)!r})"
    program = f"{start}\nimport dlog; print(dlog.__file__)\nfrom dlog.__main__ import main; main()"
    printed = python("-c", program, "run", "closure.dl", "-F", "facts", "-D", "out", cwd=tmp_path)
    expected = site / "dlog" / "__init__.py" if way == "wheel" else ROOT / "dlog" / "__init__.py"
    assert printed.strip() == str(expected)
    assert len((tmp_path / "out" / "path.csv").read_text().splitlines()) == 3
    graph = f"{start}\nimport dlog; print(*dlog.graph([(1, 2), (2, 3)]).bfs(1), len(dlog.graph([(1, 2)]).find('(a)-[]->(b)')))"
    assert python("-c", graph, cwd=tmp_path) == "(1, 0) (2, 1) (3, 2) 1\n"


def test_a_checkout_without_its_links_runs(tmp_path: Path) -> None:
    closure(tmp_path)
    ignore = ["--exclude-vcs", "--exclude=__pycache__", "--exclude=dlog/grammar", "--exclude=dlog/engine"]
    archive = subprocess.run(["tar", "-C", str(ROOT), *ignore, "-cf", "-", *SOURCES], check=True, capture_output=True).stdout
    (tmp_path / "checkout").mkdir()
    subprocess.run(["tar", "-C", str(tmp_path / "checkout"), "-xf", "-"], check=True, input=archive)
    assert not (tmp_path / "checkout" / "dlog" / "engine").exists()
    python("-m", "dlog", "run", "../closure.dl", "-F", "../facts", "-D", "../out", cwd=tmp_path / "checkout")
    assert len((tmp_path / "out" / "path.csv").read_text().splitlines()) == 3
