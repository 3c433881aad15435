#!/usr/bin/env bash
# Finds or installs a Rust toolchain that builds both halves (native and wasm32) and lints them, and writes its name
# where .ci/env.sh reads it. Quick when there is nothing to do.
set -euo pipefail
asked=${RUSTUP_TOOLCHAIN:-}
. "$(dirname "$0")/env.sh"

missing=()
for program in cc make git openssl rustup node npm; do
    command -v "$program" >/dev/null || missing+=("$program")
done
if [ ${#missing[@]} -gt 0 ]; then
    say "missing on this machine: ${missing[*]}"
    say "Keyturn needs a C compiler (cc), make, git, openssl, rustup's Rust and Node 20 or newer with npm."
    exit 1
fi
if ! node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)'; then
    say "Node 20 or newer is needed; found $(node --version)."
    exit 1
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

recent_enough() {
    local version
    version=$(rustup run "$1" rustc --version 2>/dev/null | cut -d' ' -f2)
    [ -n "$version" ] && printf '%s\n%s\n' "$rust_minimum" "$version" | sort -VC
}

# Linking a small library is the honest question: it needs the wasm32 standard library, in the compiler's own version,
# and the linker.
builds_wasm() {
    printf '#[unsafe(no_mangle)]\npub extern "C" fn probe(x: f64) -> usize { x.to_string().len() }\n' |
        rustup run "$1" rustc --edition 2024 --target wasm32-unknown-unknown --crate-type cdylib \
            -o "$scratch/probe.wasm" - 2>/dev/null
}

lints() {
    rustup run "$1" cargo-clippy --version >/dev/null 2>&1 && rustup run "$1" rustfmt --version >/dev/null 2>&1
}

usable() { [ -n "$1" ] && recent_enough "$1" && builds_wasm "$1" && lints "$1"; }

use() {
    # Through a rename, since another make may be reading.
    printf '%s\n' "$1" >"$scratch/toolchain"
    mv "$scratch/toolchain" "$tools/toolchain"
    exit 0
}

# 1. What is here already: the one asked for, the pinned one, the one found last time.
for candidate in "$asked" "$rust_pinned" "${RUSTUP_TOOLCHAIN:-}"; do
    if usable "$candidate"; then use "$candidate"; fi
    if [ -n "$asked" ] && [ "$candidate" = "$asked" ]; then
        say "RUSTUP_TOOLCHAIN=$asked cannot build both halves (it needs Rust $rust_minimum, wasm32, clippy, rustfmt); looking for another"
    fi
done

# 2. rustup, where it reaches its server. KEYTURN_WITHOUT_RUSTUP=1 tries the way without it.
if [ -z "${KEYTURN_WITHOUT_RUSTUP:-}" ]; then
    say "installing Rust $rust_pinned with the wasm32 target through rustup"
    if timeout 600 rustup toolchain install "$rust_pinned" --profile minimal --component clippy,rustfmt \
        --target wasm32-unknown-unknown --no-self-update >"$scratch/rustup.log" 2>&1 && usable "$rust_pinned"; then
        use "$rust_pinned"
    fi
    say "rustup could not: $(tail -n 1 "$scratch/rustup.log")"
fi

# 3. rustup's active toolchain, if it happens to be good enough.
active=$(cd / && env -u RUSTUP_TOOLCHAIN rustup show active-toolchain 2>/dev/null | cut -d' ' -f1 || true)
if usable "$active"; then use "$active"; fi

# 4. Debian's compiler for browsers. It comes without the wasm32 standard library, so that is built once from its source.
say "falling back to Debian's Rust"
system_packages rustc-web cargo-web rust-web-src rust-web-llvm lld-22 rustfmt-web rust-web-clippy
rustup toolchain link debian /usr
if ! builds_wasm debian; then
    say "building the wasm32 standard library (about a minute)"
    mkdir -p "$scratch/empty/src"
    : >"$scratch/empty/src/lib.rs"
    printf '[package]\nname = "empty"\nversion = "0.0.0"\nedition = "2024"\n' >"$scratch/empty/Cargo.toml"
    (
        cd "$scratch/empty"
        env -u RUSTFLAGS RUSTUP_TOOLCHAIN=debian RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$scratch/target" \
            cargo build --quiet --release -Z build-std=std,panic_abort --target wasm32-unknown-unknown
    )
    rm "$scratch"/target/wasm32-unknown-unknown/release/deps/libempty-*.rlib
    library=/usr/lib/rustlib/wasm32-unknown-unknown/lib
    # Rests of an older compiler's library would be ambiguous beside the new one.
    as_root rm -rf "$library"
    as_root mkdir -p "$library"
    as_root cp "$scratch"/target/wasm32-unknown-unknown/release/deps/*.rlib "$library/"
fi
if usable debian; then use debian; fi
say "no usable Rust: rustup cannot install $rust_pinned here, and Debian's packages give no compiler of $rust_minimum or newer that builds wasm32."
exit 1
