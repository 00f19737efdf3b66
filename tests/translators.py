"""What the tests of encoders and decoders share: every architecture there is, and small pairs."""

from collections.abc import Iterator
from itertools import product
from typing import get_args

import torch
from torch import Tensor

from unrolled.config import settings_for
from unrolled.errors import ConfigError
from unrolled.tasks.translate.network import TranslateNetwork
from unrolled.tasks.translate.settings import TranslateRun, TranslateSettings
from unrolled.text.batch import Batch
from unrolled.text.pair_batch import PairBatch
from unrolled.text.tokens import END, START

SIZE, TARGETS = 9, 7
SOURCES = [[4, 5, 6, END], [8, END], [7, 7, 4, 5, 8, END]]
OUTPUTS = [[START, 4, END], [START, 5, 6, 4, 6, END], [START, 6, 5, END]]

# The settings that say how reading and writing are put together, and all that they can be.
CHOICES = ("attention", "placement", "decoder_input")
SWITCHES = ("feed", "shared", "bidirectional", "reverse_source")

# What goes with any of them: cells, depth, sizes.
OTHERS = {
    "deep": {"attention": "none", "layers": 3},
    "deep, attends": {"layers": 2, "feed": True},
    "untied": {"tied": False, "embedding_size": 3},
    "untied, plain": {"attention": "none", "tied": False, "embedding_size": 3},
    "wide embedding": {"attention": "additive", "placement": "bahdanau", "embedding_size": 3},
    "one vocabulary": {"joint": True},
    "gru": {"cell": "gru", "reset": "before"},
    "rnn": {"cell": "rnn", "attention": "none"},
    "peepholes": {"peephole": "full", "output": "linear"},
    "no bias": {"bias": False},
    "mean of directions": {"combine": "mean", "layers": 2},
    "learned start": {"first_state": "learned"},
}


def network(
    *,
    size: int = 6,
    std: float = 0.5,
    joint: bool = False,
    targets: int = TARGETS,
    **options: object,
) -> TranslateNetwork:
    """In float64, with every parameter large enough to matter."""
    torch.manual_seed(0)
    chosen = {"hidden_size": size, "attention_size": 3, "attention_span": 6, "dropout": 0.0}
    overrides = {f"model.{name}": value for name, value in {**chosen, **options}.items()}
    settings = settings_for(TranslateRun, overrides=overrides)
    made = TranslateNetwork(settings.model, SIZE, None if joint else targets).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(0.0, std)
    return made.eval()


def _architectures() -> Iterator[tuple[str, dict[str, object]]]:
    """All parts that fit together, so that a new choice is tested as soon as it is there.

    The scores of attention are alike in what surrounds them: "general" stands for them where the
    decoder's input or the order of the source is another.
    """
    kinds = [get_args(TranslateSettings.model_fields[name].annotation) for name in CHOICES]
    for values in product(*kinds, *((False, True) for _ in SWITCHES)):
        options = dict(zip((*CHOICES, *SWITCHES), values, strict=True))
        usual = options["decoder_input"] == "token" and not options["reverse_source"]
        if (usual or options["attention"] in ("none", "general")) and _fit(options):
            on = [name for name in SWITCHES if options[name]]
            yield "-".join([*map(str, values[: len(CHOICES)]), *on]), options


def _fit(options: dict[str, object]) -> bool:
    try:
        network(size=2, **options)
    except ConfigError:
        return False
    return True


ARCHITECTURES = {**dict(_architectures()), **OTHERS}


def pairs(rows: tuple[int, ...] = (0, 1, 2)) -> PairBatch:
    source, target = ([side[row] for row in rows] for side in (SOURCES, OUTPUTS))
    return PairBatch(Batch.collate(source), Batch.collate(target))


def sees_tokens(model: TranslateNetwork) -> bool:
    """Whether the decoder reads what it has written."""
    return model.settings.decoder_input != "none"


def row_log_p(model: TranslateNetwork, source: list[int], rows: list[list[int]]) -> list[Tensor]:
    """Log-probabilities of the tokens of each row after its first, scored as a text is."""
    batch = PairBatch(Batch.collate([source] * len(rows)), Batch.collate(rows))
    return [*(-model.target_nats(batch)).split([len(row) - 1 for row in rows])]


@torch.inference_mode()
def stepped_log_p(
    model: TranslateNetwork, source: list[int], rows: list[list[int]]
) -> list[Tensor]:
    """The same as the Stepper says, one token after the other."""
    tokens, found = Batch.collate(rows).tokens, []
    state = model.encode(Batch.collate([source]))
    state = model.select(state, torch.zeros(len(rows), dtype=torch.int64))
    for token, following in zip(tokens.T, tokens.T[1:], strict=False):
        log_p, state = model.step(token, state)
        found.append(log_p.gather(1, following[:, None])[:, 0])
    steps = torch.stack(found, dim=1)  # (B, T)
    return [own[: len(row) - 1] for own, row in zip(steps, rows, strict=True)]
