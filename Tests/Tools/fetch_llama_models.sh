#!/bin/sh
# Downloads vocabularies with test vectors, and chat templates, from the source package of the Python binding of
# llama.cpp:
#   Tests/Tools/fetch_llama_models.sh FOLDER
# These files are not part of this repository. Does nothing if the folder is already complete.
set -eu
[ -f "$1/templates/complete" ] && exit 0
rm -rf "$1"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
version=0.3.36
python3 -m pip download --quiet --no-deps --no-binary llama-cpp-python --disable-pip-version-check --dest "$scratch" \
    "llama-cpp-python==$version"
mkdir -p "$1"
tar -xzf "$scratch"/llama_cpp_python-*.tar.gz -C "$scratch" --wildcards '*/vendor/llama.cpp/models/*'
cp -R "$scratch"/llama_cpp_python-*/vendor/llama.cpp/models/. "$1"
touch "$1/templates/complete"
