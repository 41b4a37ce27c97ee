"""What kind of answer does a question ask for? TextCNN on TREC."""
