"""Every recommender on MovieLens-100k in one table."""
