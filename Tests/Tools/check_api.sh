#!/bin/sh
# Compares the public interface of FoundationModels in the given build folder with the table of Apple's interface in
# Tests/FoundationModelsTests/api.tsv, and requires a doc comment on every public symbol. Prints missing (<) and extra
# (>) declarations, and fails if there are any.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
target=$(swift -print-target-info | sed -n 's/.*"unversionedTriple": *"\([^"]*\)".*/\1/p' | head -1)
set -- -module-name FoundationModels -target "$target" -I "$build/Modules" -I "$build/CKernels.build" -I "$build/LanguageTable.build" -I "$build/GuardrailTable.build" \
    -Xcc "-fmodule-map-file=$build/CKernels.build/module.modulemap" -Xcc "-fmodule-map-file=$build/LanguageTable.build/module.modulemap" -Xcc "-fmodule-map-file=$build/GuardrailTable.build/module.modulemap"
swift symbolgraph-extract "$@" -minimum-access-level public -output-dir "$work"
shift 2
swift-api-digester -dump-sdk -module FoundationModels "$@" -o "$work/digest.json" 2>"$work/log" || {
    cat "$work/log" >&2
    exit 1
}
python3 "$here/Tests/Tools/api_table.py" "$work" >"$work/own.tsv"
status=0
diff "$here/Tests/FoundationModelsTests/api.tsv" "$work/own.tsv" >"$work/diff" || {
    echo "check_api: the public interface differs from Apple's (< missing, > extra):" >&2
    grep '^[<>]' "$work/diff" >&2
    status=1
}
python3 "$here/Tests/Tools/api_table.py" "$work" --undocumented >"$work/undocumented"
if [ -s "$work/undocumented" ]; then
    echo "check_api: public symbols without a doc comment:" >&2
    cat "$work/undocumented" >&2
    status=1
fi
exit $status
