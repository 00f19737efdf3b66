"""The architecture, checked: who may import whom, what no file may use, and how fast a start is."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "unrolled"

MAY_IMPORT = {  # each module or folder of the package, and what it may lean on besides itself
    "errors": set(),
    "store": {"errors"},
    "config": {"errors"},
    "_kernels": set(),  # compiled
    "native": {"errors", "_kernels"},
    "text": {"errors", "config", "native"},
    "nn": {"errors", "config", "native"},
    "decode": {"errors"},
    "charts": {"errors", "store"},
    "ngrams": {"errors", "config", "store", "text", "nn", "native"},
    "evaluate": {"errors", "config", "store", "text", "decode", "charts"},
    "training": {"errors", "config", "store", "nn", "evaluate"},
}
MAY_IMPORT["tasks"] = {*MAY_IMPORT} - {"native", "_kernels"}
MAY_IMPORT["lab"] = {*MAY_IMPORT} - {"native", "_kernels"}
MAY_IMPORT["app"] = {*MAY_IMPORT} - {"_kernels"}
MAY_IMPORT["__main__"] = {"app"}  # python -m unrolled

# Within tasks: the record of a task, what rooms share, the rooms, and what asks for the list.
TASK, SHARED = "task", "shared"
LISTS = {"__init__", "folder", "card", "run"}  # modules of tasks that know every room

# A model is data, and nothing uses the network.
FORBIDDEN_MODULES = {
    *("pickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"),
    *("aiohttp", "ftplib", "http", "httpx", "httpx2", "huggingface_hub"),
    *("requests", "smtplib", "socket", "urllib", "urllib3"),
}
FORBIDDEN_CALLS = {"eval", "exec", "builtins.eval", "builtins.exec", "torch.save", "torch.load"}
FORBIDDEN_NAMES = {("torch", "save"), ("torch", "load"), ("builtins", "eval"), ("builtins", "exec")}

BRIDGES = {
    "nn/kernels.py",
    "nn/embed_kernels.py",
    "nn/tree_kernels.py",
    "nn/glove_kernels.py",
    "ngrams/kernels.py",
    "text/word_index.py",
}

MOST_LINES = 400


# ------------------------------------------------------------------ reading the source


def sources() -> list[Path]:
    """Every Python file of the package but the lazy names in its own __init__.py."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def dotted(node: ast.expr) -> str:
    """`a.b.c` for a chain of names, "" for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and dotted(node.value):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


def imported(tree: ast.Module) -> Iterator[str]:
    """The module of every import at any depth, also in functions; a relative one starts with a dot.

    `from unrolled import x` yields "unrolled": which part it names cannot be read off.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")
        elif isinstance(node, ast.Call) and dotted(node.func).endswith(
            ("import_module", "__import__")
        ):
            yield from (arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant))


def wrong_imports(part: str, tree: ast.Module) -> list[str]:
    """Imports of our own that `part` may not have."""
    allowed = MAY_IMPORT[part] | {part}
    return [
        name
        for name in imported(tree)
        if name.startswith(".")
        or name == "unrolled"
        or (name.startswith("unrolled.") and name.split(".")[1] not in allowed)
    ]


def wrong_in_tasks(inner: str, tree: ast.Module) -> list[str]:
    """Imports within tasks that a module or room may not have, `inner` being its name there.

    No room imports another, and none asks for the list.
    """
    if inner in LISTS:
        return []
    allowed = {inner, TASK} if inner in (TASK, SHARED) else {inner, TASK, SHARED}
    below = [name.split(".") for name in imported(tree) if name.startswith("unrolled.tasks")]
    return [".".join(parts) for parts in below if len(parts) < 3 or parts[2] not in allowed]


def wrong_uses(tree: ast.Module) -> list[str]:
    """Modules and calls that no file may use."""
    found = [name for name in imported(tree) if name.split(".")[0] in FORBIDDEN_MODULES]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and dotted(node.func) in FORBIDDEN_CALLS:
            found.append(dotted(node.func))
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            found += [f"{node.module}.{n}" for n in names if (node.module, n) in FORBIDDEN_NAMES]
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            found.append("allow_pickle")
    return found


def writes(tree: ast.Module) -> list[str]:
    """Calls that write a file, make room for one or give it its name."""
    names = {"write_text", "write_bytes", "mkstemp", "NamedTemporaryFile", "symlink_to"}
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = dotted(node.func)
        last = node.func.attr if isinstance(node.func, ast.Attribute) else name
        modes = [arg.value for arg in node.args[:2] if isinstance(arg, ast.Constant)]
        modes += [k.value.value for k in node.keywords if isinstance(k.value, ast.Constant)]
        opened = last == "open" and any(set(str(mode)) & set("wax+") for mode in modes)
        if last in names or name in ("os.replace", "os.rename") or opened:
            found.append(last)
    return found


# ------------------------------------------------------------------ the checker itself


@pytest.mark.parametrize(
    "source",
    [
        "from unrolled.text.tokens import Vocabulary",
        "import unrolled.text.tokens",
        "import unrolled.text as t",
        "from unrolled import text",
        "import unrolled",
        "from ..text import tokens",
        "from . import cells",
        "def f():\n    from unrolled.text.tokens import Vocabulary",
        "if True:\n    import unrolled.tasks",
        "importlib.import_module('unrolled.text')",
        "import unrolled.app.cli",
    ],
)
def test_a_forbidden_import_is_seen_in_every_form(source):
    assert len(wrong_imports("nn", ast.parse(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "from unrolled.errors import ConfigError",
        "from unrolled.nn.cells import GRUCell",
        "import torch",
        "from torch import nn",
        "import_module('json')",
    ],
)
def test_an_allowed_import_passes(source):
    assert not wrong_imports("nn", ast.parse(source))


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from urllib.request import urlopen",
        "import http.server",
        "def f():\n    import socket",
        "torch.save(x, path)",
        "torch.load(path, weights_only=True)",
        "from torch import load",
        "eval('1')",
        "exec(code)",
        "np.load(path, allow_pickle=True)",
    ],
)
def test_a_forbidden_use_is_seen(source):
    assert len(wrong_uses(ast.parse(source))) == 1


def test_evaluation_mode_and_safetensors_pass():
    assert not wrong_uses(ast.parse("model.eval()\nsafetensors.torch.load(data)\nre.compile('x')"))


# ------------------------------------------------------------------ the package


def test_every_part_has_its_place_in_the_table():
    assert {part_of(path) for path in sources()} <= {*MAY_IMPORT}


def test_nothing_may_import_app_but_the_module_that_starts_it():
    assert [part for part, allowed in MAY_IMPORT.items() if "app" in allowed] == ["__main__"]


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_imports_follow_the_architecture(part):
    for path in filter(lambda path: part_of(path) == part, sources()):
        wrong = wrong_imports(part, parsed(path))
        assert not wrong, f"{path.relative_to(PACKAGE)} may not import {wrong}"


def test_no_room_imports_another_or_asks_for_the_list():
    for path in filter(lambda path: part_of(path) == "tasks", sources()):
        inner = path.relative_to(PACKAGE / "tasks").parts[0].removesuffix(".py")
        wrong = wrong_in_tasks(inner, parsed(path))
        assert not wrong, f"{path.relative_to(PACKAGE)} may not import {wrong}"


@pytest.mark.parametrize(
    ("inner", "source", "count"),
    [
        ("tag", "from unrolled.tasks.translate.data import Pairs", 1),
        ("tag", "from unrolled.tasks import TASKS", 1),
        ("tag", "def f():\n    from unrolled.tasks.folder import load", 1),
        ("shared", "from unrolled.tasks.tag.model import TagModel", 1),
        ("tag", "from unrolled.tasks.shared.stack import recurrent_stack", 0),
        ("tag", "from unrolled.tasks.task import Use", 0),
        ("run", "from unrolled.tasks import TASKS", 0),
    ],
)
def test_the_rule_of_rooms_sees_what_it_should(inner, source, count):
    assert len(wrong_in_tasks(inner, ast.parse(source))) == count


def test_a_model_is_loaded_without_training():
    """No room's model, nor what it stands on, imports what training needs."""
    code = "import sys, unrolled.tasks.folder, unrolled.tasks as t\n"
    code += "models = [task.model() for task in t.TASKS.values()]\n"
    code += "print([m for m in sys.modules if m.startswith('unrolled.training')])"
    assert printed(code) == ["[]"]


def users(module: str) -> set[str]:
    return {
        str(path.relative_to(PACKAGE)) for path in sources() if module in imported(parsed(path))
    }


def test_one_file_names_the_compiled_module_and_one_a_part_uses_it():
    assert users("unrolled._kernels") == {"native.py"}
    shows_what_was_chosen = {"app/commands/info.py"}
    assert users("unrolled.native") == BRIDGES | shows_what_was_chosen


def test_charts_know_no_tensors():
    for path in filter(lambda path: part_of(path) == "charts", sources()):
        assert not [name for name in imported(parsed(path)) if name.split(".")[0] == "torch"]


def test_no_file_uses_pickle_or_the_network():
    for path in PACKAGE.rglob("*.py"):
        wrong = wrong_uses(parsed(path))
        assert not wrong, f"{path.relative_to(PACKAGE)} may not use {wrong}"


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("path.write_text('a')", 1),
        ("open(path, 'w')", 1),
        ("path.open('ab')", 1),
        ("open(path, mode='r+b')", 1),
        ("os.replace(a, b)", 1),
        ("open(path, 'rb')", 0),
        ("open(path)", 0),
        ("text.replace('a', 'b')", 0),
    ],
)
def test_a_write_is_seen(source, count):
    assert len(writes(ast.parse(source))) == count


def test_files_are_written_in_one_place():
    """Under a random name, flushed, renamed: what is not written so can be torn or led astray."""
    for path in filter(lambda path: part_of(path) != "store", sources()):
        assert not writes(parsed(path)), f"{path.relative_to(PACKAGE)} must use write_file"


def test_no_file_is_too_long():
    lengths = {
        str(path.relative_to(PACKAGE)): len(path.read_text(encoding="utf-8").splitlines())
        for path in PACKAGE.rglob("*.py")
    }
    long = {name: lines for name, lines in lengths.items() if lines > MOST_LINES}
    assert not long, f"over {MOST_LINES} lines: {long}"


# ------------------------------------------------------------------ the start

# Processor time: the clock on the wall would also count what else the machine does.
IMPORT = """
import sys, time
start = time.process_time()
import unrolled
print(time.process_time() - start)
assert "torch" not in sys.modules, "import unrolled imports torch"
"""
HELP = """
import sys, time
from unrolled.app.cli import main
sys.argv = ["unrolled", "--help"]
assert main() == 0
print(time.process_time())
heavy = {"numpy", "torch"} & {*sys.modules}
assert not heavy, f"unrolled --help imports {heavy}"
"""


def printed(code: str) -> list[str]:
    env = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_importing_the_package_is_fast_and_leaves_torch_alone():
    assert min(float(printed(IMPORT)[-1]) for _ in range(3)) < 0.1


def test_help_is_fast_and_leaves_torch_alone():
    assert "Usage" in "\n".join(printed(HELP))
    assert any(float(printed(HELP)[-1]) < 0.5 for _ in range(10))  # the least of some, on any load
