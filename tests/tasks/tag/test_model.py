import numpy as np
import pytest
import torch
from networks import numeric_gradient, relative_error
from tagged import small_job, small_model, span_lines

from unrolled.errors import ConfigError
from unrolled.tasks.tag.answers import MAX_WORDS
from unrolled.tasks.tag.model import TagModel
from unrolled.text.schemes import first_break
from unrolled.text.vectors import WordVectors
from unrolled.training.in_memory import fit_in_memory

pytestmark = [pytest.mark.arithmetic, pytest.mark.slow]

SENTENCES = [["Mary", "saw", "Paris", "."], ["Otto"], ["Ann", "Peter", "met", "unheard-of", "Oslo"]]
both_decoders = pytest.mark.parametrize("decoder", ["softmax", "crf"])


@pytest.fixture(scope="module")
def trained() -> TagModel:
    torch.manual_seed(0)
    job = small_job(span_lines(150))
    fit_in_memory(job)
    return job.model


def test_spans_are_found_and_written_as_they_were_read(trained):
    assert trained.tags.scheme == "iob1"
    assert set(trained.tags.tags) >= {"B-LOC", "E-LOC", "I-LOC", "S-LOC", "S-PER", "O"}
    tags = trained.predict([["Mary", "Ann", "saw", "New", "York", "."]])
    assert tags == [["I-PER", "B-PER", "O", "I-LOC", "I-LOC", "O"]]
    (tagged,) = trained.tag([["Mary", "met", "Oslo", "."]])
    assert [tuple(span) for span in tagged.spans] == [(0, 1, "PER"), (2, 3, "LOC")]


def test_plain_text_is_parted_into_words(trained):
    (tagged,) = trained.tag(["Mary saw New York."])
    assert tagged.words == ["Mary", "saw", "New", "York", "."]
    assert trained.words_of("don't (stop) ￭") == ["don't", "(", "stop", ")", "￭"]


@both_decoders
def test_neighbours_and_batches_change_nothing(decoder):
    model = small_model(model__decoder=decoder)
    together = model.predict(SENTENCES * 40)
    assert together[:3] == [model.predict([sentence])[0] for sentence in SENTENCES]
    assert together == [tags for _ in range(40) for tags in together[:3]]
    few = list(model.tag(iter(SENTENCES), at_once=1))
    assert [tagged.tags for tagged in few] == together[:3]


def test_no_word_is_lost(trained):
    sentences = [[], ["", "Mary"], [], ["x" * 500, "\u2028", "<s>", "<pad>"]]
    found = list(trained.tag(sentences))
    assert [tagged.words for tagged in found] == sentences
    assert [len(tagged.tags) for tagged in found] == [0, 2, 0, 4]
    assert trained.predict([]) == []
    assert trained.predict(["", "  "]) == [[], []]


def test_ten_thousand_words_and_more(trained):
    words = [f"w{i % 97}" for i in range(10_000)]
    (tags,) = trained.predict([words])
    assert len(tags) == 10_000
    long = words * 2 + ["Mary", "saw", "Oslo", "."]
    (tagged,) = trained.tag([long])
    assert tagged.in_pieces
    assert tagged.words == long
    assert tagged.tags[MAX_WORDS:] == ["I-PER", "O", "I-LOC", "O"]


def test_crf_tags_are_always_legal():
    torch.manual_seed(3)
    model = small_model()  # untrained, so that all that is legal is so by the moves
    chance = np.random.default_rng(0)
    words = [*"abcdefgh", "Mary", "Oslo"]
    sentences = [
        [words[i] for i in chance.integers(len(words), size=n)] for n in chance.integers(1, 9, 200)
    ]
    encoded = model.encoder.encode(sentences)
    names = np.array(model.tags.tags)[model.best_tags(encoded)]
    inner = np.split(names, encoded.ends[:-1])
    assert all(first_break(tags.tolist(), "iobes") is None for tags in inner)
    for tags in model.predict(sentences):
        assert first_break(tags, "iob1") is None


@both_decoders
def test_probabilities_and_best_sequences_agree(decoder):
    torch.manual_seed(0)
    model = small_model(model__decoder=decoder)
    sentence = ["Mary", "saw", "Oslo"]
    probabilities = model.probabilities(sentence)
    assert probabilities.shape == (3, len(model.tags))
    np.testing.assert_allclose(probabilities.sum(1), 1.0, atol=1e-6)
    best = model.n_best(sentence, n=len(model.tags) ** 3)
    assert sum(p for _, p in best) == pytest.approx(1.0, abs=1e-5)
    assert [p for _, p in best] == sorted((p for _, p in best), reverse=True)
    assert best[0][0] == model.predict([sentence])[0]
    if decoder == "softmax":
        assert best[0][1] == pytest.approx(float(probabilities.max(1).prod()), rel=1e-5)


def test_one_sentence_at_a_time_must_have_words():
    with pytest.raises(ConfigError, match="the sentence has 0 words, but may have 1 to 20000"):
        small_model().probabilities([])
    with pytest.raises(ConfigError, match="n is 0, but must be at least 1"):
        small_model().n_best(["a"], n=0)


@both_decoders
def test_gradients_are_those_of_finite_differences(decoder):
    torch.manual_seed(0)
    sizes = ("embedding_size", "hidden_size", "character_embedding_size", "character_hidden_size")
    overrides = {"model__word_dropout": 0.0, **{f"model__{name}": 2 for name in sizes}}
    job = small_job(span_lines(3), model__decoder=decoder, **overrides)
    network, batch = job.model.network.double(), job.epoch(0, 0)[0]

    def loss() -> torch.Tensor:
        found = network.loss(batch)
        return found.total / found.count

    loss().backward()
    for name, parameter in network.named_parameters():
        found = relative_error(parameter.grad, numeric_gradient(loss, parameter.data))
        assert found < 1e-6, name


@pytest.mark.row("E-k")
@both_decoders
def test_the_loss_counts_words_and_no_padding(decoder):
    job = small_job(model__decoder=decoder, model__word_dropout=0.0)
    batch = next(b for b in job.epoch(0, 0) if not bool(b.sentences.mask.all()))
    loss = job.model.network.loss(batch)
    assert loss.count == int(batch.sentences.mask.sum())
    assert loss.carry is None
    with torch.no_grad():
        alone = [job.model.network.loss(job.batches.build(np.array([row]))) for row in range(60)]
        together = [job.model.network.loss(batch) for batch in job.epoch(0, 1)]
    expected = sum(float(loss.total) for loss in alone)
    assert sum(float(loss.total) for loss in together) == pytest.approx(expected, rel=1e-6)
    assert sum(loss.count for loss in together) == len(job.batches.encoded.words)


def test_files_bring_the_model_back():
    model = small_model()
    with torch.device("meta"):
        again = TagModel.restore(model.settings, model.files())
    assert all(parameter.is_meta for parameter in again.network.parameters())
    again.network.load_state_dict(model.network.state_dict(), assign=True)
    assert again.predict(SENTENCES) == model.predict(SENTENCES)
    assert again.files() == model.files()
    assert again.about() == model.about()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (None, r"tags\.json is missing"),
        (b"{", r"tags\.json: this is not valid JSON"),
        (b'{"tags":["B","A"],"scheme":"none","usual":[]}', "in code point order, each once"),
        (b'{"tags":[],"scheme":"none","usual":[]}', "a list of 1 to 10000 strings"),
        (b'{"tags":["A"],"scheme":"bilou","usual":[]}', "the scheme is 'bilou'"),
        (
            b'{"tags":["A"],"scheme":"none","usual":[0]}',
            r"one most frequent tag for each of \d+ words",
        ),
    ],
)
def test_a_wrong_file_of_tags_is_named(change, message):
    model = small_model()
    files = model.files()
    if change is None:
        del files["tags.json"]
    else:
        files["tags.json"] = change
    with pytest.raises(ValueError, match=message):
        TagModel.restore(model.settings, files)


def test_vectors_of_another_width_are_refused():
    vectors = WordVectors(["Mary"], np.zeros((1, 5), np.float32))
    with pytest.raises(ConfigError, match=r"model\.embedding_size is 12.*Set it to 5"):
        small_model().use_vectors(vectors)


def test_vectors_are_put_where_their_words_are():
    model = small_model(tokens__lowercase=False)
    vectors = WordVectors(["Mary", "oslo", "zzz"], np.ones((3, 12), np.float32))
    assert model.use_vectors(vectors) == 2
    rows = model.network.embedder.embedding.weight[model.encoder.words.encode(["Mary", "Oslo"])]
    assert bool((rows == 1.0).all())


def test_a_crf_of_too_many_tags_is_refused():
    lines = [f"w{i} T{i}" for i in range(1001)]
    with pytest.raises(ConfigError, match=r"there are 1001 tags, but a CRF.*may have 1000"):
        small_job(lines, model__decoder="crf")
    assert len(small_job(lines).model.tags) == 1001
