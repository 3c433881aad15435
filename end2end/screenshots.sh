#!/usr/bin/env bash
# Shoots every page, wide and narrow, light and dark, empty, full and with an error: end2end/screenshots.sh [FOLDER].
# Judges nothing; somebody looks at the pictures. readme-form.png and readme-history.png are those of the README.
set -euo pipefail
. "$(dirname "$0")/../.ci/env.sh"
SHOTS=$(realpath -m "${1:-"$root/end2end/test-results/shots"}")
export SHOTS
cd "$root/end2end"
npx --no-install playwright test --config screenshots.config.ts
say "the pictures are in $SHOTS"
