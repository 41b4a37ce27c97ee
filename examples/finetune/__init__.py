"""Fine-tuning published checkpoints: what each method learns, at what price, and that it goes back."""
