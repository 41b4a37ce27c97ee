"""A network that is sure of its mistakes, mended by every calibrator."""
