"""What a network over trees must beat: models that see the words below a node, but no tree."""

import numpy as np

from unrolled.tasks.shared.label_baselines import MAX_NUMBERS, Baselines, BaselineSizes
from unrolled.tasks.shared.linear_baseline import fit_linear
from unrolled.tasks.shared.mean_baseline import fit_mean_embedding
from unrolled.tasks.tree.data import ReadyTrees
from unrolled.tasks.tree.report import Phrases
from unrolled.text.labels import Labels
from unrolled.text.ragged import Ragged
from unrolled.text.tokens import SPECIALS

MOST_PHRASES = 100_000  # that the baselines are fitted on, whole sentences first


def fit_baselines(
    data: ReadyTrees, labels: Labels, *, vocabulary_size: int, seed: int
) -> Baselines:
    """The linear model of n-grams and the mean of embeddings, on every labelled phrase."""
    phrases, targets = labelled_phrases(data, seed)
    linear = fit_linear(phrases, targets, labels, level="word", vocabulary_size=vocabulary_size)
    tokens = max(len(SPECIALS), min(vocabulary_size, MAX_NUMBERS // len(labels)))
    sizes = BaselineSizes(len(linear.keys), linear.order, tokens)
    baselines = Baselines(labels, sizes, vocabulary_size=vocabulary_size)
    baselines.keep_linear(linear.keys, linear.idf, linear.weight, linear.bias)
    amounts = (vocabulary_size, len(labels))
    mean = fit_mean_embedding(phrases, targets, sizes=amounts, seed=seed)
    baselines.keep_mean(*mean)
    return baselines


def labelled_phrases(data: ReadyTrees, seed: int) -> tuple[Phrases, np.ndarray]:
    """The phrases of nodes that have a label, each kind of words and label once, and the labels.

    Of too many all sentences are kept, and what is drawn of the rest.
    """
    rows, targets = Phrases.of(data).rows, np.concatenate(list(data.targets))
    roots = np.zeros(len(targets), bool)
    roots[np.cumsum([len(each) for each in data.targets]) - 1] = True
    asked = np.flatnonzero(targets >= 0)
    if len(asked) > MOST_PHRASES:
        inner = asked[~roots[asked]]
        some = np.random.default_rng(seed).permutation(inner)
        kept = max(0, MOST_PHRASES - int(roots[asked].sum()))
        asked = np.sort(np.concatenate([asked[roots[asked]], some[:kept]]))
    chosen = Ragged(rows.values, rows.starts[asked], rows.lengths[asked])
    return Phrases(chosen), targets[asked]
