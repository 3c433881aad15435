#!/usr/bin/env bash
# Runs a throw-away PostgreSQL until standard input closes, however that comes about. It says "started", and then takes
# commands, a line each, and answers each by a line: "database" makes an empty database and gives its address, "stop"
# stops the server at once, as when its machine dies, and "start" starts it again.
#
#   .ci/postgres.sh [--durable] [--buffers=64MB]    without --durable, a power cut of the machine may lose what was committed
set -euo pipefail
# Who started this may be interrupted by signals that come to the whole group; only the end of input counts.
trap '' INT TERM HUP

durable=
buffers=64MB
for argument in "$@"; do
  case "$argument" in
    --durable) durable=1 ;;
    --buffers=*) buffers=${argument#--buffers=} ;;
    *)
      echo "unknown: $argument" >&2
      exit 2
      ;;
  esac
done

bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1 || true)
if [ -z "$bin" ] && command -v pg_config >/dev/null; then bin=$(pg_config --bindir); fi
if [ ! -x "$bin/initdb" ] || [ ! -x "$bin/postgres" ]; then
  echo "PostgreSQL's server programs are missing; install them (Debian: apt-get install postgresql)" >&2
  exit 1
fi

home=$(mktemp -d /tmp/keyturn-postgres.XXXXXX)
as=()
if [ "$(id -u)" = 0 ]; then
  # PostgreSQL refuses to run as root.
  user=postgres
  id "$user" >/dev/null 2>&1 || user=nobody
  chown "$user" "$home"
  as=(setpriv "--reuid=$user" "--regid=$(id -g "$user")" --clear-groups)
fi
run() { (cd "$home" && exec env -i PATH="$bin:/usr/bin:/bin" HOME="$home" LC_ALL=C.UTF-8 "${as[@]}" "$@" </dev/null); }
stop() { run pg_ctl -D "$home/data" -m immediate -w stop >>"$home/log" 2>&1; }
start() { run pg_ctl -D "$home/data" -l "$home/server.log" -w -t 60 start >>"$home/log" 2>&1; }
clean() {
  stop || true
  rm -rf "$home"
}
trap clean EXIT

fail() {
  cat "$home/log" "$home/server.log" >&2 2>/dev/null || true
  exit 1
}

# A collation that differs from the bytes' order, so that what must not depend on it is seen not to.
run initdb -D "$home/data" -U keyturn --auth=trust --encoding=UTF8 --locale=C.UTF-8 --locale-provider=icu \
  --icu-locale=und --no-sync >"$home/log" 2>&1 || fail
{
  echo "listen_addresses = ''"
  echo "unix_socket_directories = '$home'"
  echo "max_connections = 400"
  echo "shared_buffers = $buffers"
  [ -n "$durable" ] || echo "fsync = off"
} >"$home/settings"
cat "$home/settings" >>"$home/data/postgresql.conf"
start || fail
echo started
databases=0
while read -r word; do
  case "$word" in
    database)
      databases=$((databases + 1))
      name=test_$databases
      run createdb -h "$home" -U keyturn -T template0 "$name" >>"$home/log" 2>&1 || fail
      echo "postgres://keyturn@localhost/$name?host=$home"
      ;;
    stop) stop && echo stopped || fail ;;
    start) start && echo started || fail ;;
    *) echo "unknown: $word" ;;
  esac
done
