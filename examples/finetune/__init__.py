"""Fine-tuning published checkpoints: the loss and the number of trained parameters of each method, and saving for transformers."""
