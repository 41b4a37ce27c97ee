"""Networks that read speech, from waveforms or from log-mel spectrograms."""
