"""The cache of attention: what is kept, where it stands, and who may see it."""

import torch

from wonderland.nn.mixers.cache import forget, remember, standing, visible


def entries(*numbers):
    return torch.tensor(numbers, dtype=torch.float32).unsqueeze(-1)


def test_without_masks_places_have_no_width():
    cache = remember(None, entries([1, 2]), None, None, None)
    cache = remember(cache, entries([3]), torch.tensor([2]), None, None)
    assert cache[0].flatten().tolist() == [1, 2, 3]
    assert cache[1].shape == (1, 0)
    queries, keys = standing(*cache, 1, torch.tensor([2]), None)
    assert (queries.tolist(), keys.tolist()) == ([[2]], [[0, 1, 2]])


def test_with_the_first_mask_places_are_written_down():
    cache = remember(None, entries([1, 2], [5, 6]), None, None, None)
    mask = torch.tensor([[True, True], [True, False]])
    cache = remember(cache, entries([3, 4], [7, 0]), torch.tensor([2, 2]), mask, None)
    assert cache[1].tolist() == [[0, 1, 2, 3], [0, 1, 2, -1]]
    cache = remember(cache, entries([5], [8]), torch.tensor([4, 3]), None, None)
    assert cache[1].tolist() == [[0, 1, 2, 3, 4], [0, 1, 2, -1, 3]]
    assert standing(*cache, 1, torch.tensor([4, 3]), None)[0].tolist() == [[4], [3]]


def test_a_window_keeps_the_last_real_tokens_of_each_row():
    mask = torch.tensor([[True] * 4, [True, True, True, False]])
    cache = remember(None, entries([1, 2, 3, 4], [5, 6, 7, 0]), None, mask, 3)
    kept, places = forget(*cache, 3)
    assert sorted(kept[0].flatten().tolist()) == [3, 4]
    assert sorted(kept[1].flatten().tolist()) == [6, 7]
    assert places.sort(1).values.tolist() == [[2, 3], [1, 2]]


def test_a_window_of_a_long_piece_does_not_keep_it_alive():
    kept, _ = forget(torch.randn(1, 100, 8), torch.empty(1, 0, dtype=torch.int64), 5)
    assert kept.untyped_storage().nbytes() == 4 * 4 * 8


def test_queries_see_the_past_the_window_and_no_padding():
    queries, keys = torch.tensor([[2, 3]]), torch.tensor([[0, 1, 2, -1, 3]])
    assert visible(queries, keys, True, None)[0, 0].int().tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 0, 1]]
    assert visible(queries, keys, True, 2)[0, 0].int().tolist() == [[0, 1, 1, 0, 0], [0, 0, 1, 0, 1]]
    assert visible(queries, keys, False, None)[0, 0].int().tolist() == [[1, 1, 1, 0, 1]]
    assert visible(queries, keys, False, 2)[0, 0].int().tolist() == [[0, 1, 1, 0, 1], [0, 0, 1, 0, 1]]


def test_a_query_with_nothing_to_see_sees_everything_rather_than_nan():
    assert visible(torch.tensor([[0]]), torch.tensor([[-1, -1]]), True, None).all()
