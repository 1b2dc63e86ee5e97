#!/bin/sh
# Checks the macros in the given build folder: compares the expansion of each file of Tests/Macros with its
# .expanded.txt (--update writes that file instead), and lets the compiler verify the expected diagnostics and fix-its
# in Tests/Macros/Diagnostics.
set -u
build=$1 update=${2-}
fixtures=$(cd "$(dirname "$0")/../Macros" && pwd)
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
failures=0

check() {
    swiftc -typecheck -swift-version 6 -package-name fixtures -module-name Fixture \
        -load-plugin-executable "$build/FoundationModelsMacros-tool#FoundationModelsMacros" \
        -I "$build/Modules" -I "$build/CKernels.build" -I "$build/LanguageTable.build" -I "$build/GuardrailTable.build" \
        -Xcc "-fmodule-map-file=$build/CKernels.build/module.modulemap" -Xcc "-fmodule-map-file=$build/LanguageTable.build/module.modulemap" -Xcc "-fmodule-map-file=$build/GuardrailTable.build/module.modulemap" \
        -enable-upcoming-feature InternalImportsByDefault -enable-upcoming-feature MemberImportVisibility \
        -enable-upcoming-feature ExistentialAny "$@"
}

# Names each expansion by the demangled name of its buffer, removes empty expansions, and sorts them, because the order
# in which the compiler requests expansions is not stable.
clean() {
    sed -E 's/^@__swiftmacro_(.*)\.swift$/@$s\1/' | swift demangle |
        sed -E '/^@/s/\(([^ ()]*|`[^`]*`) in _[0-9A-F]+\)/\1/g
            s/^@([a-z]+) macro @([A-Za-z_]+) expansion #[0-9]+ of (.*)$/@\3, @\2, \1/' |
        awk '/^@/ { name = substr($0, 2); rules = 0; next }
            /^-+$/ && rules < 2 { rules++; next }
            rules == 1 { if (!seen[name]++) printf "%s\t%06d\t// %s\n", name, NR, name
                         printf "%s\t%06d\t%s\n", name, NR, $0 }' |
        LC_ALL=C sort | cut -f 3- | awk '/^\/\/ .*, @/ && NR > 1 { print "" } { print }'
}

for source in "$fixtures"/*.swift; do
    expected=${source%.swift}.expanded.txt
    if ! check -warnings-as-errors -Xfrontend -dump-macro-expansions "$source" >"$work/out" 2>&1; then
        echo "does not compile: $source"
        grep -E 'error:|warning:' "$work/out"
        failures=$((failures + 1))
        continue
    fi
    clean <"$work/out" >"$work/expanded"
    if [ "$update" = --update ]; then
        cp "$work/expanded" "$expected"
    elif ! diff -u "$expected" "$work/expanded"; then
        echo "the expansion differs: $source"
        failures=$((failures + 1))
    fi
done

for source in "$fixtures"/Diagnostics/*.swift; do
    if ! check -Xfrontend -verify "$source" >"$work/out" 2>&1; then
        echo "the diagnostics differ: $source"
        cat "$work/out"
        failures=$((failures + 1))
    fi
done

[ $failures -eq 0 ] || echo "check_macros: $failures of the fixtures failed" >&2
[ $failures -eq 0 ]
