import contextlib

import pytest

from unrolled.config import parse_options, parse_overrides, sections, settings_for, to_toml
from unrolled.errors import ConfigError, StorageError
from unrolled.tasks import TASKS, task_named
from unrolled.tasks.language.settings import LanguageRun


def lm(*overrides):
    return settings_for(LanguageRun, overrides=parse_overrides(overrides))


def test_settings_survive_the_way_through_toml(tmp_path):
    settings = lm("model.cell=gru", "model.reset=before", "train.minutes=2.5", "tokens.max_size=9")
    file = tmp_path / "config.toml"
    file.write_text(to_toml(settings))
    assert settings_for(LanguageRun, file=file) == settings


def test_overrides_win_over_the_file_and_the_file_over_defaults(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("seed = 5\n[model]\nlayers = 3\nhidden_size = 7\n")
    settings = settings_for(LanguageRun, file=file, overrides={"model.layers": 2})
    assert (settings.seed, settings.model.layers, settings.model.hidden_size) == (5, 2, 7)


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("train.clip=0.25", 0.25),
        ("train.optimizer=sgd", "sgd"),
        ('train.optimizer="adam"', "adam"),
        ("train.epochs = 3", 3),
    ],
)
def test_override_values_are_toml_or_plain_words(override, value):
    name = override.partition("=")[0].strip().removeprefix("train.")
    assert getattr(lm(override).train, name) == value


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.hiden_size=3", r"setting in section model is 'hiden_size'.*mean 'hidden_size'\?"),
        ("tokns.level=char", r"setting is 'tokns', but must be one of .* Did you mean 'tokens'\?"),
        ("model.cell=lstn", r"model.cell is 'lstn', but .* gru, lstm, rnn. Did you mean 'lstm'\?"),
        ("train.clip=-1", r"train.clip is -1, but must be greater than 0\."),
        ("train.learning_rate=inf", r"train.learning_rate is inf, but must be a finite number"),
        ("train.epochs=abc", r"train.epochs is 'abc', but must be a valid integer"),
        ("train.epochs=0", r"train.epochs is 0, but must be greater than or equal to 1\."),
        ("model.dropout=1.0", r"model.dropout is 1.0, but must be less than 1\."),
        ("model.bidirectional=true", r"already seen the token it must predict"),
        ("model.combine=mean", r'combine is "mean", but model.bidirectional is false'),
        ("model.reset=before", r"model.reset is 'before', but it is a variant of the gru cell"),
        ("model.embedding_size=3", r"model.embedding_size is 3 and model.hidden_size is 256"),
        ("model.direction=pair", r'model.direction is "pair".*Set model.context to "line"'),
        ("seed.a=1", r"seed is \{'a': 1\}, but must be a valid integer"),
        ("model", r"--set 'model' is not of the form section.key=value"),
        ("=3", r"--set '=3' is not of the form section.key=value"),
    ],
)
def test_wrong_settings_say_what_is_allowed(override, message):
    with pytest.raises(ConfigError, match=message):
        lm(override)


def test_a_value_is_not_a_section():
    with pytest.raises(ConfigError, match=r"--set seed\.a: seed is a value, not a section"):
        lm("seed=3", "seed.a=4")


def test_unknown_task_names_the_nearest():
    tasks = ", ".join(sorted(TASKS))
    with pytest.raises(ConfigError, match=f"task is 'ln', but must be one of {tasks}"):
        task_named("ln")


def test_a_file_of_another_task_is_refused(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('task = "tag"\n')
    with pytest.raises(ConfigError, match="task is 'tag', but 'lm' was asked for"):
        settings_for(LanguageRun, file=file)


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(StorageError, match=r"none\.toml: cannot be read: No such file"):
        settings_for(LanguageRun, file=tmp_path / "none.toml")
    file = tmp_path / "config.toml"
    file.write_text("seed = = 3")
    with pytest.raises(ConfigError, match=r"config.toml: is not valid TOML: .*line 1"):
        settings_for(LanguageRun, file=file)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"#" * 100_001, r"has more than 100000 bytes, but settings have fewer"),
        (b"a" + b".a" * 20_000 + b" = 1", r"has a line of more than 100 dots, but no name of"),
        (b"a = " + b"[" * 5000 + b"]" * 5000, r"is not valid TOML: maximum recursion depth"),
        (b"seed = " + b"9" * 5000, r"is not valid TOML: Exceeds the limit .4300 digits"),
        (b"seed = 0x" + b"f" * 5000, r"seed is a int that is too long to show, but must be less"),
        (b"seed = '" + b"x" * 5000 + b"'", r"^seed is 'x{198}…, but must be a valid integer"),
        (b"task = []", r"task is \[\], but 'lm' was asked for"),
        (b"\xff", r"is not valid TOML: 'utf-8' codec can't decode"),
        (
            b"model.cell = " + b"[[1]]",
            r"model.cell is \[\[1\]\], but must be one of gru, lstm, rnn",
        ),
        (b"model.cell = '" + b"a" * 9000 + b"'", r"model.cell is 'a{198}…, but must be one of"),
    ],
)
def test_absurd_settings_are_refused_at_once_and_in_few_words(content, problem, tmp_path):
    (tmp_path / "config.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=problem) as refused:
        settings_for(LanguageRun, file=tmp_path / "config.toml")
    assert len(str(refused.value)) < 600


@pytest.mark.parametrize(
    "item",
    [
        "a" + ".a" * 20_000 + "=1",
        "seed=" + "9" * 5000,
        "seed=0x" + "f" * 5000,
        "seed=" + "[" * 5000,
        "model.cell=" + "{a=" * 3000 + "1" + "}" * 3000,
        "x" * 9000,
        "=",
        "seed.a.b=1\n[model]\ncell=1",
    ],
)
def test_absurd_overrides_are_refused_at_once_and_in_few_words(item):
    with pytest.raises(ConfigError) as refused:
        settings_for(LanguageRun, overrides=parse_overrides([item]))
    assert len(str(refused.value)) < 600


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("number", [2**63, 16**4816], ids=["64 bits", "huge"])
def test_no_whole_number_is_beyond_what_toml_holds(task, number):
    kind = TASKS[task].settings
    for name, section in sections(kind).items():
        for key in section.model_fields:
            with contextlib.suppress(ConfigError):
                settings = settings_for(kind, overrides={f"{name}.{key}": number})
                assert not isinstance(getattr(getattr(settings, name), key), int), key


@pytest.mark.parametrize("number", [2**63, 16**4816], ids=["64 bits", "huge"])
def test_no_whole_number_of_a_list_is_either(number):
    kind = TASKS["ngram"].settings
    with pytest.raises(ConfigError, match=r"stay below 2\^63"):
        settings_for(kind, overrides={"model.prune": [0, number]})


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--lr=0.1"], {"train.learning_rate": 0.1}),
        (["--hidden", "7"], {"model.hidden_size": 7}),
        (["--embed=5"], {"model.embedding_size": 5}),
        (["--no-baselines"], {"train.baselines": False}),
        (["--baselines"], {"train.baselines": True}),
        (["--baselines=false"], {"train.baselines": False}),
    ],
)
def test_what_people_type_is_understood(options, expected):
    assert parse_options(LanguageRun, options) == expected


def test_examples_of_a_batch_are_explained():
    with pytest.raises(ConfigError, match=r"--batch-size 32 counts examples, but .* in tokens"):
        parse_options(LanguageRun, ["--batch-size", "32"])


@pytest.mark.parametrize(("typed", "meant"), [("--layer", "--layers"), ("--lx", None)])
def test_the_nearest_option_is_near(typed, meant):
    with pytest.raises(ConfigError) as error:
        parse_options(LanguageRun, [f"{typed}=1"])
    hint = str(error.value).partition("Did you mean ")[2]
    assert hint == (f"{meant!r}?" if meant else "")
