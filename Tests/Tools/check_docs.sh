#!/bin/sh
# Builds the documentation of every product with warnings as errors (except for parameters without a sentence), so that links to symbols and pages are right.
#   Tests/Tools/check_docs.sh BUILD_FOLDER
set -eu
cd "$(dirname "$0")/../.."
build=$1
command -v docc >/dev/null 2>&1 || {
    echo "check_docs: docc is not installed; the documentation is not checked" >&2
    exit 0
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
target=$(swift -print-target-info | sed -n 's/.*"unversionedTriple": *"\([^"]*\)".*/\1/p' | head -1)
set -- -target "$target" -I "$build/Modules"
for map in Sources/*/*/module.modulemap "$build"/*.build/module.modulemap .build/checkouts/*/Sources/*/module.modulemap .build/checkouts/*/Sources/*/include/module.modulemap; do
    [ -f "$map" ] && set -- "$@" -Xcc "-fmodule-map-file=$map"
done
if flags=$(pkg-config --cflags libpq 2>/dev/null); then for flag in $flags; do set -- "$@" -Xcc "$flag"; done; fi
status=0
for catalogue in Sources/*/*/Documentation.docc; do
    module=$(basename "$(dirname "$catalogue")")
    [ -f "$build/Modules/$module.swiftmodule" ] || continue
    mkdir -p "$work/$module"
    swift symbolgraph-extract -module-name "$module" "$@" -minimum-access-level public -skip-synthesized-members \
        -output-dir "$work/$module" 2>"$work/log" || {
        cat "$work/log" >&2
        status=1
        continue
    }
    docc convert "$catalogue" --additional-symbol-graph-dir "$work/$module" --output-path "$work/$module.doccarchive" \
        --fallback-display-name "$module" --fallback-bundle-identifier "$module" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        status=1
    }
    # A parameter whose name says everything needs no sentence.
    if grep -E "(warning|error): " "$work/log" | grep -v "is missing documentation" >"$work/problems"; then
        echo "check_docs: $module" >&2
        grep -A 2 -F -f "$work/problems" "$work/log" >&2
        status=1
    fi
done
exit $status
