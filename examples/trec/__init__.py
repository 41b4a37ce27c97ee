"""Classification of questions by the kind of their answer: TextCNN on TREC."""
