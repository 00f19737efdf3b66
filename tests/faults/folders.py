"""Model folders that somebody has changed: with the manifest as it was, and with one that fits."""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from faults.harness import MODELS, Case, Chance, cut_short, kept, more_of, often, training, uses_of
from golden_data import own_copy

from unrolled.store.files import MANIFEST
from unrolled.store.manifest import manifest_bytes

NASTY: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 7, 255, 2**31, 2**63, 2**70, -(2**70)),
    *(0.5, -0.0, 1e308, -1e308, float("nan"), float("inf"), 1e-320),
    *("", "x", "\ud800", "\x00", "\x1b[2J", "<unk>", "</s>", "x" * 10_000, "é", "\u2028", "none"),
    *([], {}, [[]], [0] * 100, ["a", "a"], {"a": {}}, [None]),
]
TOML = [
    *("[]", "{}", '""', "0", "-1", "1e400", "nan", "inf", "9" * 5000, "0x" + "f" * 4000, "true"),
    *("[" * 3000, "{a=" * 500, '"' + "x" * 9000 + '"', "1979-05-27", "'''", "[[1]]", "16384", "32"),
    *("'lstm'", "'gru'", "'char'", "'bpe'", "'word'", "1", "5000000", "'none'", "'ngram'"),
]


def some_file(folder: Path, chance: Chance) -> Path:
    return chance.choice([path for path in sorted(folder.iterdir()) if path.name != MANIFEST])


def changed_bytes(data: bytes, chance: Chance) -> bytes:
    """Bits flipped, pieces cut out, put in twice, or all of it gone."""
    place = chance.randrange(len(data) + 1)
    end = min(len(data), place + chance.choice([1, 2, 8, 100]))
    junk = bytes(chance.choices(range(256), k=chance.choice([1, 4, 50])))
    return chance.choice(
        [
            data[:place]
            + bytes(b ^ 1 << chance.randrange(8) for b in data[place:end])
            + data[end:],
            data[:place],
            data[:place] + data[end:],
            data[:place] + data[place:end] * chance.choice([2, 500]) + data[end:],
            data[:place] + junk + data[end:],
            b"",
        ]
    )


def nodes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value within a value; of long lists the first few."""
    yield path
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in list(items)[:30]:
            yield from nodes(item, (*path, key))


def changed_json(data: bytes, chance: Chance) -> bytes:
    """One value within it replaced, left out, or said twice."""
    value = json.loads(data)
    *way, last = chance.choice([path for path in nodes(value) if path] or [("",)])
    inner = value
    for key in way:
        inner = inner[key]
    act = chance.random()
    if act < 0.15 and isinstance(inner, dict | list):
        inner.pop(last) if isinstance(inner, list) else inner.pop(last, None)
    elif act < 0.25 and isinstance(inner, list):
        inner.append(inner[last])
    elif act < 0.3:
        value = chance.choice(NASTY)
    elif act < 0.33:
        return b"[" * 100_000
    elif act < 0.36:
        return b"[" + b"[]," * 1_000_000 + b"[]]"
    elif isinstance(inner, dict | list):
        inner[last] = chance.choice(NASTY)
    return json.dumps(value).encode()


def changed_toml(data: bytes, chance: Chance) -> bytes:
    """A line with another value, left out, put in twice, or a strange one more."""
    lines = data.decode().splitlines()
    place = chance.randrange(len(lines))
    name, equals, _ = lines[place].partition(" = ")
    act = chance.random()
    if act < 0.6 and equals:
        lines[place] = f"{name} = {chance.choice(TOML)}"
    elif act < 0.7:
        del lines[place]
    elif act < 0.8:
        lines.insert(place, lines[place])
    elif act < 0.9:
        lines.insert(
            place, chance.choice(["a" + ".a" * 20_000 + "=1", "x.y.z = 1", "[model.cell]"])
        )
    else:
        lines.insert(place, f"{chance.choice(['x', 'seed', 'task'])} = {chance.choice(TOML)}")
    return "\n".join(lines).encode()


def changed_tensors(data: bytes, chance: Chance) -> bytes:
    """One number replaced, or the header changed."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    if chance.random() < 0.3:
        text = changed_json(json.dumps(header).encode(), chance)
        return len(text).to_bytes(8, "little") + text + data[8 + size :]
    name = chance.choice([name for name in header if name != "__metadata__"])
    begin, end = (offset + 8 + size for offset in header[name]["data_offsets"])
    if begin == end:
        return data
    width = 8 if "64" in header[name]["dtype"] else 4
    place = chance.randrange(begin, end, width)
    number = chance.choice(
        [
            b"\xff" * width,  # NaN, or −1
            b"\x00" * (width - 2) + (b"\xf0\x7f" if width == 8 else b"\x80\x7f"),  # infinity
            b"\xff" * (width - 1) + b"\x7e",  # huge
            b"\xff" * (width - 1) + b"\xfe",
            b"\xff" * (width - 1) + b"\x7f",  # NaN, or the largest whole number
            b"\x01" + b"\x00" * (width - 1),
            b"\x00" * width,
        ]
    )
    if chance.random() < 0.2:
        return data[:begin] + number * ((end - begin) // width) + data[end:]
    return data[:place] + number + data[place + width :]


CHANGES: dict[str, Callable[[bytes, Chance], bytes]] = {
    ".json": changed_json,
    ".toml": changed_toml,
    ".safetensors": changed_tensors,
}


def changed(path: Path, chance: Chance) -> bytes:
    """A file's bytes changed by its kind, as far as it is still of that kind."""
    data = path.read_bytes()
    change = CHANGES.get(path.suffix, changed_bytes)
    if chance.random() < 0.85:
        with contextlib.suppress(
            ValueError, LookupError, TypeError, AttributeError, RecursionError
        ):
            return change(data, chance)
    return changed_bytes(data, chance)


def fit_manifest(folder: Path) -> None:
    """A manifest that lists what is there now."""
    listed = json.loads((folder / MANIFEST).read_bytes())["files"]
    there = [name for name in listed if os.path.isfile(folder / name)]  # nor are endless names
    files = {name: (folder / name).read_bytes() for name in there}
    (folder / MANIFEST).write_bytes(manifest_bytes(folder, files))


def copied(work: Path, chance: Chance) -> tuple[Path, str]:
    name = chance.choice(list(MODELS))
    shutil.rmtree(work / "model", ignore_errors=True)
    return own_copy(kept(name), work / "model"), name


def _any_use(folder: Path, name: str, chance: Chance) -> Case:
    return chance.choice([*uses_of(folder, name), *more_of(folder, name)])


def damaged_folders(work: Path) -> Callable[[Chance], Iterator[Case]]:
    """The manifest is left alone: whatever is listed must be as it was."""

    def cases(chance: Chance) -> Iterator[Case]:
        folder, name = copied(work, chance)
        path = chance.choice([some_file(folder, chance), folder / MANIFEST])
        path.write_bytes(changed_bytes(path.read_bytes(), chance))
        yield _any_use(folder, name, chance)

    return cases


def fitted_folders(work: Path) -> Callable[[Chance], Iterator[Case]]:
    """The manifest is made anew: nothing in the folder may be believed."""

    def cases(chance: Chance) -> Iterator[Case]:
        folder, name = copied(work, chance)
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            path = some_file(folder, chance)
            path.write_bytes(changed(path, chance))
        fit_manifest(folder)
        size = sum(path.stat().st_size for path in folder.iterdir())
        case = _any_use(folder, name, chance)
        yield case._replace(about=f"{case.about} {name} {path.name}", size=size)

    return cases


def damaged_runs(work: Path) -> Callable[[Chance], Iterator[Case]]:
    """A run that was killed, its files changed, perhaps under manifests that fit, is resumed."""

    def cases(chance: Chance) -> Iterator[Case]:
        name = chance.choice(list(MODELS))
        shutil.rmtree(work / "run", ignore_errors=True)
        run = own_copy(cut_short(name), work / "run")
        for _ in range(chance.choice([1, 1, 2])):
            path = chance.choice([p for p in sorted(run.rglob("*")) if p.is_file()])
            path.write_bytes(changed(path, chance))
        if chance.random() < 0.8:
            for manifest in run.rglob(MANIFEST):
                with contextlib.suppress(ValueError, LookupError, TypeError, RecursionError):
                    fit_manifest(manifest.parent)
        given = [*training(name), *often(name), f"--out={run}", "--resume"]
        yield Case(given, f"resume {name} {path.parent.name}/{path.name}")

    return cases
