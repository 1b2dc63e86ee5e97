#!/bin/sh
# Runs the NEON kernels under emulation and compares them with the scalar reference, type by type.
# Needs clang, qemu-user and gcc-aarch64-linux-gnu (for its C library and linker).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kernels=$here/../../Sources/Engine/CKernels
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
for file in scalar neon pack quants experts recurrent parallel pool dispatch; do
    clang --target=aarch64-linux-gnu -isystem /usr/aarch64-linux-gnu/include -std=gnu11 -O2 -I"$kernels/include" \
        -c "$kernels/$file.c" -o "$build/$file.o"
done
clang --target=aarch64-linux-gnu -isystem /usr/aarch64-linux-gnu/include -std=gnu11 -O1 -I"$kernels/include" \
    -DSET=CK_NEON -c "$here/check_kernels.c" -o "$build/main.o"
aarch64-linux-gnu-gcc -static "$build"/*.o -o "$build/check" -lm -lpthread
qemu-aarch64 -cpu max "$build/check"
