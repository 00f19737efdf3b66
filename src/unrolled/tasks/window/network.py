"""Fixed-window language models: the last n tokens, one hidden layer, softmax over the next token.

    x = [e¹; …; eⁿ]                       embeddings of the last n tokens, the oldest first
    h = tanh(W x + b₁)
    ŷ = softmax(U h + b₂)                 plain
    ŷ = softmax(U h + W³ x + b₂)          with direct connections

Bengio et al. 2003, "A neural probabilistic language model", JMLR 3, eq. 1. The embedding matrix is
shared by the slots, while each slot has its own block of W: a window longer by one token has H·E
weights more. U may be the embedding matrix itself (tied: Press & Wolf 2017, arXiv:1608.05859).
Before a text begins, every slot holds the token `first`. Dropout acts on h, and on x less: of two
words before, hardly anything may be missed.
"""

import torch
from torch import Tensor, nn

from unrolled.nn.dropout import Dropout
from unrolled.nn.output import Loss, summed_nats, token_nats
from unrolled.tasks.shared.next_token import NextToken, State
from unrolled.tasks.window.settings import WindowSettings
from unrolled.text.batch import Batch
from unrolled.text.tokens import END, START


class WindowNetwork(NextToken):
    """The network of a fixed-window language model; its state is the last n tokens (N, n)."""

    def __init__(self, settings: WindowSettings, vocabulary_size: int) -> None:
        super().__init__()
        E, H, V, slots = settings.embedding, settings.hidden_size, vocabulary_size, settings.window
        self.settings = settings
        # given a weight, it draws none: on the meta device that would import torch's compiler
        self.embedding = nn.Embedding(V, E, _weight=torch.empty(V, E))
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        self.hidden = nn.Linear(slots * E, H)
        self.dropout, self.input_dropout = (
            Dropout(share) for share in (settings.dropout, settings.input_dropout)
        )
        self.bias = nn.Parameter(torch.zeros(V))
        self.weight = None if settings.tied else nn.Parameter(torch.empty(V, H).uniform_(-0.1, 0.1))
        self.direct = nn.Parameter(torch.zeros(V, slots * E)) if settings.direct else None

    @property
    def first(self) -> int:
        """The token before the first: START, or in a stream the line end."""
        return END if self.settings.context == "stream" else START

    def loss(self, batch: Batch, carry: State | None = None) -> Loss:
        """Teacher forcing: every token of the batch is predicted from the right ones before it."""
        windows, targets, last = self._windows(batch, carry)
        nats = summed_nats(self._features(windows), self._output(), self.bias, targets)
        return Loss(nats, targets.numel(), last if self.settings.context == "stream" else None)

    @torch.no_grad()
    def token_nats(
        self, batch: Batch, carry: State | None = None, *, backward: bool = False
    ) -> tuple[Tensor, State]:
        """Surprise at each token, in row order without padding, and the last tokens of each row."""
        assert not backward, "a window model reads forward"
        windows, targets, last = self._windows(batch, carry)
        return token_nats(self._features(windows), self._output(), self.bias, targets), last

    @torch.inference_mode()
    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        """token (N,), state of N rows -> log-probabilities of the next (N, V), next state."""
        window = torch.cat([state[0][:, 1:], token[:, None]], dim=1)  # (N, n)
        logits = torch.addmm(self.bias, self._features(window), self._output().t())  # (N, V)
        return logits.log_softmax(dim=1), (window,)

    @torch.inference_mode()
    def select(self, state: State, rows: Tensor) -> State:
        """The state of these rows, in this order; a row may repeat."""
        return tuple(part[rows] for part in state)

    @torch.inference_mode()
    def read(self, tokens: Tensor) -> State:
        """The state after a prefix (N, T), which may be empty."""
        return (torch.cat([*self._start(len(tokens)), tokens], dim=1)[:, -self.settings.window :],)

    def _start(self, rows: int) -> State:
        return (torch.full((rows, self.settings.window), self.first),)

    def _windows(self, batch: Batch, carry: State | None) -> tuple[Tensor, Tensor, State]:
        """The window before each real target (N, n), those targets (N,), each row's last tokens."""
        inputs, targets = batch.shifted()  # (B, T)
        (before,) = carry or self._start(len(inputs))  # (B, n)
        n, lengths = before.size(1), batch.lengths - 1
        tokens = torch.cat([before, inputs], dim=1)  # (B, n + T)
        windows = tokens.unfold(1, n, 1)  # (B, 1 + T, n): row t holds the tokens before input t
        last = windows[torch.arange(len(inputs)), lengths]  # (B, n)
        real = torch.arange(inputs.size(1)) < lengths[:, None]  # (B, T)
        return windows[:, 1:][real], targets[real], (last,)

    def _features(self, windows: Tensor) -> Tensor:
        """What the softmax compares tokens with: h, and with direct connections [h; x]."""
        x = self.input_dropout(self.embedding(windows).flatten(1))  # (N, n·E)
        h = self.dropout(torch.tanh(self.hidden(x)))  # (N, H)
        return h if self.direct is None else torch.cat([h, x], dim=1)  # (N, H + n·E)

    def _output(self) -> Tensor:
        """U, and with direct connections [U, W³]."""
        weight = self.embedding.weight if self.weight is None else self.weight  # (V, H)
        return weight if self.direct is None else torch.cat([weight, self.direct], dim=1)
