"""Profile files: found by name or path, laid over each other, and refused in one clear line."""

import os
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ncdiag.model.environment import Profile
from ncdiag.model.errors import UsageError
from ncdiag.profiles import placeholders, profile_files
from ncdiag.profiles.placeholders import HostValues
from ncdiag.profiles.toml_bounds import excess
from ncdiag.profiles.versions import in_range, join_ranges, parse_version

ROOT = Path(__file__).parents[2]
HEAD = 'title = "T"\nsource = "S"\n'
Write = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "ncdiag/profiles"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def write(own: Path) -> Write:
    def write(name: str, text: str) -> Path:
        path = own / f"{name}.toml"
        path.write_text(text)
        return path

    return write


def setting(name: str, value: str) -> str:
    return f'[settings.{name}]\nvalue = {value}\nreason = "R"\n'


def values(profile: Profile) -> dict[str, str | None]:
    return {one.name: one.value for one in profile.settings}


def test_a_profile_of_the_user_wins_over_one_that_is_shipped(write: Write) -> None:
    path = write("debug", HEAD + setting("NCCL_DEBUG", '"TRACE"'))
    profile = profile_files.load("debug")
    assert values(profile) == {"NCCL_DEBUG": "TRACE"}
    assert profile.path == str(path)
    assert profile.settings[0].place == f"{path}:3"
    assert "debug" in [one.name for one in profile_files.available()]


def test_a_profile_of_the_user_can_extend_the_shipped_one_of_its_name(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("ib-ndr", HEAD + 'extends = "ib-ndr"\n' + setting("NCCL_IB_SL", "1"))
    shipped = _shipped("ib-ndr")
    assert values(profile_files.load("ib-ndr")) == {**values(shipped), "NCCL_IB_SL": "1"}
    assert values(profile_files.load("gb200-nvl72"))["NCCL_IB_SL"] == "1"
    monkeypatch.chdir(path.parent)
    assert values(profile_files.load("./ib-ndr.toml"))["NCCL_IB_SL"] == "1"


def _shipped(name: str) -> Profile:
    return profile_files.load(str(profile_files.SHIPPED / f"{name}.toml"))


def test_later_bases_win_over_earlier_ones_and_own_settings_over_all(write: Write) -> None:
    write("one", HEAD + 'nccl = ">=2.10"\n' + setting("A", '"1"') + setting("B", '"1"'))
    write("two", HEAD + 'nccl = ">=2.18, <2.30"\n' + setting("B", '"2"') + setting("C", "3"))
    write("all", HEAD + 'extends = ["one", "two"]\n[settings]\nA = { unset = true, reason = "R" }')
    profile = profile_files.load("all")
    assert values(profile) == {"A": None, "B": "2", "C": "3"}
    assert profile.nccl == ">=2.18, <2.30"
    assert profile.extends == ("one", "two")


def test_a_path_is_taken_from_the_folder_of_the_profile_that_names_it(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "base.toml").write_text(HEAD + setting("A", '"1"'))
    (folder / "top.toml").write_text(HEAD + 'extends = "./base.toml"\n')
    assert values(profile_files.load(str(folder / "top.toml"))) == {"A": "1"}


@pytest.mark.parametrize(
    ("files", "circle"),
    [
        ({"a": "a"}, "a -> a"),
        ({"a": "b", "b": "c", "c": "a"}, "a -> b -> c -> a"),
        ({"a": "b", "b": "b"}, "b -> b"),
    ],
)
def test_a_profile_that_extends_itself_is_one_error(
    write: Write, files: dict[str, str], circle: str
) -> None:
    for name, base in files.items():
        write(name, HEAD + f'extends = "{base}"\n')
    with pytest.raises(UsageError, match=f"extends itself: {circle}"):
        profile_files.load("a")


def test_a_long_way_down_is_an_error_and_many_ways_to_one_base_are_quick(write: Write) -> None:
    for number in range(60):
        write(f"p{number}", HEAD + f'extends = ["p{number + 1}", "p{number + 1}"]\n')
    write("p60", HEAD)
    with pytest.raises(UsageError, match="profiles deep"):
        profile_files.load("p0")
    assert profile_files.load("p45").settings == ()


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ('title = "T"\nsource =\n', 2, "Invalid value"),
        ("title = ", 1, "Invalid value"),
        ('title = "T"\n[settings\n', 2, "Expected"),
        ('title = 5\nsource = "S"\n', 1, "title: Expected `str`"),
        ('source = "S"\n', 1, "missing required field `title`"),
        ('title = "x\n', 1, "the text in quotes does not end on its line"),
        (HEAD + "\n[settngs]\n", 4, "did you mean settings?"),
        (HEAD + 'colour = "red"\n', 3, "unknown field `colour`"),
        (HEAD + 'extends = "qiet"\n', 3, "no profile qiet: did you mean quiet"),
        (HEAD + 'nccl = "new"\n', 3, "not a range of versions"),
        (HEAD + setting("A", "true"), 3, "got `bool`"),
        (HEAD + "[settings]\n\nB = 5\n", 5, "Expected `object`, got `int`; write B = {"),
        (HEAD + '[settings.A]\nvalue = "1"\n', 3, "missing required field `reason`"),
        (HEAD + '[settings.A]\nreason = "R"\n', 3, "either a value or unset"),
        (HEAD + '[settings.A]\nvalue = "1"\nreason = " "\n', 3, "needs a reason"),
        (HEAD + '\n[settings."A-B"]\nvalue = "1"\nreason = "R"\n', 4, "cannot be the name"),
        (HEAD + setting("A", '"a\\u0000b"'), 3, "NUL"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(write: Write, text: str, line: int, what: str) -> None:
    path = write("bad", text)
    with pytest.raises(UsageError) as caught:
        profile_files.load("bad")
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: "), message
    assert what in message
    assert "\n" not in message


def test_what_is_no_text_or_too_large_is_refused(own: Path) -> None:
    (own / "bytes.toml").write_bytes(b'title = "T"\n\xff\xfe')
    with pytest.raises(UsageError, match=r"bytes\.toml:2: this is no UTF-8"):
        profile_files.load("bytes")
    (own / "large.toml").write_bytes(b"#" * (256 * 1024 + 1))
    with pytest.raises(UsageError, match="larger than 256 KiB"):
        profile_files.load("large")
    with pytest.raises(UsageError, match="Is a directory"):
        profile_files.load(f"{own}/")
    with pytest.raises(UsageError, match="No such file"):
        profile_files.load("./nothing.toml")


@pytest.mark.parametrize("name", ["ib-ndrr", "IB-NDR", "ib_ndr"])
def test_an_unknown_name_brings_near_ones(name: str) -> None:
    with pytest.raises(UsageError, match="did you mean ib-ndr"):
        profile_files.load(name)


def test_a_name_like_none_brings_all_and_is_shown_harmlessly() -> None:
    with pytest.raises(UsageError, match=r"no profile \\x1b\[2J%%%: there are amd-rccl, aws-efa"):
        profile_files.load("\x1b[2J%%%")


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.one_of(st.binary(max_size=300), st.text(max_size=200).map(str.encode), st.binary()))
def test_any_bytes_are_a_profile_or_the_one_error(own: Path, data: bytes) -> None:
    path = own / "any.toml"
    path.write_bytes(HEAD.encode() + data)
    told = ""
    try:
        told = profile_files.load(str(path)).path or ""
    except UsageError as error:
        told = str(error)
    assert told.startswith(str(path))


MUCH = 20_000


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("x = " + "[" * MUCH, 1, "8 deep"),
        ("\nx = " + "{a = " * MUCH, 2, "8 deep"),
        ("# a.b.c.d.e.f.g.h.i\n" + ".".join("a" * MUCH) + " = 1", 2, "8 deep"),
        ("[" + " . ".join(["'a'"] * MUCH) + "]", 1, "8 deep"),
        (HEAD + "[settings.A]\nvalue = " + "9" * 5000, 4, "of more than 128 characters"),
        ("x = 0x" + "f" * 5000, 1, "of more than 128 characters"),
        (HEAD + 'a = """\n"\\""" + "" #"""\nb.c.d.e.f.g.h.i.j = 1', 5, "8 deep"),
        (HEAD + "a = '''\n\\'''\nb = {c = [[{d.e.f = [[[[[]]]]]}]]}", 5, "8 deep"),
    ],
)
def test_what_would_take_for_ever_is_an_error(
    write: Write, text: str, line: int, what: str
) -> None:
    path = write("much", text)
    with pytest.raises(UsageError) as caught:
        profile_files.load("much")
    assert str(caught.value).startswith(f"{path}:{line}: no profile needs ")
    assert what in str(caught.value)


@pytest.mark.parametrize("text", ['"' + r"\"" * MUCH, '"""' + '\\"""' * MUCH, "'' ' " * MUCH])
def test_texts_without_end_are_read_once(text: str) -> None:
    assert excess("x = " + text) is None


def test_what_looks_deep_in_texts_and_comments_is_not() -> None:
    deep = "[" * 10 + "a.b.c.d.e.f.g.h.i.j" + "9" * 200
    texts = [f'"{deep}\\""', f"'{deep}'", f'"""{deep}\n"" \\""""""', f"'''{deep}\n'''"]
    text = "\n".join(f"a{n} = {one} # {deep}" for n, one in enumerate(texts))
    assert len(tomllib.loads(text)) == len(texts)
    assert excess(text) is None


def test_many_settings_are_found_on_their_lines_in_one_pass(write: Write) -> None:
    lines = [f'A{n} = {{ value = "{n}", reason = "R" }}' for n in range(4000)]
    path = write("many", HEAD + "[settings]\n" + "\n".join(lines))
    places = {one.name: one.place for one in profile_files.load("many").settings}
    assert len(places) == len(lines)
    assert places["A3999"] == f"{path}:4003"


def test_what_can_be_no_profile_is_not_waited_for(own: Path, write: Write) -> None:
    os.mkfifo(own / "pipe.toml")
    (own / "folder.toml").mkdir()
    (own / "circle.toml").symlink_to(own / "circle.toml")
    for name in ("pipe", "folder"):
        with pytest.raises(UsageError, match=rf"{name}\.toml: it is no regular file"):
            profile_files.load(name)
    with pytest.raises(UsageError, match=r"circle\.toml: Too many levels"):
        profile_files.load("circle")
    write("below", HEAD + 'extends = "./pipe.toml"')
    with pytest.raises(UsageError, match=r"below\.toml:3: .*pipe\.toml: it is no regular file"):
        profile_files.load("below")


@pytest.mark.parametrize(
    ("extends", "what"),
    [
        ('"a\\u0000/b"', "holds a NUL"),
        (f'"./{"a" * 5000}.toml"', "too long"),
        (f"{['tcp'] * 33}", "more than 32 profiles"),
    ],
)
def test_bases_that_cannot_be_are_an_error(write: Write, extends: str, what: str) -> None:
    write("own", HEAD + f"extends = {extends}")
    with pytest.raises(UsageError, match=what):
        profile_files.load("own")


SHIPPED = (
    "amd-rccl", "aws-efa", "debug", "gb200-nvl72", "ib-hdr", "ib-ndr", "nic-only", "quiet",
    "ring-only", "roce-v2", "single-node-nvlink", "tcp",
)  # fmt: skip


@pytest.mark.parametrize("name", SHIPPED)
def test_each_shipped_profile_says_where_it_comes_from_and_why(name: str) -> None:
    profile = profile_files.load(name)
    placeholders.check(profile)
    assert profile.source.startswith("https://")
    assert profile.settings
    assert all(one.reason and one.reason.endswith(".") for one in profile.settings)
    assert "\n" not in profile.title


def test_no_profile_is_shipped_beside_those_that_are_promised() -> None:
    assert profile_files.names() == SHIPPED
    assert (ROOT / "env_profiles").samefile(profile_files.SHIPPED)


HOST = HostValues("gpu1", {"hca.compute": "mlx5_0,mlx5_3"}, {"nic.socket": "it has no route"})


def profile_with(value: str | None) -> Profile:
    base = profile_files.load("ring-only")
    return replace(base, settings=(replace(base.settings[0], value=value),))


@pytest.mark.parametrize(
    ("value", "filled"),
    [
        ("={hca.compute}", "=mlx5_0,mlx5_3"),
        ("{hca.compute},{hca.compute}", "mlx5_0,mlx5_3,mlx5_0,mlx5_3"),
        ("{}", "{}"),
        ("{HCA}", "{HCA}"),
        ("50%{", "50%{"),
        (None, None),
    ],
)
def test_placeholders_are_filled_in_for_a_host(value: str | None, filled: str | None) -> None:
    assert placeholders.fill(profile_with(value), HOST).settings[0].value == filled


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("={nic.socket}", r"cannot be filled in for gpu1: it has no route"),
        ("={nic.sockets}", r"unknown \{nic\.sockets\}; did you mean \{nic\.socket\}\?"),
        ("={gpu}", r"there are \{nic\.socket\}, \{hca\.compute\}"),
    ],
)
def test_a_placeholder_that_stands_for_nothing_is_an_error(value: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        placeholders.fill(profile_with(value), HOST)


def test_the_form_of_a_value_fits_any_host_and_nothing_else() -> None:
    form = placeholders.form_of("={hca.compute}")
    assert form.fullmatch("=mlx5_7")
    assert not form.fullmatch("mlx5_7")
    assert not form.fullmatch("=")


@pytest.mark.parametrize(
    ("version", "wanted", "fits"),
    [
        ("2.21.5", ">=2.18", True),
        ("2.17.1+cuda12.1", ">=2.18", False),
        ("2.30", ">=2.18, <2.30", False),
        ("2.18.3", "==2.18", True),
        ("2.18.3", "!=2.18.3", False),
        ("2.18.3", ">2.18", False),
        ("v2.19.4-1", ">2.18", True),
    ],
)
def test_a_version_is_in_a_range_or_not(version: str, wanted: str, *, fits: bool) -> None:
    assert in_range(parse_version(version), wanted) is fits


def test_ranges_join_to_what_fits_all() -> None:
    assert join_ranges([None, ">=2.9", ">=2.18", "<3", "<3"]) == ">=2.18, <3"
    assert join_ranges([None]) is None


@pytest.mark.parametrize(
    "text", ["newest", "", "9999.x", "2.x", "2.21.", "2.21-", "22105", "2..21"]
)
def test_what_has_no_form_of_a_version_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="not a version"):
        parse_version(text)
