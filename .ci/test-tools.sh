#!/usr/bin/env bash
# Installs what only the tests need: PostgreSQL's server programs, a real Chromium and Playwright.
set -euo pipefail
. "$(dirname "$0")/env.sh"

# The programs only: tests run throw-away clusters, so the one that Debian would make and start is not wanted.
if ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
    told=/etc/postgresql-common/createcluster.d/no-main-cluster.conf
    as_root mkdir -p "${told%/*}" && echo 'create_main_cluster = false' | as_root tee "$told" >/dev/null || true
    system_packages postgresql
    as_root rm -f "$told"
fi

# Debian's browser, not Playwright's own download, which not every machine can reach. A font, or pages have no letters.
if [ ! -x /usr/bin/chromium ]; then
    system_packages chromium fonts-dejavu-core
fi

# npm ci starts from nothing each time, so only when the lock file changed.
cd "$root/end2end"
installed=node_modules/.installed-lock.json
if ! cmp -s package-lock.json "$installed"; then
    say "installing Playwright"
    PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --silent --no-audit --no-fund </dev/null
    cp package-lock.json "$installed"
fi
