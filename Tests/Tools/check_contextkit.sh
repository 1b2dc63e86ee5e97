#!/bin/sh
# ContextKit uses only the public interface of FoundationModels, so that it also compiles with Apple's framework. Checks
# this by compiling it as part of another package. Also requires a doc comment on every public symbol.
set -eu
cd "$(dirname "$0")/../.."
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
set -- -I "$build/Modules" \
    -Xcc -fmodule-map-file=.build/checkouts/GRDB.swift/Sources/GRDBSQLite/module.modulemap \
    -Xcc "-fmodule-map-file=$build/CKernels.build/module.modulemap" -Xcc "-fmodule-map-file=$build/LanguageTable.build/module.modulemap" -Xcc "-fmodule-map-file=$build/GuardrailTable.build/module.modulemap" -Xcc "-fmodule-map-file=$build/ModelAdapters.build/module.modulemap"
find Sources/Apps/ContextKit -name '*.swift' >"$work/sources"
# With the trait SQLite, and without it.
for trait in SQLite WITHOUT_SQLITE; do
    # shellcheck disable=SC2046
    swiftc -typecheck -swift-version 6 -package-name elsewhere -warnings-as-errors -D $trait \
        -enable-upcoming-feature InternalImportsByDefault -enable-upcoming-feature MemberImportVisibility \
        -enable-upcoming-feature ExistentialAny "$@" $(cat "$work/sources")
done
target=$(swift -print-target-info | sed -n 's/.*"unversionedTriple": *"\([^"]*\)".*/\1/p' | head -1)
swift symbolgraph-extract -module-name ContextKit -target "$target" "$@" -minimum-access-level public -output-dir "$work"
python3 Tests/Tools/api_table.py "$work" --undocumented >"$work/undocumented"
if [ -s "$work/undocumented" ]; then
    echo "check_contextkit: public symbols without a doc comment:" >&2
    cat "$work/undocumented" >&2
    exit 1
fi
