"""The architecture as tests: who may import what, what no file may contain, what every game must come with.

Each check is a function from a source text to a list of violations, so that a test can also plant a fault and
see it found.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("envs", "models", "train", "scripts")  # each may import those to its left
PRODUCT = sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))
SCRIPTS = [path for path in sorted((ROOT / "scripts").glob("*.py")) if "__main__" in path.read_text()]

RAY_HOMES = frozenset({"train/workers.py", "train/match_workers.py"})
COMMAND_LINE = frozenset({"argparse", "click", "docopt", "getopt", "optparse", "typer"})
TEST_ONLY = frozenset({"chess", "hypothesis", "pyffish", "pytest"})
UNSAFE_MODULES = frozenset({"cloudpickle", "cPickle", "dill", "joblib", "marshal", "pickle", "shelve"})
UNSAFE_CALLS = frozenset(
    f"{module}.{name}"
    for module, names in {
        "torch": ("load", "save"),
        "yaml": ("load", "load_all", "full_load", "unsafe_load", "unsafe_load_all"),
        "np": ("load_pickle",),
    }.items()
    for name in names
)
NOT_IN_ENVS = frozenset({"ray", "torch", "onnx", "onnxruntime", "tensorboard"})
NOT_IN_MODELS = frozenset({"ray", "tensorboard"})

MAX_FILE_LINES = 400
MAX_KERNEL_FILE_LINES = 900
MAX_FUNCTION_LINES = 40
LEFTOVER = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME)\b")

# Where the import name is not the name of the distribution.
DISTRIBUTIONS = {"yaml": "pyyaml", "pyspiel": "open-spiel", "pydantic_core": "pydantic"}


@dataclass(frozen=True)
class Source:
    """One Python file: its path relative to the root, its text and its syntax tree."""

    path: str
    text: str

    @property
    def layer(self) -> str:
        return self.path.split("/", 1)[0]

    @property
    def is_kernel_file(self) -> bool:
        return "kernels" in Path(self.path).name

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=self.path)


def read(path: Path) -> Source:
    return Source(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))


def dotted(node: ast.AST) -> str:
    """The dotted name that a chain of attributes spells, or an empty string."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def imports(source: Source) -> Iterator[tuple[str, int]]:
    """Every absolute import in a file, nested and dynamic ones too, as (first part of the name, line)."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0] if node.level == 0 else source.layer, node.lineno
        elif isinstance(node, ast.Call) and dotted(node.func) in {"__import__", "importlib.import_module"}:
            name = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else "?"
            yield str(name).split(".")[0], node.lineno


def forbidden_imports(source: Source) -> list[str]:
    """Imports against the direction of the layers, and libraries outside the place that owns them."""
    above = LAYERS[LAYERS.index(source.layer) + 1 :]
    forbidden = {*above, "tests", *TEST_ONLY, *UNSAFE_MODULES}
    if source.path not in RAY_HOMES:
        forbidden.add("ray")
    if source.layer != "scripts":
        forbidden |= {*COMMAND_LINE, "pyspiel"}
    forbidden |= {"envs": NOT_IN_ENVS, "models": NOT_IN_MODELS}.get(source.layer, frozenset())
    return [f"{source.path}:{line}: imports {name}" for name, line in imports(source) if name in forbidden]


def unsafe_loading(source: Source) -> list[str]:
    """Calls that run code from a file, and command lines read outside scripts/."""
    found = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and dotted(node.func) in UNSAFE_CALLS:
            found.append(f"{source.path}:{node.lineno}: calls {dotted(node.func)}")
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle" and not is_false(node.value):
            found.append(f"{source.path}:{node.value.lineno}: allow_pickle may only be False")
        if source.layer != "scripts" and isinstance(node, ast.Attribute) and dotted(node) == "sys.argv":
            found.append(f"{source.path}:{node.lineno}: reads sys.argv")
    return found


def is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def global_seeding(source: Source) -> list[str]:
    """Randomness that is not an explicit generator."""
    calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
    seeds = {"random.seed", "np.random.seed", "numpy.random.seed"}
    return [f"{source.path}:{call.lineno}: seeds globally" for call in calls if dotted(call.func) in seeds]


def oversized(source: Source) -> list[str]:
    """Files and function bodies over the limits; kernels may be longer where splitting costs speed."""
    limit = MAX_KERNEL_FILE_LINES if source.is_kernel_file else MAX_FILE_LINES
    lines = source.text.count("\n")
    found = [f"{source.path}: {lines} lines, at most {limit}"] if lines > limit else []
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or is_kernel(node, source):
            continue
        first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
        length = (node.end_lineno or first.lineno) - first.lineno + 1
        if length > MAX_FUNCTION_LINES:
            found.append(f"{source.path}:{node.lineno}: {node.name}: {length} lines > {MAX_FUNCTION_LINES}")
    return found


def is_kernel(function: ast.FunctionDef | ast.AsyncFunctionDef, source: Source) -> bool:
    names = (dotted(part.func if isinstance(part, ast.Call) else part) for part in function.decorator_list)
    return source.is_kernel_file or any("jit" in name or "kernel" in name for name in names)


Check = Callable[[Source], list[str]]
CHECKS: tuple[Check, ...] = (forbidden_imports, unsafe_loading, global_seeding, oversized)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_no_product_file_crosses_a_boundary(check: Check) -> None:
    violations = [violation for path in PRODUCT for violation in check(read(path))]
    assert not violations, "\n".join(violations)


PLANTED = [
    (forbidden_imports, "envs/a.py", "import torch.nn"),
    (forbidden_imports, "envs/a.py", "from models.network import X"),
    (forbidden_imports, "envs/a.py", "def f():\n    from train import loop"),
    (forbidden_imports, "envs/a.py", "import importlib\nimportlib.import_module('ray.util')"),
    (forbidden_imports, "models/a.py", "import train"),
    (forbidden_imports, "train/loop.py", "import ray"),
    (forbidden_imports, "scripts/a.py", "import ray"),
    (forbidden_imports, "train/loop.py", "import typer"),
    (forbidden_imports, "train/loop.py", "from scripts import train"),
    (forbidden_imports, "train/loop.py", "import chess.pgn"),
    (forbidden_imports, "scripts/a.py", "import pyffish"),
    (forbidden_imports, "models/a.py", "import pickle"),
    (unsafe_loading, "models/a.py", "torch.load(path)"),
    (unsafe_loading, "train/a.py", "yaml.load(text, Loader=yaml.Loader)"),
    (unsafe_loading, "train/a.py", "np.load(path, allow_pickle=True)"),
    (unsafe_loading, "train/a.py", "sys.argv[1]"),
    (global_seeding, "train/a.py", "np.random.seed(1)"),
    (oversized, "train/a.py", "x = 1\n" * 401),
    (oversized, "envs/kernels.py", "x = 1\n" * 901),
    (oversized, "train/a.py", "def f():\n" + "    x = 1\n" * 41),
]
ALLOWED = [
    (forbidden_imports, "train/workers.py", "import ray\nfrom envs import Position\nimport models.network"),
    (forbidden_imports, "train/match_workers.py", "from ray import exceptions"),
    (forbidden_imports, "scripts/a.py", "import typer\nfrom train.loop import run"),
    (forbidden_imports, "envs/a.py", "from . import tables\nimport numba"),
    (unsafe_loading, "train/a.py", "yaml.safe_load(text)\nnp.load(path, allow_pickle=False)"),
    (global_seeding, "train/a.py", "np.random.default_rng(1)"),
    (oversized, "envs/kernels.py", "def f():\n" + "    x = 1\n" * 600),
    (oversized, "train/a.py", "@njit(cache=True)\ndef f():\n" + "    x = 1\n" * 100),
]


@pytest.mark.parametrize("check, path, text", PLANTED)
def test_each_check_finds_a_planted_fault(check: Check, path: str, text: str) -> None:
    assert check(Source(path, text))


@pytest.mark.parametrize("check, path, text", ALLOWED)
def test_each_check_lets_honest_code_pass(check: Check, path: str, text: str) -> None:
    assert not check(Source(path, text))


def written_files() -> Iterator[Path]:
    for folder in (*LAYERS, "tests", "docs", "configs"):
        for suffix in ("*.py", "*.md", "*.yaml"):
            yield from (ROOT / folder).rglob(suffix)
    yield from (ROOT / name for name in ("README.md", "CHANGELOG.md", "pyproject.toml", "Makefile"))


def test_nothing_is_left_to_be_done_later_in_a_comment() -> None:
    leftovers = [path.name for path in written_files() if LEFTOVER.search(path.read_text(encoding="utf-8"))]
    assert not leftovers
    assert LEFTOVER.search("# TO" + "DO: later")


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def distribution(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9_.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def declared(*extras: str) -> set[str]:
    table = project()["project"]
    assert isinstance(table, dict)
    requirements = [*table["dependencies"]]
    for extra in extras:
        requirements += table["optional-dependencies"][extra]
    return {distribution(requirement) for requirement in requirements}


def test_every_third_party_import_is_a_declared_dependency() -> None:
    known = sys.stdlib_module_names | set(LAYERS)
    undeclared = [
        f"{path.name}:{line}: {name}"
        for path in PRODUCT
        for name, line in imports(read(path))
        if name not in known and distribution(DISTRIBUTIONS.get(name, name)) not in declared("bench", "gym")
    ]
    assert not undeclared


def test_every_declared_dependency_has_an_exact_pin_that_names_no_local_build() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9.]+", pin) for pin in pins)
    assert declared("test", "dev", "bench", "gym") <= {distribution(pin) for pin in pins}


def test_every_package_folder_is_listed_in_pyproject() -> None:
    tool = project()["tool"]
    assert isinstance(tool, dict)
    folders = {path.parent.relative_to(ROOT) for path in PRODUCT if not path.is_relative_to(ROOT / "scripts")}
    assert {".".join(folder.parts) for folder in folders} == set(tool["setuptools"]["packages"])


def readme_examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("example", readme_examples())
def test_an_example_in_the_readme_runs_as_written(example: str) -> None:
    exec(compile(example, "README.md", "exec"), {"__name__": "readme"})


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_puts_the_root_in_place_of_its_own_folder(script: Path) -> None:
    # Else `import train` finds scripts/train.py, here and in Ray's workers, which inherit a script's folder.
    if not any(name in LAYERS for name, _ in imports(read(script))):
        pytest.skip("imports no layer")
    statement = "sys.path[0] = str(Path(__file__).resolve().parents[1])"
    text = script.read_text(encoding="utf-8")
    assert statement in text
    first = min(node.lineno for node in ast.parse(text).body if is_layer_import(node))
    assert text[: text.index(statement)].count("\n") + 1 < first


def is_layer_import(node: ast.stmt) -> bool:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    return any(name.split(".")[0] in LAYERS for name in names)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_explains_itself_from_any_folder(script: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(script), "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout


def test_every_built_in_game_has_perft_counts_and_every_main_game_a_preset() -> None:
    from envs import list_variants
    from envs.reference import MAIN_GAMES

    names = list_variants()
    assert set(MAIN_GAMES) <= set(names)
    for name in names:
        assert (ROOT / "tests" / "perft" / f"{name}.perft").is_file(), f"tests/perft/{name}.perft is missing"
    for name in MAIN_GAMES:
        preset = ROOT / "configs" / f"{name}.yaml"
        assert preset.is_file(), f"configs/{name}.yaml is missing"
        assert yaml.safe_load(preset.read_text(encoding="utf-8"))["variant"] == name
