"""How a profile gets into the environment of what measures."""

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from ncdiag.cli.sweep_profile import check_unchanged, variables_for
from ncdiag.measure.engines.torch.child import set_environment
from ncdiag.measure.engines.torch.placement import Place
from ncdiag.measure.engines.torch.processes import (
    OWN_VARIABLES,
    nccl_settings,
    rail_process,
    shared_process,
)
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Nic, NicKind


def test_names_keep_their_values_and_the_engine_has_the_last_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "environ", {"NCCL_ALGO": "Ring", "NCCL_NET": "IB", "NCCL_PROTO": "LL"})
    os.environ["TORCH_CPP_LOG_LEVEL"] = "INFO"
    set_environment(["NCCL_ALGO", "NCCL_NET", "TORCH_CPP_LOG_LEVEL", "NCCL_NET=Socket"])
    assert os.environ == {
        "NCCL_ALGO": "Ring",
        "NCCL_NET": "Socket",
        "OMP_NUM_THREADS": "1",
        "TORCH_CPP_LOG_LEVEL": "INFO",
    }


def test_values_stand_in_no_argument() -> None:
    variables = {"NCCL_ALGO": "a value", "MY_NAME": "another"}
    for spec in (shared_process(variables), rail_process("rail", ["NCCL_NET=IB"], variables)):
        assert spec.env == variables
        assert {"NCCL_ALGO", "MY_NAME"} <= set(spec.argv)
        assert not any("a value" in word or "another" in word for word in spec.argv)
    assert shared_process({}).argv[-1] == "gloo"


@pytest.mark.parametrize("hca", [None, "mlx5_0"])
def test_everything_that_the_engine_sets_is_its_own(hca: str | None) -> None:
    nic = Nic(name="x", kind=NicKind.INFINIBAND, interface="ib0", hca=hca, hca_port=1)
    names = {setting.partition("=")[0] for setting in nccl_settings(nic, 0, "eth0")}
    assert names <= OWN_VARIABLES
    assert Place("gpu1", "p", "10.0.0.1").settings == ()


def test_what_the_engine_decides_is_left_out_of_a_profile_and_told() -> None:
    told = io.StringIO()
    variables = variables_for("ib-ndr", "torch", Console(file=told, width=500))
    assert variables["NCCL_IB_TIMEOUT"] == "22"
    assert not variables.keys() & OWN_VARIABLES
    assert "NCCL_IB_HCA, NCCL_NET, NCCL_SOCKET_IFNAME" in told.getvalue()
    assert variables_for(None, "torch", Console(quiet=True)) == {}


def test_a_profile_that_is_refused_is_told_in_the_one_line_of_its_error(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        'title = "T"\nsource = "S"\nextends = "ib-ndr"\n[settings]\n'
        'NCCL_SOCKET_IFNA = { value = "={nic.socket}", reason = "R" }\n'
    )
    told = io.StringIO()
    with pytest.raises(UsageError, match="NCCL_SOCKET_IFNA differs from host to host"):
        variables_for(str(own), "torch", Console(file=told))
    assert told.getvalue() == ""


def test_a_sweep_is_resumed_only_with_the_profile_that_it_began_with(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    text = 'title = "T"\nsource = "S"\n[settings]\nNCCL_ALGO = { value = "Ring", reason = "R" }\n'
    own.write_text(text)
    check_unchanged(str(own), {"NCCL_ALGO": "Ring"}, "torch")
    check_unchanged(None, {}, "torch")
    for variables in ({}, {"NCCL_ALGO": "Ring", "LD_PRELOAD": "/evil.so"}):
        with pytest.raises(UsageError, match="has changed since the sweep began"):
            check_unchanged(str(own), variables, "torch")
    with pytest.raises(UsageError, match="has changed"):
        check_unchanged(None, {"LD_PRELOAD": "/evil.so"}, "torch")
