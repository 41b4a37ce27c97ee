"""Kim's recipe: Adadelta, batches of 50, 25 epochs, dropout, max-norm constraint; the epoch is chosen on a tenth held out."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from examples.trec.questions import Questions
from wonderland import optim
from wonderland.models import TextCNN

BATCH, EPOCHS = 50, 25


def network(vocab: int, kinds: int) -> TextCNN:
    """The paper's sizes, with random word vectors."""
    return TextCNN(vocab, kinds, dim=300, widths=[3, 4, 5], channels=100, dropout=0.5, max_norm=3)


def train(questions: Questions, vocab: int, kinds: int, *, seed: int, epochs: int = EPOCHS):
    """The model of the best epoch on a tenth held out, and the curve (epoch, accuracy)."""
    torch.manual_seed(seed)
    order = torch.randperm(len(questions.kinds))
    size = round(0.9 * (len(order) // BATCH)) * BATCH
    training, held_out = order[:size], order[size:]
    model = network(vocab, kinds)
    optimizer = optim.Adadelta(model.parameters(), lr=1.0, rho=0.95, eps=1e-6)
    optimizer.register_step_post_hook(lambda *_: model.constrain())
    best, best_weights, curve = -1.0, {}, []
    for epoch in range(epochs):
        for rows in training[torch.randperm(size)].split(BATCH):
            loss = F.cross_entropy(model(shortened(questions.tokens[rows])), questions.kinds[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        correct = accuracy(model, Questions(questions.tokens[held_out], questions.kinds[held_out]))
        curve.append((epoch + 1, correct))
        if correct > best:
            best, best_weights = correct, {name: value.clone() for name, value in model.state_dict().items()}
        print(f"seed {seed}, epoch {epoch + 1}: {correct:.4f}", flush=True)
    model.load_state_dict(best_weights)
    return model, curve


def shortened(tokens: Tensor) -> Tensor:
    """Without columns that are only padding."""
    return tokens[:, : int((tokens != 0).sum(1).max())]


@torch.no_grad()
def accuracy(model: nn.Module, questions: Questions) -> float:
    """The share of correct predictions."""
    model.eval()
    right = sum(
        int((model(shortened(tokens)).argmax(1) == kinds).sum())
        for tokens, kinds in zip(questions.tokens.split(250), questions.kinds.split(250), strict=True)
    )
    model.train()
    return right / len(questions.kinds)
