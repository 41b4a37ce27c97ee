"""Kim's recipe: Adadelta, batches of 50, 25 epochs, dropout, short rows at the end; the best epoch by a tenth held out."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from examples.trec.questions import Questions
from wonderland import optim
from wonderland.models import TextCNN

BATCH, EPOCHS = 50, 25


def network(vocab: int, kinds: int) -> TextCNN:
    """The paper's sizes, word vectors drawn at random."""
    return TextCNN(vocab, kinds, dim=300, widths=[3, 4, 5], channels=100, dropout=0.5, max_norm=3)


def train(questions: Questions, vocab: int, kinds: int, *, seed: int, epochs: int = EPOCHS):
    """The model of the best epoch, judged on a tenth held out, and the share of right answers there: (epoch, share)."""
    torch.manual_seed(seed)
    order = torch.randperm(len(questions.kinds))
    own = round(0.9 * (len(order) // BATCH)) * BATCH
    mine, held = order[:own], order[own:]
    model = network(vocab, kinds)
    update = optim.Adadelta(model.parameters(), lr=1.0, rho=0.95, eps=1e-6)
    update.register_step_post_hook(lambda *_: model.constrain())
    best, kept, curve = -1.0, {}, []
    for epoch in range(epochs):
        for rows in mine[torch.randperm(own)].split(BATCH):
            loss = F.cross_entropy(model(shortened(questions.tokens[rows])), questions.kinds[rows])
            update.zero_grad()
            loss.backward()
            update.step()
        found = accuracy(model, Questions(questions.tokens[held], questions.kinds[held]))
        curve.append((epoch + 1, found))
        if found > best:
            best, kept = found, {name: value.clone() for name, value in model.state_dict().items()}
        print(f"seed {seed}, epoch {epoch + 1}: {found:.4f}", flush=True)
    model.load_state_dict(kept)
    return model, curve


def shortened(tokens: Tensor) -> Tensor:
    """Without the columns where all is padding, which change nothing."""
    return tokens[:, : int((tokens != 0).sum(1).max())]


@torch.no_grad()
def accuracy(model: nn.Module, questions: Questions) -> float:
    """The share of right answers."""
    model.eval()
    right = sum(
        int((model(shortened(tokens)).argmax(1) == kinds).sum())
        for tokens, kinds in zip(questions.tokens.split(250), questions.kinds.split(250), strict=True)
    )
    model.train()
    return right / len(questions.kinds)
