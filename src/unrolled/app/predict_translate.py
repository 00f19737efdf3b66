"""What `unrolled predict` prints for a sequence-to-sequence model: an output for each line.

With several outputs a line, each has its line number, its rank and its score before it. --json
prints one JSON object a line of input, so that results stream as the input does.
"""

from collections.abc import Iterable
from itertools import islice
from json import dumps
from typing import TYPE_CHECKING, Any

from unrolled.app.output import note

if TYPE_CHECKING:
    from unrolled.models.translate import Search, TranslateModel, Translation

LINES_AT_ONCE = 256


def predict_outputs(
    model: "TranslateModel",
    lines: Iterable[str],
    *,
    search: "Search",
    temperature: float | None = None,
    seed: int | None = None,
    json: bool = False,
    at_once: int = LINES_AT_ONCE,
) -> None:
    """Print the outputs in the order of the lines; an empty line gives an empty line.

    With a temperature they are drawn from the model's distribution rather than searched for.
    """
    waiting, number, unfinished, unreadable = iter(lines), 0, [], []
    while texts := list(islice(waiting, at_once)):
        if temperature is None:
            outputs = model.translate(texts, search)
        else:
            own = None if seed is None else seed + number  # each block draws on its own
            outputs = _drawn(model, texts, temperature, seed=own, max_length=search.max_length)
        for text, found in zip(texts, outputs, strict=True):
            number += 1
            print(_shown(text, found, number, json=json, several=search.nbest > 1), flush=True)
            if not found[0].finished:
                unfinished.append(number)
            if text.strip() and not model.knows(text):
                unreadable.append(number)
    if unfinished:
        note(f"Cut off before an end was written: {_lines(unfinished)}.")
    if unreadable:
        note(f"Of no token is known to the model, so the output says little: {_lines(unreadable)}.")


def _drawn(
    model: "TranslateModel",
    texts: list[str],
    temperature: float,
    *,
    seed: int | None,
    max_length: int | None,
) -> "list[list[Translation]]":
    from unrolled.decode.sample import Sampling

    sampling = Sampling(temperature=temperature)
    return [[each] for each in model.sample(texts, sampling, seed=seed, max_length=max_length)]


def _shown(text: str, found: "list[Translation]", number: int, *, json: bool, several: bool) -> str:
    if json:
        return dumps({"source": text, "outputs": list(map(_plain, found))}, ensure_ascii=False)
    if not several:
        return found[0].text
    rows = enumerate(found, 1)
    return "\n".join(f"{number}\t{rank}\t{each.score:.4f}\t{each.text}" for rank, each in rows)


def _plain(output: "Translation") -> dict[str, Any]:
    return {
        "text": output.text,
        "log_probability": output.log_probability,
        "score": output.score,
        "finished": output.finished,
    }


def _lines(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:10])) + (" …" if len(numbers) > 10 else "")
    return f"line {shown}" if len(numbers) == 1 else f"{len(numbers):,} lines ({shown})"
