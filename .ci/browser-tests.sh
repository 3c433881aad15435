#!/usr/bin/env bash
# Runs the specs of end2end/ in Chromium; arguments go to Playwright (a file, -g TITLE, --project NAME).
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$root/end2end"
# Without a terminal Playwright's own report server would wait for somebody.
export PLAYWRIGHT_HTML_OPEN=never
exec npx --no-install playwright test "$@"
