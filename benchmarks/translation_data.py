"""Turn published corpora into pairs, source<TAB>target, for `unrolled train translate`.

    python benchmarks/translation_data.py DATA OUT

DATA holds scan/ (Lake & Baroni 2018) and tatoeba_eng_fra/ as they are published. OUT gets
scan-{simple,length,jump}-{train,test}.tsv and tatoeba-{train,dev,test}.tsv. Tatoeba is parted by
its English sentences, so that none of one part is in another however it was translated: two in a
hundred to dev and two to test, chosen by a hash of the sentence.
"""

import argparse
import hashlib
from collections.abc import Iterable
from pathlib import Path

from unrolled.text.corpus import read_lines

SCAN = {"simple": "simple", "length": "length", "jump": "addprim_jump"}


def write(path: Path, pairs: Iterable[tuple[str, str]]) -> None:
    lines = [f"{source}\t{target}\n" for source, target in pairs]
    path.write_text("".join(lines), encoding="utf-8")
    print(f"{path}: {len(lines):,} pairs")


def prepare_scan(data: Path, out: Path) -> None:
    """`IN: jump twice OUT: I_JUMP I_JUMP` to a pair."""
    for name, part in SCAN.items():
        for split in ("train", "test"):
            lines = read_lines(data / "scan" / f"tasks_{split}_{part}.txt.gz")
            pairs = (line.removeprefix("IN: ").split(" OUT: ", 1) for line in lines if line)
            write(out / f"scan-{name}-{split}.tsv", ((a, b) for a, b in pairs))


def part_of(sentence: str) -> str:
    """Where a sentence belongs."""
    share = hashlib.sha256(sentence.encode()).digest()[0] * 100 // 256
    return "dev" if share < 2 else "test" if share < 4 else "train"


def prepare_tatoeba(data: Path, out: Path) -> None:
    """English to French."""
    lines = list(read_lines(data / "tatoeba_eng_fra" / "fra.txt.xz"))
    pairs = [(line.split("\t")[0], line.split("\t")[1]) for line in lines if line]
    for part in ("train", "dev", "test"):
        write(out / f"tatoeba-{part}.tsv", (pair for pair in pairs if part_of(pair[0]) == part))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    prepare_scan(options.data, options.out)
    prepare_tatoeba(options.data, options.out)


if __name__ == "__main__":
    main()
