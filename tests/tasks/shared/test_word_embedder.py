import numpy as np
import pytest
import torch
from networks import numeric_gradient, relative_error

from unrolled.errors import ConfigError
from unrolled.tasks.shared.word_embedder import CHARACTER_READERS, WordEmbedder
from unrolled.text.tokens import UNK
from unrolled.text.word_batch import WordBatch, WordBatches
from unrolled.text.word_encoder import WordEncoder

pytestmark = pytest.mark.arithmetic

SENTENCES = [["the", "rat", "ate", "the", "Rat"], ["rats", "eat"], ["a"]]
ENCODER = WordEncoder.build(SENTENCES)
every_reader = pytest.mark.parametrize("characters", CHARACTER_READERS)


def batch_of(sentences: list[list[str]]) -> WordBatch:
    data = WordBatches(ENCODER.encode(sentences), batch_tokens=1000)
    return data.build(np.arange(len(sentences)))


def embedder(characters: str = "lstm", **options: object) -> WordEmbedder:
    torch.manual_seed(0)
    return WordEmbedder(
        ENCODER.words.counts,
        len(ENCODER.characters),
        embedding_size=4,
        characters=characters,
        character_embedding_size=3,
        character_hidden_size=2,
        **options,
    ).double()


@every_reader
def test_a_word_has_one_vector_wherever_it_stands(characters):
    network = embedder(characters).eval()
    together = network(batch_of(SENTENCES))
    assert together.shape == (3, 5, network.output_size)
    for row, sentence in enumerate(SENTENCES):
        alone = network(batch_of([sentence]))[0]
        torch.testing.assert_close(together[row, : len(sentence)], alone, rtol=0, atol=1e-14)
    torch.testing.assert_close(together[0, 0], together[0, 3], rtol=0, atol=1e-14)


def test_the_last_states_of_both_directions():
    network, batch = embedder(), batch_of([["rat"]])
    stack, table = network.characters.stack, network.characters.embedding
    characters = torch.from_numpy(ENCODER.characters.encode("rat")).long()[None]
    y, _ = stack(table(characters))  # (1, 3, 2H)
    expected = torch.cat([y[0, -1, :2], y[0, 0, 2:]])
    torch.testing.assert_close(network(batch)[0, 0, 4:], expected, rtol=0, atol=1e-14)


def test_suffix_features_see_the_ends_alone():
    network = embedder("suffix").eval()
    words = ["thehate", "ttttthate", "thatt", "ahate", "hate"]
    with torch.no_grad():
        vectors = network(batch_of([words]))[0, :, 4:]
    far = (vectors - vectors[0]).abs().amax(1)
    assert far[1] < 1e-14  # t … h a t e
    assert far[2:].min() > 1e-3


@pytest.mark.row("A4")
@every_reader
def test_gradients_are_those_of_finite_differences(characters):
    network, batch = embedder(characters), batch_of(SENTENCES)
    weights = torch.randn_like(network(batch))

    def loss() -> torch.Tensor:
        return (network(batch) * weights)[batch.mask].sum()

    loss().backward()
    for name, parameter in network.named_parameters():
        found = relative_error(parameter.grad, numeric_gradient(loss, parameter.data))
        assert found < 1e-7, name


def test_rare_words_are_read_as_unknown_in_training_alone():
    network = embedder("none", word_dropout=1.0)
    batch = batch_of([["the", "rat"]] * 20_000)
    unknown = network.embedding.weight[UNK]
    shares = (network(batch) == unknown).all(2).double().mean(0)
    expected = torch.tensor([1 / 3, 1 / 2])  # 1 / (1 + count); "the" occurs twice, "rat" once
    torch.testing.assert_close(shares, expected.double(), rtol=0, atol=0.015)
    assert not bool((network.eval()(batch) == unknown).all(2).any())
    assert not bool((embedder("none")(batch) == unknown).all(2).any())


def test_the_same_seed_drops_the_same_words():
    network, batch = embedder(word_dropout=0.5), batch_of(SENTENCES)
    torch.manual_seed(3)
    first = network(batch)
    torch.manual_seed(3)
    assert torch.equal(first, network(batch))


@pytest.mark.row("A5")
@pytest.mark.parametrize("freeze", [True, False])
def test_pretrained_vectors_are_frozen_or_fine_tuned(freeze):
    network, batch = embedder(), batch_of(SENTENCES)
    before = network.embedding.weight.detach().clone()
    rows, vectors = torch.tensor([4, 6]), torch.randn(2, 4, dtype=torch.float64)
    network.use_vectors(rows, vectors, freeze=freeze)
    given = network.embedding.weight.detach().clone()
    assert torch.equal(given[rows], vectors)
    others = [row for row in range(len(given)) if row not in (4, 6)]
    assert torch.equal(given[others], before[others])
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.1)
    network(batch).square().sum().backward()
    optimizer.step()
    assert torch.equal(network.embedding.weight, given) == freeze


def test_on_the_meta_device_it_only_has_shapes():
    with torch.device("meta"):
        network = WordEmbedder(ENCODER.words.counts, 9, embedding_size=4, word_dropout=1.0)
    assert all(parameter.is_meta for parameter in network.parameters())
    assert not network.word_rates.is_meta
    assert "word_rates" not in network.state_dict()


def test_a_misspelt_reader():
    with pytest.raises(ConfigError, match=r"model\.characters is 'lsmt'.*Did you mean 'lstm'\?"):
        embedder("lsmt")
