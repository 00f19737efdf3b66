"""Encoder and decoder: one sequence read, another written.

    P(y | x) = Π_t P(y_t | y_<t, x),    P(· | y_<t, x) = softmax(W r_t + b)

The encoder's last state is the decoder's first (Sutskever et al. 2014, arXiv:1409.3215). r_t is
the decoder's state s_t or, with attention, tanh(W_r [c_t; s_t]) (Luong et al. 2015,
arXiv:1508.04025, eq. 5). Where attention does not feed back into the state, the whole target runs
through the decoder at once.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.nn.attention import Attention, Memory
from unrolled.nn.dropout import Dropout
from unrolled.nn.output import Loss, summed_nats, token_nats
from unrolled.nn.prepared import Prepared
from unrolled.nn.recurrent import Recurrent
from unrolled.nn.rows import find_rows
from unrolled.nn.unroll import reverse
from unrolled.tasks.shared.stack import recurrent_stack
from unrolled.tasks.translate.settings import TranslateSettings
from unrolled.text.batch import Batch
from unrolled.text.pair_batch import PairBatch

Stacked = tuple[Tensor, ...]  # the states of a stack, each (L, N, H)


class DecoderState(NamedTuple):
    """N rows of a decoder over B ≤ N sources: row n writes for source n // (N / B)."""

    stack: Stacked
    summary: Tensor | None  # (N, H) the encoder's last state, where every step sees it
    fed: Tensor | None  # (N, R) what went to the softmax, where the next step sees it
    memory: Memory | None  # (B, S, D)
    steps: Prepared | None = None  # the decoder, made ready for many steps

    @property
    def rows(self) -> int:
        return self.stack[0].size(1)


class TranslateNetwork(nn.Module):
    """The network of a sequence-to-sequence model; a Stepper. Without `target_size`: joint."""

    def __init__(
        self, settings: TranslateSettings, source_size: int, target_size: int | None
    ) -> None:
        super().__init__()
        self.settings = settings
        E, H, V = settings.embedding, settings.hidden_size, target_size or source_size
        self.target_embedding = _embedding(V, E)
        self.source_only = _embedding(source_size, E) if target_size else None
        self.encoder = recurrent_stack(settings, E)
        D, attends = self.encoder.output_size, settings.attention != "none"
        self.attention = (
            Attention(
                settings.attention,
                H,
                D,
                size=settings.attention_size,
                span=settings.attention_span,
            )
            if attends
            else None
        )
        R = E if attends else H
        self.readout = _matrix(R, D + H) if attends else None
        others = H * (settings.decoder_input == "all") + R * settings.feed
        others += D * (settings.placement == "bahdanau")
        blind = settings.decoder_input == "none" and not settings.shared
        self.token_size = E if not blind else 0 if others else 1  # a step must see something
        self.decoder_only = (
            None if settings.shared else _decoder(settings, self.token_size + others)
        )
        self.bridge = (
            nn.ParameterList(_matrix(H, 2 * H) for _ in range(self.encoder.cell.state_size))
            if settings.bidirectional
            else None
        )
        self.bias = nn.Parameter(torch.zeros(V))
        self.weight = None if settings.tied else _matrix(V, R)
        self.dropout = Dropout(settings.dropout, variational=settings.variational)

    @property
    def source_embedding(self) -> nn.Embedding:
        """The target's own where the vocabulary is joint."""
        return self.source_only or self.target_embedding

    @property
    def decoder(self) -> Recurrent:
        """The encoder itself where one stack reads and writes."""
        return self.decoder_only or self.encoder

    @property
    def output_weight(self) -> Tensor:
        """(V, R), the rows that the softmax compares the readout with."""
        return self.target_embedding.weight if self.weight is None else self.weight

    def loss(self, batch: PairBatch, carry: Stacked | None = None) -> Loss:
        """Teacher forcing, or a share of the model's own predictions where `sampling` asks."""
        start = self.encode(batch.source)
        inputs, _ = batch.target.shifted()
        if self.training and self.settings.sampling:
            inputs = self._with_own_tokens(inputs, start, batch.target.lengths - 1)
        hidden, targets = self._readouts(inputs, batch.target, start)
        smoothing = self.settings.label_smoothing if self.training else 0.0
        nats = summed_nats(hidden, self.output_weight, self.bias, targets, smoothing=smoothing)
        return Loss(nats, targets.numel(), None)

    @torch.inference_mode()
    def target_nats(self, batch: PairBatch) -> Tensor:
        """Surprise at each token of the targets, END among them, in row order (N,)."""
        inputs, _ = batch.target.shifted()
        hidden, targets = self._readouts(inputs, batch.target, self.encode(batch.source))
        return token_nats(hidden, self.output_weight, self.bias, targets)

    @torch.inference_mode()
    def alignment(self, batch: PairBatch) -> Tensor | None:
        """How much each target token looked at each source token: (B, T − 1, S)."""
        inputs, _ = batch.target.shifted()
        return self._decode(inputs, self.encode(batch.source), batch.target.lengths - 1)[1]

    def encode(self, source: Batch) -> DecoderState:
        """Read the sources (B, S); the state of a decoder that has written nothing."""
        embedded = self.dropout(self.source_embedding(source.tokens))  # (B, S, E)
        rows = find_rows(embedded, source.lengths)
        turned = reverse(embedded, rows) if self.settings.reverse_source else embedded
        h, last = self.encoder(turned, lengths=source.lengths)  # (B, S, D)
        state = self._bridged(last)
        memory = None
        if self.attention is not None:
            h = reverse(h, rows) if self.settings.reverse_source else h
            memory = self.attention.remember(self.dropout(h), rows.padding_mask)
        return DecoderState(
            state,
            state[0][-1] if self.settings.decoder_input == "all" else None,
            h.new_zeros(len(h), self.settings.embedding) if self.settings.feed else None,
            memory,
            self.decoder.prepared() if torch.is_inference_mode_enabled() else None,
        )

    def _bridged(self, last: Stacked) -> Stacked:
        """The encoder's last states (L·D, B, H) as first ones (L, B, H) of the decoder."""
        if self.bridge is None:
            return last
        L, (B, H) = self.settings.layers, last[0].shape[1:]
        both = [part.view(L, 2, B, H).transpose(1, 2).reshape(L, B, 2 * H) for part in last]
        made = [functional.linear(part, w) for part, w in zip(both, self.bridge, strict=True)]
        return torch.tanh(made[0]), *made[1:]

    def _readouts(
        self, inputs: Tensor, target: Batch, start: DecoderState
    ) -> tuple[Tensor, Tensor]:
        """What the softmax sees for each real target (N, R), and these targets (N,)."""
        readouts, _ = self._decode(inputs, start, target.lengths - 1)
        real = target.mask[:, 1:]  # (B, T)
        return self.dropout(readouts)[real], target.tokens[:, 1:][real]

    def _decode(
        self, inputs: Tensor, start: DecoderState, lengths: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """Given the tokens before each (B, T): readouts (B, T, R), weights (B, T, S)."""
        embedded = self._inputs(inputs)  # (B, T, E)
        if not self.settings.steps_alone:
            return self._at_once(embedded, start, lengths)
        readouts, weights, state = [], [], start
        for x in embedded.unbind(1):
            readout, looked, state = self._step(x, state)
            readouts.append(readout)
            weights.append(looked)
        return torch.stack(readouts, dim=1), torch.stack(weights, dim=1)

    def _inputs(self, tokens: Tensor) -> Tensor:
        if self.settings.decoder_input == "none":
            return self.bias.new_zeros(*tokens.shape, self.token_size)
        vectors: Tensor = self.dropout(self.target_embedding(tokens))  # (B, T, E)
        return vectors

    def _at_once(
        self, x: Tensor, start: DecoderState, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        if start.summary is not None:
            summary = start.summary[:, None].expand(-1, x.size(1), -1)
            x = torch.cat([x, summary], dim=2)  # (B, T, E + H)
        s, _ = self.decoder(x, lengths=lengths, state=start.stack)  # (B, T, H)
        if self.attention is None or start.memory is None:
            return s, None
        context, weights = self.attention(s, start.memory)
        return self._read(context, s), weights

    def _read(self, context: Tensor, s: Tensor) -> Tensor:
        assert self.readout is not None
        return torch.tanh(functional.linear(torch.cat([context, s], dim=-1), self.readout))

    def _step(self, x: Tensor, state: DecoderState) -> tuple[Tensor, Tensor, DecoderState]:
        """One step: x (N, E) -> readout (N, R), weights (N, S), next state."""
        context = weights = x.new_zeros(len(x), 0)
        if self.settings.placement == "bahdanau":
            context, weights = self._attend(state.stack[0][-1], state)
        parts = (x, state.summary, state.fed, context)
        seen = torch.cat([part for part in parts if part is not None], dim=1)
        if state.steps is not None:
            s, stack = state.steps.step(seen, state.stack)  # (N, H)
        else:
            h, stack = self.decoder(seen[:, None], state=state.stack)  # (N, 1, H)
            s = h[:, 0]
        readout = s
        if self.settings.placement == "luong":
            context, weights = self._attend(s, state)
        if self.attention is not None:
            readout = self._read(context, s)
        fed = None if state.fed is None else readout
        return readout, weights, state._replace(stack=stack, fed=fed)

    def _attend(self, query: Tensor, state: DecoderState) -> tuple[Tensor, Tensor]:
        """A query (N, H) a row; the rows of one source ask its memory together."""
        if self.attention is None or state.memory is None:
            return query.new_zeros(len(query), 0), query.new_zeros(len(query), 0)
        B = len(state.memory.values)
        context, weights = self.attention(query.view(B, -1, query.size(1)), state.memory)
        return context.flatten(0, 1), weights.flatten(0, 1)

    @torch.no_grad()
    def _with_own_tokens(self, inputs: Tensor, start: DecoderState, lengths: Tensor) -> Tensor:
        """Inputs (B, T), a share of them replaced by what the model would have written.

        Scheduled sampling (Bengio et al. 2015, arXiv:1506.03099) in two passes: the predictions
        come from a first one over the right tokens (Duckworth et al. 2019, arXiv:1906.04331).
        """
        readouts, _ = self._decode(inputs, start, lengths)
        said = functional.linear(readouts, self.output_weight, self.bias).argmax(dim=2)  # (B, T)
        before = torch.cat([inputs[:, :1], said[:, :-1]], dim=1)  # (B, T)
        return torch.where(torch.rand(inputs.shape) < self.settings.sampling, before, inputs)

    @torch.inference_mode()
    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """token (N,), state of N rows -> log-probabilities of the next (N, V), next state."""
        readout, _, state = self._step(self._inputs(token[:, None])[:, 0], state)
        logits = torch.addmm(self.bias, readout, self.output_weight.t())  # (N, V)
        return logits.log_softmax(dim=1), state

    @torch.inference_mode()
    def select(self, state: DecoderState, rows: Tensor) -> DecoderState:
        """The state of these rows, in this order; a row may repeat."""
        stack = tuple(part.index_select(1, rows) for part in state.stack)
        summary, fed = (
            None if part is None else part.index_select(0, rows)
            for part in (state.summary, state.fed)
        )
        memory = state.memory
        if memory is not None:
            memory = _memory_of(memory, rows * len(memory.padding_mask) // state.rows)
        return DecoderState(stack, summary, fed, memory, state.steps)


def _memory_of(memory: Memory, which: Tensor) -> Memory:
    """The memory for rows that write for these sources (N,).

    Where every source has the same number of rows, one after the other, they share it; else each
    row has its own.
    """
    sources, counts = torch.unique_consecutive(which, return_counts=True)
    even = bool((counts == counts[:1]).all())
    wanted = sources if even else which
    B = len(memory.padding_mask)
    if len(wanted) == B and torch.equal(wanted, torch.arange(B)):
        return memory
    return memory.rows(wanted)


def _decoder(settings: TranslateSettings, inputs: int) -> Recurrent:
    return recurrent_stack(settings.model_copy(update={"bidirectional": False}), inputs)


def _embedding(size: int, features: int) -> nn.Embedding:
    # given a weight, it draws none: on the meta device that would import torch's compiler
    made = nn.Embedding(size, features, _weight=torch.empty(size, features))
    nn.init.uniform_(made.weight, -0.1, 0.1)
    return made


def _matrix(rows: int, columns: int) -> nn.Parameter:
    bound = columns**-0.5
    return nn.Parameter(torch.empty(rows, columns).uniform_(-bound, bound))
