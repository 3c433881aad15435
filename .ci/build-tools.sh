#!/usr/bin/env bash
# Installs what building needs beside the compiler: wasm-bindgen, cargo-leptos, wasm-opt. cargo-leptos takes the other
# two from PATH and would otherwise download them, so they come first.
set -euo pipefail
. "$(dirname "$0")/env.sh"

if [ -z "$wasm_bindgen_version" ]; then
    say "Cargo.lock names no wasm-bindgen"
    exit 1
fi

# Away from the clone, whose own cargo settings are not meant for tools, and never into its target folder.
install() { (cd "$tools" && env -u CARGO_TARGET_DIR -u RUSTFLAGS cargo install --quiet "$@"); }

if ! have wasm-opt "$binaryen_version"; then
    say "installing wasm-opt (npm's binaryen $binaryen_version)"
    npm install --silent --no-audit --no-fund --no-save --prefix "$tools/binaryen-$binaryen_version" "binaryen@$binaryen_version" </dev/null
fi

if ! have wasm-bindgen "$wasm_bindgen_version"; then
    say "installing wasm-bindgen $wasm_bindgen_version (some minutes, once)"
    # Without --locked: its own lock file names a crate version that was withdrawn.
    install wasm-bindgen-cli --version "$wasm_bindgen_version" --root "$tools/wasm-bindgen-$wasm_bindgen_version"
fi

if ! have cargo-leptos "$cargo_leptos_version"; then
    say "installing cargo-leptos $cargo_leptos_version (some minutes, once)"
    # Unoptimised on purpose: it only starts other programs, and an optimised build of it takes longer still.
    CARGO_PROFILE_DEV_DEBUG=0 install cargo-leptos --version "$cargo_leptos_version" --locked --debug --root "$tools/cargo-leptos-$cargo_leptos_version"
fi
