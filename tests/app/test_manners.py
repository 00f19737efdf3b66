"""How the command behaves: results on stdout, the rest on stderr, signs of life, quiet ends."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import version

import pytest

from unrolled.app import progress
from unrolled.app.output import note, print_json, print_report, say
from unrolled.app.progress import busy, clock, describe, plain_lines
from unrolled.evaluate.report import Report, number
from unrolled.evaluate.score import Score
from unrolled.evaluate.shown import visible
from unrolled.nn import kernels
from unrolled.training.clock import Dev, Status

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]

CODE = "import sys; from unrolled.app.cli import main; sys.exit(main(sys.argv[1:]))"
COMMAND = [sys.executable, "-c", CODE]
ONE_CORE = {**os.environ, "OMP_NUM_THREADS": "1"}
TEXTS = "yes\tgood fine good\nno\tbad poor bad\nnot sure\twell hm well\n" * 8
TAGGED = "the DET\ncat NOUN\nran VERB\n\na DET\ndog NOUN\nsat VERB\n\n" * 10
SMALL = ["--threads=1", "--set=model.hidden_size=8", "--set=train.batch_tokens=128"]


def test_train_prints_scores_on_stdout_and_progress_on_stderr(call, text, tmp_path):
    done = call("train", "lm", "--train", text, "--out", tmp_path / "out", "--epochs=2", *SMALL)
    assert done.code == 0
    title, header, *rows, recipe, verdict = done.out.splitlines()
    below = next(k for k, row in enumerate(rows) if row.startswith(" "))  # the table's other part
    rows = rows[:below]
    assert title == f"{tmp_path / 'out'} on the dev data"
    assert header.split() == ["perplexity", "cross_entropy"]
    assert [row.split()[0] for row in rows] == [
        "model",
        "with_ngram",
        "uniform",
        "unigram",
        "ngram",
    ]
    assert len({len(row) for row in [header, *rows]}) == 1
    assert max(map(len, done.out.splitlines()[1 : 2 * below + 3])) < 80
    assert recipe.startswith("95 % intervals in brackets; recipe: lines:3|tokens:20|unknown:0|")
    assert verdict == "The model does not beat the baseline: uniform, unigram, ngram."
    errors = done.err.splitlines()
    if not kernels.active():
        assert "No compiled kernels here: training runs on torch's layers" in errors.pop(0)
    held_out, first, *_, last, facts, offer = errors
    assert held_out.startswith("3 of 60 lines are held out to choose the best model by")
    assert re.fullmatch(r"epoch 1  step 1  loss \d\.\d+  [\d,]+ tokens/s", first)
    assert re.fullmatch(r"epoch 2  step 8  loss .*  dev perplexity \d+\.\d+  [\d,]+ tokens/s", last)
    assert facts == (
        "Learned from 57 lines, 380 tokens, 0 of them unknown; vocabulary 19; 0.0% padding."
    )
    assert offer.startswith("Mixed with the n-gram model that is kept beside it, it foresees more")


def test_a_finished_run_says_so_and_prints_its_scores_again(call, text, tmp_path):
    arguments = ["--train", text, "--out", tmp_path / "out", "--epochs=1", *SMALL]
    first = call("train", "lm", *arguments)
    again = call("train", "lm", *arguments, "--resume")
    assert again.code == 0
    assert again.out == first.out
    said = f"The run in {tmp_path / 'out'} was finished already; these are its scores."
    assert again.err.splitlines()[0] == said


def test_that_bytes_differ_is_told_by_help_and_epochs_replace_the_minutes_of_a_file(
    call, text, tmp_path
):
    told = " ".join(call("train", "--help").out.replace("│", " ").split())
    assert "the schedule follows the clock, so the bytes of two runs differ" in told
    (tmp_path / "hour.toml").write_text("[train]\nminutes = 60.0\n")
    texts = ["--train", text, "--config", tmp_path / "hour.toml", *SMALL]
    short = call("train", "lm", *texts, "--out", tmp_path / "a", "--minutes=0.001")
    assert short.code == 0
    assert "bytes" not in short.err
    counted = call("train", "lm", *texts, "--out", tmp_path / "b", "--epochs=1")
    assert counted.code == 0
    assert [row.split()[1] for row in counted.err.splitlines() if row.startswith("epoch")][
        -1
    ] == "1"


def test_json_is_one_document_and_nothing_else(call, model, text, tmp_path):
    trained = call(
        *("train", "lm", "--train", text, "--out", tmp_path / "out", "--epochs=1", "--json"), *SMALL
    )
    assert json.loads(trained.out).keys() == {"model", "dev"}
    evaluated = json.loads(call("evaluate", model, text, "--json").out)
    assert evaluated.keys() == {"scores", "baselines", "variants"}
    assert evaluated["baselines"].keys() == {"uniform", "unigram", "ngram"}
    assert evaluated["variants"].keys() == {"with_ngram"}
    names = ["perplexity", "cross_entropy", "bits_per_character"]
    for scores in (evaluated["scores"], *evaluated["baselines"].values()):
        assert [score["name"] for score in scores] == names
        assert all(
            score.keys() == {"name", "value", "low", "high", "signature", "higher_is_better"}
            for score in scores
        )
    scored = json.loads(call("score", model, text, "--json").out)
    assert len(scored["lines"]) == 60
    assert scored["lines"][0].keys() == {
        *("text", "log_probability", "tokens", "unknown", "perplexity")
    }
    listed = json.loads(call("next", model, "the", "--top=3", "--json").out)
    assert [entry.keys() for entry in listed["next"]] == [{"token", "probability"}] * 3
    written = json.loads(call("generate", model, "--count=2", "--tokens=4", "--json").out)
    assert len(written["texts"]) == 2
    described = json.loads(call("info", model, "--json").out)
    assert described["test"]["scores"][0]["name"] == "perplexity"
    assert json.loads(call("info", "--json").out)["threads"] >= 1


def test_json_has_null_for_what_is_no_number(capsys):
    print_json({"a": [float("inf"), 1.5], "b": float("nan"), "c": "é"})
    assert json.loads(capsys.readouterr().out) == {"a": [None, 1.5], "b": None, "c": "é"}


def test_info_tells_of_a_model_and_of_the_installation(call, model):
    lines = call("info", model).out.splitlines()
    assert lines[0].split() == ["task", "lm"]
    assert "On the test text, when training ended" in lines
    assert call("info").out.startswith("unrolled ")
    assert re.fullmatch(r"unrolled \d+\.\d+\.\d+\n", call("--version").out)


def test_scores_of_lines_add_up(call, model, tmp_path):
    (tmp_path / "lines.txt").write_text("the cat\n\nzzz the\n")
    rows = [
        row.split("\t") for row in call("score", model, tmp_path / "lines.txt").out.splitlines()
    ]
    assert [row[2:] for row in rows] == [
        ["3", "0", "the cat"],
        ["1", "0", ""],  # the line's end alone
        ["3", "1", "zzz the"],
        ["7", "1", "all 3 lines"],
    ]
    *lines, everything = [float(row[0]) for row in rows]
    assert everything == pytest.approx(sum(lines), abs=2e-4)
    ranked = call("score", model, tmp_path / "lines.txt", "--rank").out.splitlines()
    assert [float(row.split("\t")[0]) for row in ranked[:-1]] == sorted(lines, reverse=True)


def test_a_prompt_with_unknown_words_is_continued_with_a_remark(call, model):
    done = call("generate", model, "--prompt", "zzz the", "--tokens=3", "--seed=1")
    assert done.code == 0
    assert done.err == "Tokens of the prompt that the model does not know: 1.\n"
    assert done.out.startswith("zzz the ")
    assert done.out == call("generate", model, "--prompt=zzz the", "--tokens=3", "--seed=1").out


def test_the_next_list_is_sorted_and_shows_what_cannot_be_seen(call, model):
    rows = [row.split("\t") for row in call("next", model, "the", "--top=5").out.splitlines()]
    assert len(rows) == 5
    assert [row[0] for row in rows] == sorted((row[0] for row in rows), reverse=True)
    assert [visible(token) for token in ("the", " ", "\t", "")] == ["the", "' '", r"'\t'", "''"]


def scores(*values: float, prefix: str = "") -> list[Score]:
    names = ("perplexity", "cross_entropy", "bits_per_character")
    recipe = "lines:1|tokens:2|unknown:0|level:word|end:counted|base:e"
    pairs = zip(names, values, strict=True)
    return [Score(prefix + name, value, value, value, recipe, False) for name, value in pairs]


def test_a_report_has_a_row_for_the_backward_model_and_is_never_wrapped(capsys):
    both = scores(9.0, 2.197, 1.5) + scores(1e4, 9.21, 5.0, prefix="backward_")
    print_report(Report(both, {"uniform": scores(10.0, 2.303, 2.0)}), title="t")
    assert capsys.readouterr().out.splitlines()[1:5] == [
        "                    perplexity         cross_entropy    bits_per_character",
        "model     9.000 [9.000, 9.000]  2.197 [2.197, 2.197]  1.500 [1.500, 1.500]",
        "backward  10000 [10000, 10000]  9.210 [9.210, 9.210]  5.000 [5.000, 5.000]",
        "uniform   10.00 [10.00, 10.00]  2.303 [2.303, 2.303]  2.000 [2.000, 2.000]",
    ]
    shown = [number(value) for value in (0.012345, 123.456, 1234.5, 1e12, float("inf"))]
    assert shown == ["0.01235", "123.5", "1234", "1.000e+12", "inf"]


@pytest.mark.parametrize(
    ("task", "text", "name", "head"),
    [("classify", TEXTS, "by_label", "label"), ("tag", TAGGED, "by_tag", "tag")],
)
def test_evaluate_prints_what_its_json_holds(call, tmp_path, task, text, name, head):
    data, out = tmp_path / f"data.{'tsv' if task == 'classify' else 'conll'}", tmp_path / "model"
    data.write_text(text)
    small = ["--threads=1", "--epochs=1", "--hidden-size=4", "--embedding-size=4"]
    assert call("train", task, f"--train={data}", f"--dev={data}", f"--out={out}", *small).code == 0
    stored = json.loads(call("evaluate", out, data, "--json").out)["details"][name]
    lines = call("evaluate", out, data).out.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"{head} "))
    table = {line[:9].strip(): line[9:].split() for line in lines[start + 1 :][: len(stored)]}
    assert table == {
        label: [f"{own[rate]:.3f}" for rate in ("precision", "recall", "f1")] + [str(own["count"])]
        for label, own in stored.items()
    }


def status(**changes) -> Status:
    values = {"epoch": 2, "step": 70, "share": 0.5, "loss": 1.0, "dev": None}
    return Status(
        **values | {"unit": "tokens", "units_per_second": 12345.6, "seconds_left": 3700.0} | changes
    )


def test_a_status_is_one_line():
    assert describe(status()) == ("epoch 2  step 70  loss 1.000  12,346 tokens/s  1:01:40 left")
    unsure = describe(status(dev=Dev("accuracy", 0.98765, 0.1), seconds_left=float("inf")))
    assert unsure == "epoch 2  step 70  loss 1.000  dev accuracy 0.9877  12,346 tokens/s"
    beside_bar = describe(status(), brief=True)
    assert beside_bar == "epoch 2  loss 1.000  12k tokens/s  1:01:40 left"
    assert [clock(seconds) for seconds in (0, 61, 3599.6)] == ["0:00", "1:01", "1:00:00"]


def test_plain_lines_are_few(capsys, monkeypatch):
    monkeypatch.setattr(progress, "NEWS_SECONDS", 0.0)
    show = plain_lines()
    for step in range(1, 6):
        show(
            status(step=step, dev=Dev("perplexity", 7.4, 2.0) if step > 3 else None, share=step / 5)
        )
    steps = re.findall(r"step (\d)", capsys.readouterr().err)
    assert steps == ["1", "4", "5"]  # the first, the one with a new loss on dev, the last


def test_long_work_says_that_it_goes_on(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    with busy("thinking"):
        time.sleep(0.1)
    assert capsys.readouterr().err == "thinking, 0:00\n"
    monkeypatch.setattr(progress, "PATIENCE", 60.0)
    with busy("thinking"):
        pass
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar_and_no_colour_is_honoured(text, tmp_path):
    ours, theirs = pty.openpty()
    environment = {**ONE_CORE, "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "100"}
    arguments = ["train", "lm", "--train", text, "--out", tmp_path / "out", "--epochs=3", *SMALL]
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=theirs, env=environment, text=True
    )
    os.close(theirs)
    seen = read_all(ours)
    out, _ = process.communicate()
    assert process.returncode == 0, seen
    assert "━" in seen
    assert re.search(r"epoch 3  loss \d\.\d+  dev perplexity [\d.]+  ", seen)
    assert not re.search(r"\x1b\[[0-9;]*3\d", seen), "a colour"
    assert "\x1b" not in out
    assert out.startswith(f"{tmp_path / 'out'} on the dev data\n")


def read_all(descriptor: int) -> str:
    pieces = []
    while True:
        try:
            piece = os.read(descriptor, 1 << 16)
        except OSError:  # so ends a terminal whose other side is closed
            piece = b""
        if not piece:
            os.close(descriptor)
            return b"".join(pieces).decode()
        pieces.append(piece)


def test_a_reader_who_leaves_early_is_no_error(model, tmp_path):
    (tmp_path / "big.txt").write_text("the cat sat on a mat\n" * 20_000)
    process = subprocess.Popen(
        [*COMMAND, "score", model, tmp_path / "big.txt"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ONE_CORE,
    )
    assert process.stdout.readline().endswith(b"the cat sat on a mat\n")
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0
    assert b"Error" not in said


def test_output_that_cannot_be_written_is_an_error_of_the_disk(model):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "next", model, "the"], stdout=full, stderr=subprocess.PIPE, env=ONE_CORE
        )
    assert done.returncode == 5
    assert done.stderr == b"unrolled: the output: No space left on device.\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_generation_with_a_word(model, number, code):
    process = subprocess.Popen(
        [*COMMAND, "generate", model, "--tokens=9000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ONE_CORE,
        text=True,
    )
    assert process.stderr.readline() == f"generate: {model}, 0:02\n"
    process.send_signal(number)
    out, said = process.communicate()
    assert process.returncode == code
    assert out == ""
    assert said.splitlines()[-1] == "unrolled: stopped."
    assert "Traceback" not in said


STARTED = """
import sys
from unrolled.app.cli import main
model, text = sys.argv[1:]
for command in (["next", model, "the"], ["score", model, text], ["info", model]):
    assert main(command) == 0
heavy = [name for name in ("torch._dynamo", "unrolled.training", "altair") if name in sys.modules]
assert not heavy, heavy
"""


def test_using_a_model_imports_nothing_of_training(model, text):
    done = subprocess.run(
        [sys.executable, "-c", STARTED, model, text],
        capture_output=True,
        text=True,
        env=ONE_CORE,
    )
    assert done.returncode == 0, done.stderr


def test_what_the_encoding_of_the_terminal_lacks_is_escaped(model):
    done = subprocess.run(
        [*COMMAND, "generate", model, "--prompt", "é the", "--tokens=2"],
        capture_output=True,
        env={**ONE_CORE, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(rb"\xe9 the")


def test_help_states_the_defaults_of_options(call):
    shown = " ".join(call("predict", "--help").out.replace("│", " ").split())
    assert "1 is greedy. [default: 5]" in shown
    assert "1 takes the mean. [default: 0.7]" in shown


def test_the_package_is_a_program():
    command = [sys.executable, "-m", "unrolled", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"unrolled {version('unrolled')}\n")


def test_info_lists_the_shapes_of_a_model(call, model):
    done = call("info", model, "--shapes")
    assert done.code == 0
    rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in done.out.splitlines()}
    assert "".join(rows["stack.weight_ih_l0"].split()) == "(32,8)256ifgo:(8,8)"
    listed = json.loads(call("info", model, "--shapes", "--json").out)
    about = json.loads(call("info", model, "--json").out)
    own = [row["numbers"] for row in listed if not str(row).count("beside.")]
    assert sum(own) == about["parameters"]
    assert f"{sum(row['numbers'] for row in listed):,} numbers in all." in done.out
    assert "--shapes was given, but no model." in call("info", "--shapes").err


def closing(redirect, *arguments):
    """A command whose caller has closed one of its streams."""
    line = 'exec "$@" ' + redirect
    command = ["sh", "-c", line, "sh", *COMMAND, *map(str, arguments)]
    return subprocess.run(command, env=ONE_CORE, capture_output=True, text=True, check=False)


def test_closed_streams_are_named_and_take_no_file_for_one_of_them(model):
    no_output = closing(">&-", "info", model)
    assert (no_output.returncode, no_output.stdout) == (5, "")
    assert no_output.stderr == (
        "unrolled: <stdout>: is closed, but results are printed there; redirect it.\n"
    )
    no_input = closing("<&-", "score", model)
    assert (no_input.returncode, no_input.stdout) == (5, "")
    assert no_input.stderr.startswith("unrolled: <stdin>: the file cannot be read (")
    no_errors = closing("2>&-", "score", model, "not-there.txt")
    assert (no_errors.returncode, no_errors.stdout) == (5, "")


HOSTILE = "\x1b]0;owned\x07\x9b31m\r\x7f"


def test_what_a_terminal_would_obey_is_shown(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    say(f"a\t{HOSTILE}", "b")
    note(f"no file {HOSTILE}")
    out, err = capsys.readouterr()
    shown = r"\u001b]0;owned\u0007\u009b31m\u000d\u007f"
    assert out == f"a\t{shown}\nb\n"
    assert err == f"no file {shown}\n"


def test_what_goes_to_a_file_is_as_it_is(capsys):
    say(f"a {HOSTILE}")
    assert capsys.readouterr().out == f"a {HOSTILE}\n"


def test_a_name_in_an_error_cannot_move_the_cursor(call):
    done = call("info", f"x{HOSTILE}y")
    assert done.code == 4
    assert done.err.isascii()
    assert done.err.strip().isprintable()


def test_plot_says_what_it_needs_and_draws_a_run(call, model, text, tmp_path):
    assert "--view is lengths, but there are no data" in call("plot", model, "--view=lengths").err
    wrong = call("plot", model, "--view=los")
    assert wrong.code == 2
    assert "--view of a recurrent language model is 'los'" in wrong.err
    assert "Did you mean 'loss'?" in wrong.err
    assert call("plot", tmp_path).code == 4
    done = call("plot", model, f"--out={tmp_path / 'loss.png'}")  # the first view
    assert done.code == 0
    assert done.out.splitlines()[1].split() == ["step", "training", "loss", "dev", "cost"]
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert call("plot", model, "--view=surprise", f"--data={text}", "--json").code == 0
