"""Recurrent language models: embedding, recurrent stack, softmax over the next token.

    P(x_1 … x_T) = Π_t P(x_t | x_1 … x_{t−1}),    P(· | x_<t) = softmax(W h_t + b)

The output matrix W may be the embedding matrix itself (tied: Inan et al. 2017, arXiv:1611.01462;
Press & Wolf 2017, arXiv:1608.05859). Dropout acts on embeddings, between layers and before the
softmax, with one mask a sequence where `variational` (Gal & Ghahramani 2016, arXiv:1512.05287).
"""

import torch
from torch import Tensor, nn

from unrolled.nn.dropout import Dropout
from unrolled.nn.output import Loss, summed_nats, token_nats
from unrolled.nn.recurrent import Recurrent
from unrolled.tasks.language.settings import LanguageSettings
from unrolled.tasks.shared.next_token import STEPS_AT_ONCE, NextToken, State
from unrolled.tasks.shared.stack import recurrent_stack
from unrolled.text.batch import Batch
from unrolled.text.tokens import END, PAD, START


class LanguageNetwork(NextToken):
    """The network of a recurrent language model.

    With direction "pair" a second stack reads each line from its end (Peters et al. 2018,
    arXiv:1802.05365, eq. 1): two language models that share embedding and softmax. Neither sees the
    token it predicts, and stepping uses the forward one.
    """

    def __init__(self, settings: LanguageSettings, vocabulary_size: int) -> None:
        super().__init__()
        E, H, V = settings.embedding, settings.hidden_size, vocabulary_size
        self.settings = settings
        # given a weight, it draws none: on the meta device that would import torch's compiler
        self.embedding = nn.Embedding(V, E, _weight=torch.empty(V, E))
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        self.stack = recurrent_stack(settings, E)
        self.backward_stack = recurrent_stack(settings, E) if settings.direction == "pair" else None
        self.dropout = Dropout(settings.dropout, variational=settings.variational)
        self.bias = nn.Parameter(torch.zeros(V))
        self.weight = None if settings.tied else nn.Parameter(torch.empty(V, H).uniform_(-0.1, 0.1))

    @property
    def output_weight(self) -> Tensor:
        """(V, H), the rows that the softmax compares the state with."""
        return self.embedding.weight if self.weight is None else self.weight

    def loss(self, batch: Batch, carry: State | None = None) -> Loss:
        """Teacher forcing: every token of the batch is predicted from the right ones before it."""
        hidden, targets, carry = self._states(batch, carry, self.stack)
        nats = summed_nats(hidden, self.output_weight, self.bias, targets)
        predictions = targets.numel()
        if self.backward_stack is not None:
            hidden, targets, _ = self._states(batch.reversed(), None, self.backward_stack)
            nats = nats + summed_nats(hidden, self.output_weight, self.bias, targets)
            predictions += targets.numel()
        return Loss(nats, predictions, carry if self.settings.context == "stream" else None)

    @torch.no_grad()
    def token_nats(
        self, batch: Batch, carry: State | None = None, *, backward: bool = False
    ) -> tuple[Tensor, State]:
        """Surprise at each token, in row order without padding, and the state at the end.

        For the backward model of a pair the batch is one that was reversed already.
        """
        stack = self.backward_stack if backward else self.stack
        assert stack is not None
        hidden, targets, last = self._states(batch, carry, stack)
        return token_nats(hidden, self.output_weight, self.bias, targets), last

    def _states(
        self, batch: Batch, carry: State | None, stack: Recurrent
    ) -> tuple[Tensor, Tensor, State]:
        """States before each real target (N, H), those targets (N,), the detached last state."""
        inputs, targets = batch.shifted()  # (B, T)
        lengths = batch.lengths - 1
        dense = bool((lengths == inputs.size(1)).all())
        reach = None if dense else lengths.clamp(min=1)
        h, last = stack(self.dropout(self.embed(inputs)), lengths=reach, state=carry)  # (B, T, H)
        hidden = self.dropout(h)
        last = tuple(part.detach() for part in last)
        if dense:
            return hidden.reshape(-1, hidden.size(2)), targets.reshape(-1), last
        real = torch.arange(inputs.size(1)) < lengths[:, None]  # (B, T)
        return hidden[real], targets[real], last

    def embed(self, tokens: Tensor) -> Tensor:
        """The vectors of tokens (…, E)."""
        vectors: Tensor = self.embedding(tokens)  # (…, E)
        if self.settings.first_input == "zero":
            vectors = vectors.masked_fill((tokens == PAD)[..., None], 0.0)
        return vectors

    @property
    def first(self) -> int:
        """The token before the first: nothing at all, START, or in a stream the line end."""
        if self.settings.first_input == "zero":
            return PAD
        return END if self.settings.context == "stream" else START

    @torch.inference_mode()
    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        """token (N,), state of N rows -> log-probabilities of the next (N, V), next state."""
        h, state = self.stack(self.embed(token[:, None]), state=state)  # (N, 1, H)
        return self.log_probabilities(h[:, 0]), state

    def log_probabilities(self, h: Tensor) -> Tensor:
        """Of the next token (N, V), after states of the stack (N, H)."""
        return torch.addmm(self.bias, h, self.output_weight.t()).log_softmax(dim=1)

    def writer(self) -> "Writer":
        """Steps of this network as it stands now."""
        return Writer(self)

    @torch.inference_mode()
    def select(self, state: State, rows: Tensor) -> State:
        """The state of these rows, in this order; a row may repeat."""
        return tuple(part[:, rows] for part in state)

    @torch.inference_mode()
    def read(self, tokens: Tensor) -> State:
        """The state after a prefix (N, T), which may be empty."""
        return self._read(tokens)[1]

    @torch.inference_mode()
    def after(self, batch: Batch) -> Tensor:
        """The state (B, H) of the last layer when all but each row's END is read."""
        embedded = self.embed(batch.tokens[:, :-1])
        _, state = self.stack(embedded, lengths=(batch.lengths - 1).clamp(min=1))
        last: Tensor = state[0][-1]
        return last

    @torch.inference_mode()
    def next_log_p(self, tokens: Tensor) -> Tensor:
        """In one go: the weights are made ready for the whole prefix, the last token among it."""
        return self.log_probabilities(self._read(tokens)[0][:, -1])

    def _read(self, tokens: Tensor) -> tuple[Tensor, State]:
        """What the stack says at the last tokens (N, t, H), and the state after them."""
        state, h = self.stack.start(tokens.size(0)), self.bias.new_zeros(tokens.size(0), 0, 0)
        for piece in torch.split(tokens, STEPS_AT_ONCE, dim=1):
            if piece.size(1):
                h, state = self.stack(self.embed(piece), state=state)
        return h, state


class Writer:
    """A language network that takes many steps: its stack's weights are made ready once."""

    def __init__(self, network: LanguageNetwork) -> None:
        self.network, self.stack = network, network.stack.prepared()

    @torch.inference_mode()
    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        """As the network's own."""
        h, state = self.stack.step(self.network.embed(token), state)  # (N, H)
        return self.network.log_probabilities(h), state

    def select(self, state: State, rows: Tensor) -> State:
        """As the network's own."""
        return self.network.select(state, rows)
