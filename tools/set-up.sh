#!/bin/sh
# Make .venv and fill it, a step a call; the Makefile says when: set-up.sh torch|runtime|dev
#
# What pip prints is kept back. Where it fails, its last lines are shown, and then what to do.
set -efu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
wheels=${TORCH_INDEX-}
step=$1

say() { printf 'set-up: %s\n' "$*" >&2; }
stop() {
    say "$@"
    exit 1
}

version_of() { "$1" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2> /dev/null; }
is_recent() { case $1 in [012].* | 3.[0-9].* | 3.10.*) false ;; esac }

# Before anything is fetched or written.
check_python() {
    version=$(version_of "$python") || stop "$python does not run. Install Python 3.11 or later," \
        "or name the one you have: make PYTHON=python3.12"
    is_recent "$version" || stop "$python is Python $version, but 3.11 or later is needed." \
        "Install one and name it: make PYTHON=python3.12"
    "$python" -c 'import ensurepip, venv' 2> /dev/null ||
        stop "$python has no ensurepip, so it cannot make .venv. Install it (on Debian and Ubuntu:" \
            "apt install python${version%.*}-venv) and run make again."
}

# An environment that a stopped set-up has left without pip is made anew.
make_environment() {
    old=$(version_of .venv/bin/python) && is_recent "$old" &&
        .venv/bin/python -m pip --version > /dev/null 2>&1 && return
    check_python
    log=$("$python" -m venv --clear .venv 2>&1) || fail "$python could not make .venv"
}

install() {
    log=$(.venv/bin/python -m pip install --quiet --disable-pip-version-check \
        --constraint constraints.txt "$@" 2>&1)
}

found_nowhere() { case $log in *'No matching distribution'* | *ResolutionImpossible*) ;; *) false ;; esac }
disk_is_full() { [ "$(df -Pk . | awk 'NR == 2 { print $4 }')" -lt 1000 ]; }

# What to do about it; before that pip's last lines, where they help.
fail() {
    ! disk_is_full || log="No space left"
    case $log in
    *'Errno 28'* | *'No space left'*)
        remedy="a disk is full. Make room (2 GB here, 1 GB for temporary files) and run make again." ;;
    *ProxyError*)
        remedy="the proxy cannot be reached. Mend HTTPS_PROXY or HTTP_PROXY and run make again." ;;
    *'onnection broken'* | *ConnectionError* | *ConnectTimeout* | *ReadTimeout* | *SSLError*)
        remedy="no package index can be reached. Mend the network, or name a proxy (HTTPS_PROXY)
            or an index of your own (PIP_INDEX_URL), and run make again." ;;
    *'No matching distribution'* | *ResolutionImpossible*)
        remedy="it is not to be had for this Python and this machine. Run make clean, then
            make PYTHON=python3.12 or another." ;;
    *)
        printf '%s\n' "$log" | tail -n 30 >&2
        remedy="mend what stands above and run make again; make clean begins anew." ;;
    esac
    [ ! -e ".venv/$step.stamp" ] ||
        remedy="$remedy Only pyproject.toml or constraints.txt has changed: make --touch test goes on
            with what is installed."
    # shellcheck disable=SC2086 # lines become one
    stop $1: $remedy
}

# torch first and alone: with it in place, no other package can ask for another build. PyPI's build
# for Linux brings CUDA, so PyTorch's own index of builds for the CPU is asked as well. Where no index
# answers at once, the usual one is asked again, with more patience.
install_torch() {
    say "torch comes first, a download of 200 MB."
    if [ -n "$wheels" ]; then
        install --no-deps --retries 1 --extra-index-url "$wheels" torch || found_nowhere ||
            fail "torch could not be installed"
    fi
    install torch || fail "torch could not be installed"
}

# The package and what it needs to run. Without a compiler it is installed all the same.
install_runtime() {
    say "Next the package and what it needs; its kernels are compiled here."
    install --editable '.[demo]' || fail "unrolled could not be installed"
    .venv/bin/python -c 'import unrolled._kernels' 2> /dev/null ||
        say "the kernels could not be compiled: everything works, but slower. For more speed install" \
            "a C++ compiler (g++ or clang++), touch pyproject.toml and run make again."
}

requirements_of() {
    .venv/bin/python - "$1" << 'END'
import sys, tomllib
with open("pyproject.toml", "rb") as file:
    print(*tomllib.load(file)["project"]["optional-dependencies"][sys.argv[1]])
END
}

# What the tests need. kenlm is compiled by pip, which can fail; the tests do without it.
install_dev() {
    say "Last what the tests need."
    # shellcheck disable=SC2046 # a requirement is a word
    install $(requirements_of dev) || fail "what the tests need could not be installed"
    install kenlm || say "kenlm could not be built: the tests that compare with it are skipped."
}

case $step in
torch)
    make_environment
    install_torch
    ;;
runtime) install_runtime ;;
dev) install_dev ;;
esac
