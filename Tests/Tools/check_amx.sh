#!/bin/sh
# Runs the kernels of amx.c with emulated tiles, and compares them with the scalar reference, and bit by bit with AVX-512.
# Needs clang and a processor with AVX-512 VNNI. Arguments are options of the compiler.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kernels=$here/../../Sources/Engine/CKernels
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
clang -std=gnu11 -O2 -I"$kernels/include" -DCK_EMULATED_TILES -DSET=CK_AMX -DEQUAL=CK_AVX512 "$@" \
    "$kernels"/*.c "$here/check_kernels.c" -o "$build/check" -lm -lpthread
"$build/check"
