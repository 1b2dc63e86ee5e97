#!/bin/sh
# Runs the kernels of all instruction sets of this processor, those of amx.c with emulated tiles, and those of training and quantisation, with
# a sanitizer of clang.
#   check_sanitized.sh              accesses outside of memory, about two minutes
#   check_sanitized.sh undefined    undefined behaviour, about ten minutes: the unrolled kernels take long to compile
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kernels=$here/../../Sources/Engine/CKernels
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
case ${1:-address} in
# Checks are calls: as instructions they make the unrolled kernels so large that clang takes hours.
address) options="-fsanitize=address -mllvm -asan-instrumentation-with-call-threshold=0" ;;
# Values of files are read where they are, without regard to their alignment.
undefined) options="-fsanitize=undefined -fno-sanitize=alignment -fno-sanitize-recover" ;;
*) echo "check_sanitized.sh [address | undefined]" >&2; exit 2 ;;
esac
# The program ends without freeing everything.
export ASAN_OPTIONS=detect_leaks=0
for file in "$kernels"/*.c; do
    # shellcheck disable=SC2086
    clang -std=gnu11 -O1 -g1 -I"$kernels/include" -DCK_EMULATED_TILES $options -c "$file" -o "$build/$(basename "$file" .c).o"
done
for set in CK_AVX2 CK_AVX512 CK_AMX; do
    echo "$set"
    # shellcheck disable=SC2086
    clang -std=gnu11 -O1 -g1 -I"$kernels/include" -DSET=$set $options "$here/check_kernels.c" "$build"/*.o \
        -o "$build/check" -lm -lpthread 2>/dev/null
    "$build/check"
done
for check in check_training check_quantize; do
    # shellcheck disable=SC2086
    clang -std=gnu11 -O1 -g1 -I"$kernels" -I"$kernels/include" $options "$here/$check.c" "$build"/*.o -o "$build/check" -lm -lpthread \
        2>/dev/null
    "$build/check"
done
