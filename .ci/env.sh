# Sourced by every script and every phase of the Makefile, never run: where the tools live and which compiler is used.
# Tools live outside the clone, in folders named after their versions, so a clean clone finds them again and an
# upgrade never meets a half-old tool.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=${KEYTURN_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/keyturn-tools}
mkdir -p "$tools"

# Oldest compiler that cargo-leptos accepts, and the one installed where rustup can: a newer clippy would bring new
# lints, and `make test` treats every lint as an error.
rust_minimum=1.96
rust_pinned=1.96.0
cargo_leptos_version=0.3.11
binaryen_version=132

# wasm-bindgen's program and library refuse each other unless they have exactly the same version.
wasm_bindgen_version=$(awk '$1 == "name" { name = $3 } $1 == "version" && name == "\"wasm-bindgen\"" { gsub(/"/, "", $3); print $3; exit }' \
    "$root/Cargo.lock" 2>/dev/null || true)

# What .ci/toolchain.sh found. One compiler for both halves, so that nothing is built twice.
if [ -s "$tools/toolchain" ]; then
    RUSTUP_TOOLCHAIN=$(<"$tools/toolchain")
    export RUSTUP_TOOLCHAIN
fi
# Asking for a toolchain that is not there is a question here, not an order to download it.
export RUSTUP_AUTO_INSTALL=0
export PATH="$tools/wasm-bindgen-$wasm_bindgen_version/bin:$tools/cargo-leptos-$cargo_leptos_version/bin:$tools/binaryen-$binaryen_version/node_modules/.bin:$PATH"

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# have PROGRAM VERSION: whether PROGRAM runs and says that it is VERSION.
have() { "$1" --version 2>/dev/null | grep -qwF -- "$2"; }

# As root, or through sudo. Without a terminal sudo must not wait for a password that nobody can type.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif [ -t 0 ]; then sudo -- "$@"
    else sudo -n -- "$@"
    fi
}

# system_packages PACKAGE…: installs Debian packages, or names them and stops.
system_packages() {
    if ! command -v apt-get >/dev/null || { [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; }; then
        say "cannot install system packages here (needs apt-get, as root or with sudo)."
        say "Please install, under your system's names: $*"
        return 1
    fi
    say "installing system packages: $*"
    { as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq &&
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; } || {
        say "apt-get failed. Please install: $*"
        return 1
    }
}
