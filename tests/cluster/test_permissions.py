"""A runner whose user lacks a right is refused with the name of that right, before it creates anything."""

import io

import pytest
from rich.console import Console
from runs import Site, make_cells
from users import Right, connect_as_runner, list_rights

from bench.errors import UserError
from control_plane import ControlPlane


@pytest.mark.parametrize("right", list_rights(), ids="-".join)
def test_a_run_without_one_of_its_rights_creates_nothing(site: Site, control_plane: ControlPlane, right: Right) -> None:
    limited = connect_as_runner(site.connection, control_plane, site.namespace, without=right)
    setup = site.make_setup(make_cells(2))
    console = Console(file=io.StringIO())

    with pytest.raises(UserError) as error:
        setup.make_cluster_run().measure(setup.run, limited, setup.observed, console)

    group, resource, verb = right
    name = f"{resource}.{group}" if group else resource
    assert f"lacks rights in namespace {site.namespace} that a run needs: {verb} {name} (to " in str(error.value)
    assert f"`benchmatrix setup --on {limited.context} --namespace {site.namespace} --user " in str(error.value)
    assert setup.list_jobs() == []
