#!/bin/sh
# Installs headless Chromium for the tests of HTML pages, if there is none. Only where CI is set: it takes 500 MB.
set -eu
for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done
[ -n "${CI:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || exit 1
echo "Installing Chromium …" >&2
apt-get install -y -q --no-install-recommends chromium >/dev/null 2>&1 || {
    apt-get update -q >/dev/null 2>&1 && apt-get install -y -q --no-install-recommends chromium >/dev/null 2>&1
}
