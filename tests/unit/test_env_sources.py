import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ncdiag.model.environment import Setting
from ncdiag.model.errors import UsageError
from ncdiag.profiles.context import LintContext
from ncdiag.profiles.lint import lint
from ncdiag.profiles.sources import environment_settings, mentions, read_settings

SEED = Path(__file__).parents[3] / "shared" / "seed.txt"

SCRIPT = r"""#!/bin/bash
#SBATCH --nodes=4
#SBATCH --export=ALL,NCCL_DEBUG=INFO   # for all steps
export NCCL_IB_HCA="=mlx5_0,mlx5_1" # comment NCCL_X=1
NCCL_SOCKET_IFNAME=eth0 \
  NCCL_IB_TC=106 srun --export=ALL,NCCL_P2P_DISABLE=1 python a.py
if true; then export NCCL_ALGO=Ring; fi
unset NCCL_ALGO
mpirun -np 8 -x NCCL_PROTO=Simple -x PATH -genv NCCL_NET IB env NCCL_SHM_DISABLE=1 ./a
cat <<EOF > nccl.txt
export NCCL_BUFFSIZE=1
EOF
srun bash -c 'NCCL_CROSS_NIC=1 python "x y"'
export NCCL_HOSTID=$(hostname -s) NCCL_DEBUG_FILE='/logs/x.%h'
export nccl_debug=info NCLL_DEBUG=1 AWS_SECRET_ACCESS_KEY=hush
docker run -e NCCL_TIMEOUT=1 image
SIZES=(1 2); echo "NCCL_NVLS_ENABLE=0"
setenv NCCL_IB_SL 3
apptainer exec --env NCCL_IB_QPS_PER_CONNECTION=4,NCCL_PXN_DISABLE=1 image
export NCCL_DEBUG_SUBSYS+=,NET
"""
SCRIPT_SETTINGS = [
    (3, "NCCL_DEBUG", "INFO"),
    (4, "NCCL_IB_HCA", "=mlx5_0,mlx5_1"),
    (5, "NCCL_SOCKET_IFNAME", "eth0"),
    (6, "NCCL_IB_TC", "106"),
    (6, "NCCL_P2P_DISABLE", "1"),
    (7, "NCCL_ALGO", "Ring"),
    (8, "NCCL_ALGO", None),
    (9, "NCCL_PROTO", "Simple"),
    (9, "NCCL_NET", "IB"),
    (9, "NCCL_SHM_DISABLE", "1"),
    (13, "NCCL_CROSS_NIC", "1"),
    (14, "NCCL_HOSTID", "$(hostname -s)"),
    (14, "NCCL_DEBUG_FILE", "/logs/x.%h"),
    (15, "nccl_debug", "info"),
    (15, "NCLL_DEBUG", "1"),
    (16, "NCCL_TIMEOUT", "1"),
    (18, "NCCL_IB_SL", "3"),
    (19, "NCCL_IB_QPS_PER_CONNECTION", "4"),
    (19, "NCCL_PXN_DISABLE", "1"),
    (20, "NCCL_DEBUG_SUBSYS", "$,NET"),
]

MANIFEST = """apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  NCCL_DEBUG: INFO
  nccl.conf: |
    NCCL_IB_HCA=mlx5
    NCCL_ALGO = Ring
---
kind: Secret
stringData: {NCCL_DEBUG: hush}
---
kind: MPIJob
spec:
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
          - name: launcher
            env: &shared
              - name: NCCL_NET
                value: "IB"
              - {name: NCCL_IB_TC, value: 106}
              - name: NCCL_HOSTID
                valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
            command: ["mpirun"]
            args:
              - -x
              - NCCL_PROTO=LL
    Worker:
      containers:
      - command: [bash, -c]
        args:
        - |
          echo begin
          export NCCL_CROSS_NIC=1
        env: *shared
"""
MANIFEST_SETTINGS = [
    (5, "NCCL_DEBUG", "INFO"),
    (7, "NCCL_IB_HCA", "mlx5"),
    (8, "NCCL_ALGO ", " Ring"),
    (22, "NCCL_NET", "IB"),
    (24, "NCCL_IB_TC", "106"),
    (25, "NCCL_HOSTID", "$"),
    (30, "NCCL_PROTO", "LL"),
    (22, "NCCL_NET", "IB"),
    (24, "NCCL_IB_TC", "106"),
    (25, "NCCL_HOSTID", "$"),
    (37, "NCCL_CROSS_NIC", "1"),
]

COMPOSE = """services:
  one:
    environment:
      - NCCL_DEBUG=INFO
      - NCCL_ALGO
  two:
    environment:
      NCCL_DEBUG: WARN
"""
COMPOSE_SETTINGS = [
    (4, "NCCL_DEBUG", "INFO"),
    (5, "NCCL_ALGO", "$"),
    (8, "NCCL_DEBUG", "WARN"),
]

DOCKERFILE = r"""FROM image AS one
# ENV NCCL_NET=IB
ENV NCCL_DEBUG=INFO \
    # a comment within
    NCCL_IB_HCA="mlx5_0, mlx5_1"
env NCCL_ALGO Ring and more
ARG NCCL_VERSION=2.21
RUN make
CMD ["mpirun", "-x", "NCCL_PROTO=LL", "train"]
ENTRYPOINT NCCL_CROSS_NIC=1 train
"""
DOCKERFILE_SETTINGS = [
    (3, "NCCL_DEBUG", "INFO"),
    (5, "NCCL_IB_HCA", "mlx5_0, mlx5_1"),
    (6, "NCCL_ALGO", "Ring and more"),
    (7, "NCCL_VERSION", "2.21"),
    (9, "NCCL_PROTO", "LL"),
    (10, "NCCL_CROSS_NIC", "1"),
]

PYTHON = r"""import os
os.environ["NCCL_DEBUG"] = "INFO"
os.environ.setdefault("NCCL_ALGO", choose("a\d"))
extra = {"NCCL_IB_TC": 106, "NCCL_IB_SL": str(3), **more, 1: 2}
os.environ.update(NCCL_PROTO="LL", rank="3")
del os.environ["NCCL_NET"]
os.environ.pop("NCCL_CROSS_NIC", None)
state = {"rank": 1}
monkeypatch.setenv("NCCL_SHM_DISABLE", "1")
"""
PYTHON_SETTINGS = [
    (2, "NCCL_DEBUG", "INFO"),
    (3, "NCCL_ALGO", "$"),
    (4, "NCCL_IB_TC", "106"),
    (4, "NCCL_IB_SL", "3"),
    (5, "NCCL_PROTO", "LL"),
    (6, "NCCL_NET", None),
    (7, "NCCL_CROSS_NIC", None),
    (9, "NCCL_SHM_DISABLE", "1"),
]

CONF = (
    " # NCCL_ALGO=Tree\nNCCL_DEBUG=WARN\nNCCL_IB_HCA =mlx5\nexport NCCL_NET=IB\nNCCL_ALGO=a # b\r\n"
)
CONF_SETTINGS = [
    (2, "NCCL_DEBUG", "WARN"),
    (3, "NCCL_IB_HCA ", "mlx5"),
    (4, "export NCCL_NET", "IB"),
    (5, "NCCL_ALGO", "a # b\r"),
]

ENVIRONMENT = 'HOME=/root\nNCCL_DEBUG=INFO\nNCCL_IB_HCA="mlx5"\nBASH_FUNC_x%%=() {  echo\n'
ENVIRONMENT_SETTINGS = [(2, "NCCL_DEBUG", "INFO"), (3, "NCCL_IB_HCA", '"mlx5"')]

PAGE = """# Settings
We like `NCCL_NET=IB` here.

    'NCCL_DEBUG': 'INFO',   # all of it
    $ export NCCL_ALGO=Ring
# NCCL_PROTO=LL
"""
PAGE_SETTINGS = [(4, "NCCL_DEBUG", "INFO"), (5, "NCCL_ALGO", "Ring")]


def read(text: str, name: str) -> list[tuple[int, str, str | None]]:
    found = read_settings(text.encode(), name)
    assert all(one.place.rpartition(":")[0] == name for one in found)
    return [(int(one.place.rpartition(":")[2]), one.name, one.value) for one in found]


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        (SCRIPT, "job.sbatch", SCRIPT_SETTINGS),
        (SCRIPT, "a file of any name", SCRIPT_SETTINGS),
        (MANIFEST, "job.yaml", MANIFEST_SETTINGS),
        (MANIFEST, "-", MANIFEST_SETTINGS),
        (COMPOSE, "compose.yml", COMPOSE_SETTINGS),
        (COMPOSE, "stdin", COMPOSE_SETTINGS),
        ('{"env": {"NCCL_DEBUG": "INFO"}}', "job.json", [(1, "NCCL_DEBUG", "INFO")]),
        (DOCKERFILE, "Dockerfile.train", DOCKERFILE_SETTINGS),
        (DOCKERFILE, "stdin", DOCKERFILE_SETTINGS),
        (PYTHON, "train.py", PYTHON_SETTINGS),
        (PYTHON, "stdin", PYTHON_SETTINGS),
        (CONF, "/etc/nccl.conf", CONF_SETTINGS),
        (ENVIRONMENT, "env.txt", ENVIRONMENT_SETTINGS),
        (ENVIRONMENT, "stdin", ENVIRONMENT_SETTINGS),
        ("A=b\0NCCL_DEBUG=x\ny\0", "environ", [(2, "NCCL_DEBUG", "x\ny")]),
        (PAGE, "page.md", PAGE_SETTINGS),
        (PAGE, "page", PAGE_SETTINGS),
        ("\ufeffexport NCCL_DEBUG=INFO\n", "job.sh", [(1, "NCCL_DEBUG", "INFO")]),
        ("", "job.sh", []),
        ("", "stdin", []),
    ],
)
def test_settings_of_each_kind_of_file(
    text: str, name: str, expected: list[tuple[int, str, str | None]]
) -> None:
    assert read(text, name) == expected


def test_a_carriage_return_belongs_to_what_is_assigned_at_the_end_of_a_line() -> None:
    ending = {"NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS"}
    assert read(SCRIPT.replace("\n", "\r\n"), "job.sh") == [
        (line, name, f"{value}\r" if name in ending else value)
        for line, name, value in SCRIPT_SETTINGS
    ]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("export NCCL_DEBUG=IN'F'\"O\"", "INFO"),
        ("export NCCL_DEBUG='$HOME'", "$HOME"),
        ("export NCCL_DEBUG=${LEVEL:-INFO}", "${LEVEL:-INFO}"),
        ("export NCCL_DEBUG=`cat level`", "`cat level`"),
        ('export NCCL_DEBUG="a\\"b"', 'a"b'),
        ("export NCCL_DEBUG=$(echo $(echo ')' ) )", "$(echo $(echo ')' )"),
        ("time NCCL_DEBUG=INFO train", "INFO"),
        ("NCCL_DEBUG=INFO; train", "INFO"),
        ("(NCCL_DEBUG=INFO train)", "INFO"),
        ("train && NCCL_DEBUG=INFO train", "INFO"),
        ("env -i NCCL_DEBUG=INFO train", "INFO"),
        ("/usr/bin/mpirun -x NCCL_DEBUG=INFO train", "INFO"),
        ("mpiexec -env NCCL_DEBUG INFO train", "INFO"),
        ("mpiexec -genv NCCL_DEBUG=INFO train", "INFO"),
        ("salloc --export NCCL_DEBUG=INFO train", "INFO"),
        ("podman run --env=NCCL_DEBUG=INFO image", "INFO"),
        ("ssh gpu001 bash -lc 'export NCCL_DEBUG=INFO; train'", "INFO"),
        ("declare -x NCCL_DEBUG=INFO", "INFO"),
        ("NCCL_DEBUG=INFO\nexport NCCL_DEBUG", "INFO"),
        ("export -n NCCL_DEBUG", None),
        ("env -u NCCL_DEBUG train", None),
        ("ssh -p 22 gpu001 'NCCL_DEBUG=INFO train'", "INFO"),
        ("ssh gpu001 NCCL_DEBUG=INFO train", "INFO"),
        ("pdsh -w gpu[1-4] env NCCL_DEBUG=INFO train", "INFO"),
        ("eval export NCCL_DEBUG=INFO", "INFO"),
        ("sudo -E -u me NCCL_DEBUG=INFO train", "INFO"),
        ("su - me -c 'NCCL_DEBUG=INFO train'", "INFO"),
        ("mpirun --mca mca_base_env_list 'NCCL_DEBUG=INFO;A=b' train", "INFO"),
        ("export OMPI_MCA_mca_base_env_list='NCCL_DEBUG=INFO'", "INFO"),
        ("APPTAINERENV_NCCL_DEBUG=INFO apptainer run x", "INFO"),
        ("export SINGULARITYENV_NCCL_DEBUG=INFO", "INFO"),
        ("flux run --env=NCCL_DEBUG=INFO train", "INFO"),
        ("qsub -v A=b,NCCL_DEBUG=INFO job", "INFO"),
        ("#PBS -v NCCL_DEBUG=INFO", "INFO"),
        ("set -x NCCL_DEBUG INFO", "INFO"),
        ("set --export NCCL_DEBUG INFO", "INFO"),
        ("pushenv NCCL_DEBUG INFO", "INFO"),
        (": ${NCCL_DEBUG:=INFO}", "${NCCL_DEBUG:=INFO}"),
        ("f() { export NCCL_DEBUG=INFO; }", "INFO"),
        ("function f { export NCCL_DEBUG=INFO; }", "INFO"),
        ("case $x in a|b) export NCCL_DEBUG=INFO;; esac", "INFO"),
        ("echo NCCL_DEBUG=INFO > /etc/nccl.conf", "INFO"),
        ("printf 'NCCL_DEBUG=INFO\\n' | sudo tee -a ~/.nccl.conf", "INFO"),
        ("echo 'export NCCL_DEBUG=INFO' >> ~/.bashrc", "INFO"),
    ],
)
def test_ways_to_set_something_in_a_shell(line: str, value: str | None) -> None:
    assert read(line, "job.sh")[0] == (1, "NCCL_DEBUG", value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('OPTS="-x NCCL_NET=IB"\nmpirun $OPTS a', [(1, "NCCL_NET", "IB")]),
        ('OPTS=-n4\nOPTS+=" -x NCCL_NET=IB"\nmpirun ${OPTS} a', [(1, "NCCL_NET", "IB")]),
        ('A=(-n 4\n -x NCCL_NET=IB)\nmpirun "${A[@]}" a', [(2, "NCCL_NET", "IB")]),
        ('E="A=1,NCCL_NET=IB"\nsrun --export=ALL,$E a', [(2, "NCCL_NET", "IB")]),
        ("O=$O\nmpirun $O a", []),
        ("O='$P $P'\nP='$O $O'\nmpirun $O a", []),
        ("export NCCL_DEBUG = INFO", [(1, "NCCL_DEBUG ", "INFO")]),
        ("export NCCL_DEBUG =INFO", [(1, "NCCL_DEBUG ", "INFO")]),
        ("NCCL_DEBUG = INFO", [(1, "NCCL_DEBUG ", "INFO")]),
        ("cat > nccl.conf <<E\nA=b\nNCCL_NET =IB\nE\n", [(3, "NCCL_NET ", "IB")]),
        ("cat > a.sh <<E\nexport NCCL_NET=IB\nE\n", [(2, "NCCL_NET", "IB")]),
        ("sbatch <<E\n#SBATCH --export=NCCL_NET=IB\nE\n", [(2, "NCCL_NET", "IB")]),
        ("ssh gpu1 <<'E'\nNCCL_NET=IB a\nE\n", [(2, "NCCL_NET", "IB")]),
        ("cat <<E | tee nccl.conf\nNCCL_NET=IB\nE\n", [(2, "NCCL_NET", "IB")]),
        ("bash <<E\nexport NCCL_NET='IB\nE\nNCCL_NET=IB a", [(4, "NCCL_NET", "IB")]),
    ],
)
def test_what_is_put_together_in_a_script(
    text: str, expected: list[tuple[int, str, str | None]]
) -> None:
    assert read(text, "job.sh") == expected


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('declare -x HOME="/root"\ndeclare -x NCCL_DEBUG="INFO"\n', "stdin"),
        ("#%Module\nsetenv NCCL_DEBUG INFO\n", "2.27.3"),
        ("prepend-path PATH /x\npushenv NCCL_DEBUG INFO\n", "nccl.tcl"),
        ('-- setenv("NCCL_NET", "IB")\nsetenv("NCCL_DEBUG", "INFO")\n', "2.27.3.lua"),
        ('help("x")\nsetenv("NCCL_DEBUG", "INFO")\n', "stdin"),
        ('[Service]\nEnvironment="A=b c" NCCL_DEBUG=INFO\n', "train.service"),
        ("[Service]\nEnvironment=NCCL_DEBUG=INFO\n", "stdin"),
        ("#!/usr/bin/env fish\nset -gx NCCL_DEBUG INFO\n", "stdin"),
        ("#\necho export NCCL_DEBUG=INFO\n", "task_prolog.sh"),
        ("#\necho 'export NCCL_DEBUG=INFO'\n", "TaskProlog.sh"),
        ("FROM x\nRUN echo 'NCCL_DEBUG=INFO' > /etc/nccl.conf\n", "Dockerfile"),
        ("services:\n  a: {command: 'bash -c \"NCCL_DEBUG=INFO a\"'}\n", "compose.yaml"),
        ("services:\n  a: {entrypoint: NCCL_DEBUG=INFO a}\n", "compose.yaml"),
        ("image: x\nenvVars:\n  NCCL_DEBUG: INFO\n", "values.yaml"),
        ("a:\n  script: [b, NCCL_DEBUG=INFO a]\n", "ci.yml"),
        ("x: &x\n  NCCL_DEBUG: INFO\na: {environment: {<<: *x, A: b}}\n", "compose.yaml"),
    ],
)
def test_other_kinds_of_file(text: str, name: str) -> None:
    ((_, variable, value),) = read(text, name)
    assert (variable, value) == ("NCCL_DEBUG", "INFO")


def test_a_folded_command_is_read() -> None:
    text = "services:\n  a:\n    command: >\n      sh -c\n      'NCCL_DEBUG=INFO a'\n"
    assert [entry[1:] for entry in read(text, "compose.yaml")] == [("NCCL_DEBUG", "INFO")]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("NCCL_DEBUG: INFO\n", True),
        ("let TORCH_NCCL_BLOCKING_WAIT be 1", True),
        ("# NCCL_DEBUG\n// NCCL_DEBUG\n", False),
        ("the NCCL_ names", False),
        ("", False),
    ],
)
def test_names_outside_of_comments_are_seen(text: str, *, named: bool) -> None:
    assert mentions(text.encode()) is named


@pytest.mark.parametrize(
    "line",
    [
        "set -x -- a b",
        "set -euo pipefail NCCL_DEBUG",
        "echo 'NCCL_DEBUG=INFO' > notes.txt",
        "echo NCCL_DEBUG=INFO",
        "# export NCCL_DEBUG=INFO",
        "echo 'export NCCL_DEBUG=INFO'",
        "export NCCL_DEBUG",
        "mpirun -x NCCL_DEBUG train",
        "cat <<- 'END'\n\texport NCCL_DEBUG=INFO\n\tEND",
        "train > NCCL_DEBUG=INFO",
        "NCCL_REPEATS=3",
        "nccl_ib_hca=mlx5",
    ],
)
def test_what_sets_nothing_in_a_shell(line: str) -> None:
    assert read(line, "job.sh") == []


@pytest.mark.parametrize(
    ("data", "name", "line", "words"),
    [
        (b"true\nexport A='b\n", "job.sh", 2, "never closed"),
        (b'true\n\nexport A="b\n', "job.sh", 3, "never closed"),
        (b"a: b\nc: [d\n", "job.yaml", 3, "not YAML"),
        (b"a: {{ b }}\nc: {{ d }} e\n", "job.yaml", 2, "render the template first"),
        (b"[" * 100, "job.yaml", 1, "nested too deep"),
        (b"a = 1\nb = (\n", "train.py", 2, "not Python"),
        (b"-" * 100_000 + b"1", "train.py", 1, "not Python"),
        (b"FROM x\nENV A='b\n", "Dockerfile", 2, "never closed"),
        (b"A=b\n\x00\x01\x02", "job.sh", 2, "not a text file"),
        ("export A=b".encode("utf-16"), "job.sh", 1, "UTF-16"),
        (b"#" * 600_000, "job.sh", 1, "larger than 512 KiB"),
        (b"a: \x01", "job.yaml", 1, "not YAML"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_the_place(
    data: bytes, name: str, line: int, words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read_settings(data, name)
    message = str(caught.value)
    assert message.startswith(f"{name}:{line}: ")
    assert words in message
    assert "\n" not in message


def test_a_name_of_the_script_itself_counts_once_it_is_exported() -> None:
    assert read("NCCL_REPEATS=3\ntrue\nexport NCCL_REPEATS\n", "job.sh") == [
        (1, "NCCL_REPEATS", "3")
    ]


def test_aliases_that_multiply_are_walked_once() -> None:
    lines = ["a0: &a0 {env: {NCCL_DEBUG: INFO}}"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20)]
    assert read("\n".join(lines), "job.yaml") == [(1, "NCCL_DEBUG", "INFO")]


def test_only_what_concerns_collectives_is_taken_of_the_environment() -> None:
    found = environment_settings(
        {"PATH": "/bin", "NCCL_NET": "IB", "NCCL_DEBUG": "INFO", "AWS_SECRET_ACCESS_KEY": "hush"}
    )
    assert [(one.name, one.value, one.place) for one in found] == [
        ("NCCL_DEBUG", "INFO", "the environment"),
        ("NCCL_NET", "IB", "the environment"),
    ]


def test_the_block_of_a_page_is_found_and_linted() -> None:
    if not SEED.exists():
        pytest.skip(f"{SEED.name} is not beside the checkout: its block is not read")
    found = lint(read_settings(SEED.read_bytes(), "page.txt"), LintContext())
    assert [(one.severity, one.variable) for one in found] == [
        ("error", "NCCL_TIMEOUT"),
        ("error", "NCCL_IB_HCA"),
        ("warning", "NCCL_DEBUG_SUBSYS"),
        ("warning", "NCCL_ASYNC_ERROR_HANDLING"),
    ]


KINDS = st.sampled_from(
    ["job.sh", "job.yaml", "Dockerfile", "train.py", "nccl.conf", "page.md", "stdin", "env.txt"]
)
PIECES = st.sampled_from(
    [
        *("export ", "NCCL_DEBUG", "=", "INFO", "'", '"', "\n", "\\", "$(", ")", "`", "#", "<<E"),
        *("env:", " ", "- ", "{", "}", "[", "]", "&a", "*a", ": ", "|", "FROM x\n", "ENV ", ","),
        *("if ", "then ", "fi\n", "case x in ", ";;", "esac", "{ ", "}", "(", "&&", "||", "$A"),
        *("A=(", "ssh h ", "echo ", "> nccl.conf", "cat <<E > a.sh\n", "set -x ", "[Service]\n"),
        *("mpirun -x ", "srun --export=", "bash -c ", "os.environ", "\0", "\r\n", "\t", "é"),
    ]
)


@given(st.one_of(st.binary(max_size=120), st.lists(PIECES, max_size=40).map("".join)), KINDS)
@example(b"\xff\xfe", "stdin")
@example("bash -c " * 20, "job.sh")
def test_any_bytes_give_settings_or_one_line(data: bytes | str, name: str) -> None:
    refused = ""
    found: tuple[Setting, ...] = ()
    try:
        found = read_settings(data if isinstance(data, bytes) else data.encode(), name)
    except UsageError as error:
        refused = str(error)
    assert all(one.place.startswith(f"{name}:") for one in found)
    assert "\n" not in refused
    assert not refused or re.match(rf"{re.escape(name)}:[1-9]\d*: ", refused)


def test_a_carriage_return_of_one_value_is_kept_and_line_ends_of_a_whole_file_are_not() -> None:
    one = "HOME=/root\nNCCL_DEBUG=INFO\r\nNCCL_IB_TC=106\n"
    assert read(one, "standard input") == [(2, "NCCL_DEBUG", "INFO\r"), (3, "NCCL_IB_TC", "106")]
    whole = "HOME=/root\r\n\r\nNCCL_DEBUG=INFO\r\r\n"
    assert read(whole, "standard input") == [(3, "NCCL_DEBUG", "INFO\r")]
