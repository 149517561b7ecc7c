"""``ncdiag expect`` as an operator and as a program call it."""

import itertools
import json
from pathlib import Path

import msgspec
import pytest
from typer.main import get_command

from ncdiag.cli import main

COMMANDS = dict(dict(get_command(main.app).commands)["expect"].commands)
NODE = """<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="17">
    <pci busid="0000:10:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:11:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90" rank="0" gdr="1">
          <nvlink target="0000:c0:00.0" count="18" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:12:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
        <nic>
          <net name="mlx5_0" dev="0" speed="SPEED" port="1" guid="0x1" maxconn="131072" gdr="1"/>
        </nic>
      </pci>
    </pci>
  </cpu>
</system>
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main.run(["expect", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    code, out, err = run(capsys, *arguments, "--format", "json")
    assert (code, err) == (0, "")
    document = msgspec.json.decode(out.encode())
    assert document["schema"] == "ncdiag/expect/1"
    assert isinstance(document, dict)
    return document


@pytest.fixture
def node(tmp_path: Path) -> Path:
    path = tmp_path / "gpu001.xml"
    path.write_text(NODE.replace("SPEED", "400000"))
    return path


def test_a_collective_as_text_fits_eighty_columns(capsys: pytest.CaptureFixture[str]) -> None:
    for name, nodes in itertools.product(
        ("h100-8x400g", "aws-p5", "gb200-nvl72", "l40s-pcie"), ("36", "37")
    ):
        code, out, err = run(
            capsys, "collective", "all_reduce", "--hardware", name, "--nodes", nodes, "--size", "8G"
        )
        assert (code, err) == (0, "")
        assert [line for line in out.splitlines() if len(line) > 80] == []
        assert "bound by" in out
        assert "derivation" in out
        assert "8 GiB in " in out


def test_a_collective_as_json_has_its_derivation_and_its_curve(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ("--hardware", "a100-8x200g", "--nodes", "4", "--size", "1M", "--algo", "ring")
    found = as_json(capsys, "collective", "all_reduce", *options)
    assert found["kind"] == "collective"
    assert (found["algorithm"], found["binding"], found["gpus"]) == ("ring", "NIC", 32)
    assert found["busbw_gb_per_s"] == pytest.approx(198.74, abs=0.01)
    derivation, curve, at = found["derivation"], found["curve"], found["at"]
    assert isinstance(derivation, list)
    assert derivation[-1]["gb_per_s"] == found["busbw_gb_per_s"]
    assert isinstance(curve, list)
    assert (curve[0]["size_bytes"], curve[-1]["size_bytes"]) == (8, 16 * 2**30)
    assert isinstance(at, dict)
    assert at in curve


def test_a_dump_is_a_machine(capsys: pytest.CaptureFixture[str], node: Path) -> None:
    found = as_json(capsys, "collective", "all_gather", "--topo", str(node), "--nodes", "2")
    assert (found["machine"], found["gpus"]) == ("gpu001.xml", 2)
    assert found["busbw_gb_per_s"] == pytest.approx(49.68, abs=0.01)


def test_a_pair_of_dumps_goes_at_the_rate_of_the_slower(
    capsys: pytest.CaptureFixture[str], node: Path, tmp_path: Path
) -> None:
    other = tmp_path / "gpu002.xml"
    other.write_text(NODE.replace("SPEED", "200000"))
    found = as_json(capsys, "pair", str(node), str(other))
    assert (found["kind"], found["binding"]) == ("hosts", "NIC")
    assert found["gb_per_s"] == pytest.approx(24.84, abs=0.01)
    code, out, _ = run(capsys, "pair", str(node), str(other))
    assert code == 0
    assert "gpu001.xml to gpu002.xml" in out
    assert "mlx5_0 to mlx5_0" in out


def test_gpus_of_one_host_and_of_two(capsys: pytest.CaptureFixture[str]) -> None:
    near = as_json(capsys, "pair", "--hardware", "h200-8x400g", "--gpus", "0,3")
    assert near["copy_gb_per_s"] == pytest.approx(391.5)
    far = as_json(capsys, "pair", "--hardware", "h200-8x400g", "--gpus", "0,3", "--between-hosts")
    assert far["copy_gb_per_s"] is None
    assert str(far["way"]).startswith("PXN")
    _, out, _ = run(capsys, "pair", "--hardware", "h200-8x400g", "--gpus", "0,3")
    assert "783 GB/s both ways" in out


def test_the_catalogue_is_listed_in_eighty_columns(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "hardware")
    assert code == 0
    assert [line for line in out.splitlines() if len(line) > 80] == []
    listed = as_json(capsys, "hardware")["machines"]
    assert isinstance(listed, list)
    assert len(listed) == len(out.splitlines()) - 1 >= 20
    code, out, _ = run(capsys, "hardware", "gb200-nvl72")
    assert code == 0
    assert "data sheet" in out


def test_a_picture_of_the_curve(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    picture = tmp_path / "curve.png"
    options = ("collective", "all_reduce", "--hardware", "h100-8x400g", "--png", str(picture))
    assert run(capsys, *options)[0] == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    code, out, err = run(capsys, *options)
    assert (code, out) == (2, "")
    assert "already there" in err
    assert run(capsys, *options, "--force")[0] == 0


@pytest.mark.parametrize("name", ["allreduce", "all-reduce", "AllReduce", "ALL_REDUCE"])
@pytest.mark.parametrize("algorithm", ["RING", "Ring", "ring"])
def test_names_are_taken_as_others_write_them(
    capsys: pytest.CaptureFixture[str], name: str, algorithm: str
) -> None:
    found = as_json(capsys, "collective", name, "--hardware", "h100-8x400g", "--algo", algorithm)
    assert (found["collective"], found["algorithm"]) == ("all_reduce", "ring")


@pytest.mark.parametrize(
    ("name", "algorithm", "hint"),
    [
        ("reduce_sctter", "ring", "did you mean reduce_scatter?"),
        ("all_reduce", "nvls_tre", "did you mean nvlstree?"),
        ("zzz", "ring", "choose from all_reduce, all_gather"),
        ("all_reduce", "zzz", "choose from auto, ring"),
        ("\x1b[31m" + "x" * 500, "ring", "choose from all_reduce"),
    ],
)
def test_another_name_is_answered_with_the_nearest_in_plain_words(
    capsys: pytest.CaptureFixture[str], name: str, algorithm: str, hint: str
) -> None:
    options = ("--hardware", "h100-8x400g", "--algo", algorithm)
    code, out, err = run(capsys, "collective", name, *options)
    assert (code, out) == (2, "")
    assert hint in err
    assert "Value error" not in err
    assert "\x1b" not in err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("collective", "all_reduce"), "name the machine"),
        (("collective", "all_reduce", "--hardware", "h10"), "did you mean"),
        (("collective", "all_redice", "--hardware", "h100-8x400g"), "all_redice"),
        (("collective", "all_reduce", "--hardware", "a100-8x200g", "--algo", "nvls"), "no NVLS"),
        (("collective", "all_reduce", "--hardware", "a100-8x200g", "--mtu", "1500"), "MTU"),
        (("collective", "all_reduce", "--hardware", "a100-8x200g", "--nodes", "-1"), "nodes"),
        (("collective", "all_reduce", "--hardware", "a100-8x200g", "--size", "0"), "size"),
        (("collective", "all_reduce", "--topo", "/no/such.xml"), "no/such.xml"),
        (("pair",), "name one machine or two"),
        (("pair", "--hardware", "a100-8x200g", "--gpus", "0"), "two numbers"),
        (("pair", "--hardware", "a100-8x200g", "--gpus", "0,99"), "has no GPU 99"),
        (("pair", "--hardware", "a100-8x200g", "--no-pxn"), "belong to --gpus"),
        (("hardware", "nothing"), "in the catalogue"),
    ],
)
def test_bad_input_is_one_clear_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], complaint: str
) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert complaint in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", 2),
        (b"\x00\xff" * 50, 2),
        (NODE[: len(NODE) // 2].encode(), 3),
        (b"graph", 2),
        (b"\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV18\t X \n", 2),
    ],
)
def test_a_file_that_is_no_dump_of_a_host_is_one_clear_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes, code: int
) -> None:
    path = tmp_path / "bad.xml"
    path.write_bytes(content)
    found, out, err = run(capsys, "collective", "all_reduce", "--topo", str(path))
    assert (found, out) == (code, "")
    assert "bad.xml" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_eighty_columns_and_every_option_has_some(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(capsys, name, "--help")
    assert code == 0
    assert [line for line in out.splitlines() if len(line) > 80] == []
    assert all((parameter.help or "").endswith((".", "1G.")) for parameter in COMMANDS[name].params)


def test_json_is_all_that_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "hardware", "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["kind"] == "hardware"
