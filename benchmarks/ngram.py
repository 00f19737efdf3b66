"""N-gram models: from text to a model that answers, and how fast it scores text.

    python benchmarks/ngram.py [DATA] [--threads 1] [--memory 2GB] [--nltk]

DATA holds the corpora as they are published: ptb/ and wikipedia_excerpt/. What is not there is
left out with a line. Each model is trained in a process of its own. Seconds go from the text file
to the loaded folder, imports left out. Memory is the process's peak and, in brackets, the peak of
what is no file's: that alone cannot be given back to the system at any time. kenlm is compared with
where it is installed, in the same process, best of many rounds; so is nltk, once, since it takes
minutes (--nltk: it alone).
"""

import argparse
import importlib.util
import json
import lzma
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

WORDS = 1_700_000  # of the text that a trigram model should take seconds for
NLTK_TOKENS = 25
ROUNDS = 50
SIZES = {"ptb": (3, 5), "1.7M words": (3,), "wikipedia": (3, 5)}


# ------------------------------------------------------------------ texts


def texts(data: Path | None, folder: Path) -> dict[str, dict[str, Path]]:
    """The corpora that are there: for each, its train and perhaps its test text."""
    found = {}
    if data and (data / "ptb").is_dir():
        found["ptb"] = penn(data)
    packed = data / "wikipedia_excerpt" / "enwiki_2013_excerpt.txt.xz" if data else None
    if packed and packed.exists():
        found["wikipedia"] = {"train": folder / "wikipedia.txt"}
        write(found["wikipedia"]["train"], articles(packed))
    found["1.7M words"] = {"train": folder / "words.txt"}
    source = found.get("wikipedia", {}).get("train")
    write(found["1.7M words"]["train"], first_words(source) if source else made_lines())
    for name in SIZES:
        if name not in found:
            print(f"{name}: left out, DATA does not hold it")
    return {name: found[name] for name in SIZES if name in found}


def penn(data: Path) -> dict[str, Path]:
    return {"train": data / "ptb" / "ptb.train.txt.gz", "test": data / "ptb" / "ptb.test.txt"}


def articles(packed: Path) -> Iterator[str]:
    """The lines of the excerpt but the marks around each article."""
    with lzma.open(packed, "rt", encoding="utf-8", newline="\n") as file:
        yield from (line for line in file if not line.startswith(("<doc ", "</doc>")))


def first_words(path: Path) -> Iterator[str]:
    """Lines of a text until there are enough words."""
    left = WORDS
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            words = line.split()[:left]
            left -= len(words)
            yield " ".join(words) + "\n"
            if not left:
                return


def made_lines() -> Iterator[str]:
    """Words whose frequencies fall as in natural text (Zipf), by chance alone."""
    chance = random.Random(1)
    words = [f"w{i}" for i in range(50_000)]
    sums = [math.log(i + 1.5) for i in range(len(words))]
    for _ in range(WORDS // 20):
        yield " ".join(chance.choices(words, cum_weights=sums, k=20)) + "\n"


def write(path: Path, lines: Iterator[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)


# ------------------------------------------------------------------ training


def train_one(paths: dict[str, str], order: int, out: str, options: dict[str, object]) -> None:
    """Train in this process and print what it took, as JSON."""
    import torch

    from unrolled.tasks.run import train

    torch.set_num_threads(int(str(options.pop("threads"))))
    settings = {"model.order": order, "train.holdout": 0.0, **options}
    with PrivateMemory() as private:
        start, work = time.perf_counter(), time.process_time()
        model = train("ngram", **paths, out=out, settings=settings)
        seconds, work = time.perf_counter() - start, time.process_time() - work
    scores = json.loads((Path(out) / "metrics.json").read_text()).get("test", {}).get("scores")
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    values = {
        "seconds": seconds,
        "work": work,
        "peak": used,
        "private": private.peak,
        "ngrams": sum(n for name, n in model.about().items() if name.endswith("-grams")),
        "bytes": sum(path.stat().st_size for path in Path(out).iterdir()),
        "perplexity": scores[0]["value"] if scores else None,
    }
    print(json.dumps(values))


class PrivateMemory:
    """The most memory of this process that is no file's, looked at a hundred times a second."""

    def __enter__(self) -> "PrivateMemory":
        self.peak, self._done = 0, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def _look(self) -> None:
        status = Path("/proc/self/status")
        while status.exists() and not self._done.wait(0.01):
            found = [x for x in status.read_text().splitlines() if x.startswith("RssAnon")]
            self.peak = max(self.peak, int(found[0].split()[1]) * 1024 if found else 0)

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()


def trained(paths: dict[str, Path], order: int, out: Path, options: dict[str, object]) -> dict:
    """What training took in a process of its own."""
    plain = {name: str(path) for name, path in paths.items()}
    command = [sys.executable, __file__, "--one", json.dumps([plain, order, str(out), options])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def training_table(found: dict[str, dict[str, Path]], folder: Path, options: dict) -> None:
    head = (
        "text          order  seconds  cpu s   peak MB (private)     n-grams   MB on disk  test ppl"
    )
    print(f"\n{head}")
    for name, paths in found.items():
        for order in SIZES[name]:
            row = trained(paths, order, folder / f"{name.split()[0]}-{order}", dict(options))
            perplexity = f"{row['perplexity']:9.2f}" if row["perplexity"] else "        -"
            print(
                f"{name:<12} {order:6d} {row['seconds']:8.2f} {row['work']:6.2f} "
                f"{row['peak'] / 1e6:9.0f} ({row['private'] / 1e6:5.0f}) {row['ngrams']:13,.0f} "
                f"{row['bytes'] / 1e6:12.1f} {perplexity}",
                flush=True,
            )


# ------------------------------------------------------------------ peers


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def scoring(model_folder: Path, text: Path, threads: int) -> None:
    """Sentences in bulk: our model beside the kenlm module on the same probabilities."""
    import torch

    from unrolled.tasks.folder import load
    from unrolled.tasks.ngram.model import write_arpa

    loading = min(seconds(lambda: load(model_folder)) for _ in range(5))
    print(f"\n{model_folder.name}: loaded in {loading:.3f} s")
    if importlib.util.find_spec("kenlm") is None:
        print("kenlm is not installed")
        return
    import kenlm

    model, arpa = load(model_folder), model_folder.with_suffix(".arpa")
    write_arpa(model, arpa)
    theirs = kenlm.Model(str(arpa))
    lines = text.read_text(encoding="utf-8").split("\n")[:-1]
    tokens = sum(score.tokens for score in model.score(lines))
    for used in sorted({1, threads}):
        torch.set_num_threads(used)
        ours, other = [], []
        for _ in range(ROUNDS):  # in turn, so that what else the machine does hits both
            ours.append(seconds(lambda: model.score(lines)))
            other.append(seconds(lambda: [theirs.score(line) for line in lines]))
        print(
            f"scored {len(lines):,} sentences with {used} threads: ours "
            f"{tokens / min(ours) / 1e6:.2f}, kenlm {tokens / min(other) / 1e6:.2f} M tokens/s, "
            f"ratio {min(other) / min(ours):.2f}"
        )
    encoded = model.encoder.encode_lines(lines)
    log10 = -model.network.nats_in_lines(encoded) / math.log(10.0)
    found = (p for line in lines for p, *_ in theirs.full_scores(line))
    apart = max(abs(a - b) for a, b in zip(log10.tolist(), found, strict=True))
    print(f"log10 probabilities of a token are apart by at most {apart:.1e}")


def beside_nltk(paths: dict[str, Path], folder: Path) -> None:
    """Order 5 from the same text in nltk, whose model then answers for some tokens of the test.

    Processor seconds, in which a busy machine hardly shows, and seconds on the clock. Ours is on
    the disk by then, nltk's in memory alone.
    """
    if importlib.util.find_spec("nltk") is None:
        print("nltk is not installed")
        return
    from unrolled.tasks.run import train
    from unrolled.text.corpus import read_lines

    lines = list(read_lines(paths["test"]))
    settings = {"model.order": 5, "train.holdout": 0.0}
    clock, start = time.perf_counter(), time.process_time()
    model = train("ngram", train=paths["train"], out=folder / "beside-nltk", settings=settings)
    waited, made = time.perf_counter() - clock, time.process_time() - start
    start = time.process_time()
    tokens = sum(score.tokens for score in model.score(lines))
    asked = (time.process_time() - start) / tokens
    theirs, answer, theirs_waited = nltk_seconds(paths["train"], lines)
    print(
        f"\norder 5 from text: nltk {theirs:.1f} s, ours {made:.2f} s, {theirs / made:.0f} times "
        f"faster; on the clock {theirs_waited:.1f} and {waited:.2f} s, "
        f"{theirs_waited / waited:.0f} times\na token's probability: nltk {answer * 1e3:.0f} ms "
        f"(of {NLTK_TOKENS}), ours {asked * 1e9:.0f} ns\nmodel and perplexity of the test text: "
        f"nltk {(theirs + tokens * answer) / 3600:.1f} h by these, ours "
        f"{made + tokens * asked:.2f} s"
    )


def nltk_seconds(train_text: Path, lines: list[str]) -> tuple[float, float, float]:
    """To an interpolated Kneser–Ney model of a text, and to one probability that it is asked.

    Processor seconds both; then those to the model on the clock.
    """
    from nltk.lm import KneserNeyInterpolated
    from nltk.lm.preprocessing import padded_everygram_pipeline

    from unrolled.text.corpus import read_lines

    clock, start = time.perf_counter(), time.process_time()
    kneser_ney = KneserNeyInterpolated(5)
    kneser_ney.fit(*padded_everygram_pipeline(5, [x.split() for x in read_lines(train_text)]))
    waited, made = time.perf_counter() - clock, time.process_time() - start
    rows = (["<s>"] * 4 + line.split() + ["</s>"] for line in lines)
    places = ((row, i) for row in rows for i in range(4, len(row)))
    start = time.process_time()
    for row, i in islice(places, NLTK_TOKENS):
        kneser_ney.logscore(row[i], tuple(row[i - 4 : i]))
    return made, (time.process_time() - start) / NLTK_TOKENS, waited


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="?", type=Path, help="folder of the corpora")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--memory", help="bound the memory of counting, such as 500MB")
    parser.add_argument("--nltk", action="store_true", help="nothing but the comparison with nltk")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        train_one(*json.loads(arguments.one))
        return
    options = {"threads": arguments.threads}
    if arguments.memory:
        options["train.memory"] = arguments.memory
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if arguments.nltk:
            beside_nltk(penn(arguments.data), folder)
            return
        found = texts(arguments.data, folder)
        training_table(found, folder, options)
        if "ptb" in found:
            for order in SIZES["ptb"]:
                scoring(folder / f"ptb-{order}", found["ptb"]["test"], arguments.threads)
            beside_nltk(found["ptb"], folder)


if __name__ == "__main__":
    main()
