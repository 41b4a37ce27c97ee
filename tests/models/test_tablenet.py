import pytest
import torch

from wonderland.core import Spec, WonderlandError
from wonderland.models import TableNet


def net(**options):
    return TableNet(numbers=3, levels=[4, 2], outputs=2, sigmas=[0.1, 0.7], dropout=[0.0, 0.2], dim=8, **options)


def test_the_same_rows_for_all_or_rows_of_their_own():
    model, x = net().eval(), torch.cat([torch.randn(5, 3), torch.randint(0, 2, (5, 2)).float()], 1)
    torch.testing.assert_close(model(x), model(x.expand(2, 5, 5)))
    assert model(x).shape == (2, 5, 2)


def test_a_row_does_not_see_its_mates():
    model, x = net().eval(), torch.cat([torch.randn(6, 3), torch.zeros(6, 2)], 1)
    torch.testing.assert_close(model(x)[:, 2:3], model(x[2:3]))


def test_it_begins_without_the_line_and_the_line_is_linear():
    model = net()
    assert (model.line == 0).all()
    with torch.no_grad():
        model.line.fill_(1.0)
        for layer in (*model.hidden, model.head):
            layer.weight.zero_()
            layer.bias.zero_()
    x = torch.cat([torch.randn(4, 3), torch.zeros(4, 2)], 1)
    shift = torch.zeros(4, 5)
    shift[:, 0] = 2.0
    torch.testing.assert_close(model(x + shift) - model(x), torch.full((2, 4, 2), 2.0))


@pytest.mark.parametrize(("numbers", "levels"), [(3, []), (0, [4, 2])])
def test_numbers_alone_and_categories_alone(numbers, levels):
    model = TableNet(numbers=numbers, levels=levels, outputs=1)
    assert model(torch.zeros(4, numbers + len(levels))).shape == (2, 4, 1)


def test_it_survives_json_and_errors_speak():
    spec = TableNet.spec(numbers=2, levels=[3], outputs=2, sigmas=[0.1], dropout=[0.1])
    assert Spec.from_json(spec.to_json()) == spec
    with pytest.raises(WonderlandError) as caught:
        TableNet(numbers=2, levels=[], outputs=1, sigmas=[0.1], dropout=[0.1, 0.2])
    assert str(caught.value) == "TableNet needs a sigma and a dropout for each member, not 1 and 2."
    with pytest.raises(WonderlandError) as caught:
        TableNet(numbers=0, levels=[], outputs=1)
    assert (
        str(caught.value) == "TableNet needs at least one column, one output, one layer, and number_dim of at least 2."
    )
    with pytest.raises(WonderlandError) as caught:
        net()(torch.zeros(2, 9))
    assert str(caught.value) == "This model reads 5 columns, not 9."


def test_linear_members_have_no_hidden_layers_and_the_others_are_as_before():
    torch.manual_seed(0)
    model = TableNet(
        3, [4, 2], 2, sigmas=[0.1, 0.7, 0.2], dropout=[0.0, 0.2, 0.0], dim=8, linear=[False, True, False]
    ).eval()
    torch.nn.init.normal_(model.line)
    torch.nn.init.normal_(model.head.bias)
    plain = TableNet(3, [4, 2], 2, sigmas=[0.1, 0.7, 0.2], dropout=[0.0, 0.2, 0.0], dim=8).eval()
    plain.load_state_dict(model.state_dict())
    x = torch.cat([torch.randn(5, 3), torch.randint(0, 2, (5, 2)).float()], 1)
    outputs = model(x)
    torch.testing.assert_close(outputs[[0, 2]], plain(x)[[0, 2]])
    assert model.encode is not None
    assert model.embed is not None
    inputs = torch.cat([x[:, :3] * model.encode.scale[1], model.embed(x[:, 3:].expand(3, 5, 2))[1]], 1)
    torch.testing.assert_close(outputs[1], inputs @ model.line[1] + model.head.bias[1])
    for layer in model.hidden:
        torch.nn.init.constant_(layer.weight[1], torch.nan)
    assert model(x).isfinite().all()
