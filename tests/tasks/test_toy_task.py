"""A task of its own, in one file and one entry: trained, saved, loaded, judged and used."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import pytest
import torch
from pydantic import Field
from torch import nn

from unrolled.app.cli import main
from unrolled.config.sections import RunSettings, Section, TrainSettings
from unrolled.evaluate.report import Report
from unrolled.evaluate.score import Score, signature
from unrolled.nn.output import Loss
from unrolled.tasks import TASKS
from unrolled.tasks.folder import load
from unrolled.tasks.shared.network_model import NetworkModel
from unrolled.tasks.task import Task, Use
from unrolled.training.clock import Dev
from unrolled.training.job import Reports, StepJob

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]


class ToyModelSettings(Section):
    start: float = Field(0.0, description="Where the mean begins.")


class ToyTrain(TrainSettings):
    learning_rate: float = 0.3


class ToyRun(RunSettings):
    task: str = "toy"
    model: ToyModelSettings = ToyModelSettings()
    train: ToyTrain = ToyTrain()


class Numbers(NamedTuple):
    """Data that are no text: a number a line."""

    values: torch.Tensor
    lines: list[str]

    def fingerprint(self):
        return {"lines": len(self.lines), "sha256": " ".join(self.lines)}


class Mean(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.mean = nn.Parameter(torch.full((1,), start))

    def loss(self, batch, carry=None):
        return Loss(((batch - self.mean) ** 2).sum(), len(batch), None)


class ScaleOptions(Section):
    scale: float = Field(1.0, gt=0.0, description="What differences are divided by.")


class Difference(NamedTuple):
    value: float
    row: int
    remarks: tuple[str, ...] = ()

    def text(self):
        return f"{self.value:.2f}"

    def as_json(self):
        return {"difference": self.value}

    def chart(self):
        raise AssertionError


@dataclass(frozen=True)
class ToyModel(NetworkModel):
    settings: ToyRun
    network: Mean

    @classmethod
    def restore(cls, settings, files):
        return cls(settings, Mean(settings.model.start))

    def files(self):
        return {}

    def about(self):
        return {"parameters": self.parameter_count()}

    def answering(self):
        return {"distance": self._distances}

    def _distances(self, blocks, options, source):
        row = 0
        for block in blocks:
            for given in block:
                row += 1
                off = float(given.text) - float(self.network.mean.detach())
                yield Difference(off / options.scale, row)


@dataclass(frozen=True)
class ToyJob(StepJob[ToyModel]):
    unit: ClassVar[str] = "numbers"
    model: ToyModel
    numbers: Numbers

    @property
    def train(self) -> TrainSettings:
        return self.model.settings.train

    def facts(self):
        return {"numbers": len(self.numbers.values)}

    def epoch(self, seed: int, epoch: int) -> Sequence[Any]:
        return self.numbers.values.split(2)

    def size(self, batch):
        return len(batch)

    def dev(self):
        with torch.no_grad():
            cost = self.model.network.loss(self.numbers.values).total.item()
        return Dev("squares", cost, cost)

    def reports(self, model):
        return Reports({"dev": Toy().evaluate(model, self.numbers, None)})


class Toy(Task[ToyRun, Numbers, ToyModel]):
    name = "toy"
    noun = "mean"
    settings = ToyRun
    uses: ClassVar = {"distance": Use("How far numbers are from the mean.", options=ScaleOptions)}
    examples = ("distance FOLDER numbers.txt",)

    def read(self, source, settings, options=None):
        lines = list(source.lines())
        return Numbers(torch.tensor([float(line) for line in lines]), lines)

    def job(self, settings, data):
        return ToyJob(ToyModel(settings, Mean(settings.model.start)), data["train"])

    def model(self):
        return ToyModel

    def evaluate(self, model, data, options):
        recipe = signature({"examples": len(data.values)}, resampled="numbers")
        means = (float(model.network.mean.detach()), 0.0)
        off = [float((data.values - mean).abs().mean()) for mean in means]
        scores = [[Score("distance", x, x, x, recipe, higher_is_better=False)] for x in off]
        return Report.of({"model": scores[0], "zero": scores[1]})

    def sentence(self, facts):
        return f"Learned from {facts['numbers']} numbers."


def test_one_entry_makes_a_task(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(TASKS, "toy", Toy())
    numbers, out = tmp_path / "numbers.txt", tmp_path / "mean"
    numbers.write_text("3\n5\n4\n4\n")
    given = ["train", "toy", f"--train={numbers}", f"--out={out}", "--start=1.0", "--epochs=40"]
    assert main(given) == 0
    told = capsys.readouterr()
    assert "Learned from 4 numbers." in told.err
    assert "numbers/s" in told.err
    assert "distance" in told.out
    assert load(out).network.mean.item() == pytest.approx(4.0, abs=0.3)
    assert "# A mean\n" in (out / "README.md").read_text()
    assert main(["evaluate", str(out), str(numbers), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scores"][0]["value"] < 0.8
    assert main(["distance", str(out), str(numbers), "--json", "--scale=2"]) == 0
    rows = [json.loads(line)["difference"] for line in capsys.readouterr().out.splitlines()]
    assert rows[1] - rows[0] == pytest.approx(1.0)
    assert main(["plot", str(out)]) == 2
    assert "holds a mean, of which there is no picture" in capsys.readouterr().err
    shutil.copytree(out, tmp_path / "twin")
    assert main(["compare", str(out), str(tmp_path / "twin"), f"--data={numbers}"]) == 2
    assert "they have no measure that can be taken line by line" in capsys.readouterr().err
    assert main(["distance", str(out), str(numbers), "--scale=0"]) == 2
    assert "scale is 0.0, but must be greater than 0" in capsys.readouterr().err


def test_without_its_entry_there_is_no_such_task(tmp_path, capsys):
    assert main(["train", "toy", "--train=x", f"--out={tmp_path / 'm'}"]) == 2
    assert "task is 'toy', but must be one of" in capsys.readouterr().err
