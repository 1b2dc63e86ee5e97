// Measures the limits of this machine: bytes read per second and 8-bit multiply-adds per second, on 1 and on 2 threads.
// The memory is as large as a model, because some processors have a cache of hundreds of megabytes that is twice as
// fast.
//
//   clang -O2 -march=native -pthread Benchmarks/limits.c -o /dev/shm/limits && /dev/shm/limits

#define _GNU_SOURCE
#include <immintrin.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

enum { MEGABYTES = 1000, ROUNDS = 2 };

#ifdef __AVX512VNNI__
typedef __m512i vector;
#define INSTRUCTIONS "VNNI"
#define MULTIPLY(sum, x, y) __asm__ volatile("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))
#else
typedef __m256i vector;
#define INSTRUCTIONS "AVX2"
#define MULTIPLY(sum, x, y)                                                                                       \
    do {                                                                                                         \
        vector product;                                                                                          \
        __asm__ volatile("vpmaddubsw %2, %1, %0" : "=x"(product) : "x"(x), "x"(y));                              \
        __asm__ volatile("vpaddw %1, %0, %0" : "+x"(sum) : "x"(product));                                        \
    } while (0)
#endif

static void *read_memory(void *argument) {
    char *memory = argument;
    size_t bytes = (size_t)MEGABYTES << 20;
    vector sums[4];
    memset(sums, 0, sizeof sums);
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < bytes; i += 4 * sizeof(vector)) {
            for (size_t line = 0; line < 4 * sizeof(vector); line += 64) _mm_prefetch(memory + i + 4096 + line, _MM_HINT_T0);
            for (size_t j = 0; j < 4; j++) sums[j] |= *(const vector *)(memory + i + j * sizeof(vector));
        }
    sums[0] |= sums[1] | sums[2] | sums[3];
    return (void *)(size_t)sums[0][0];
}

static void *multiply(void *argument) {
    vector sums[8], x, y;
    memset(sums, 0, sizeof sums);
    memset(&x, 3, sizeof x);
    memset(&y, 5, sizeof y);
    for (long i = 0; i < 100000000; i++)
        for (int j = 0; j < 8; j++) MULTIPLY(sums[j], x, y);
    return (void *)(size_t)sums[0][0];
}

#ifdef __AMX_INT8__
enum { TILE_PRODUCTS = 20000000 };

/// Full tiles of 16 × 16 sums of 64 products each, in four independent sums.
static void *multiply_tiles(void *argument) {
    struct {
        unsigned char palette, start, reserved[14];
        unsigned short bytes[16];
        unsigned char rows[16];
    } shapes = {.palette = 1, .bytes = {64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16}};
    _tile_loadconfig(&shapes);
    for (int i = 0; i < TILE_PRODUCTS; i += 4) {
        __asm__ volatile("tdpbusd %tmm5, %tmm4, %tmm0\n\ttdpbusd %tmm5, %tmm4, %tmm1\n\t"
                         "tdpbusd %tmm5, %tmm4, %tmm2\n\ttdpbusd %tmm5, %tmm4, %tmm3");
    }
    _tile_release();
    return argument;
}
#endif

static double run(int threads, void *(*body)(void *), char **memory) {
    pthread_t handles[2];
    double start = now();
    for (int i = 0; i < threads; i++) pthread_create(&handles[i], NULL, body, memory ? memory[i] : NULL);
    for (int i = 0; i < threads; i++) pthread_join(handles[i], NULL);
    return now() - start;
}

int main(void) {
    char *memory[2];
    for (int i = 0; i < 2; i++) {
        size_t bytes = ((size_t)MEGABYTES << 20) + (4 << 20);
        char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memory[i] = (char *)(((size_t)base + (2 << 20) - 1) & ~(size_t)((2 << 20) - 1));
        madvise(memory[i], (size_t)MEGABYTES << 20, MADV_HUGEPAGE);
        memset(memory[i], 1, (size_t)MEGABYTES << 20);
    }
    for (int threads = 1; threads <= 2; threads++) {
        double best = 0;
        for (int i = 0; i < 3; i++) {
            double rate = (double)threads * MEGABYTES * ROUNDS * 1.048576e6 / run(threads, read_memory, memory) / 1e9;
            if (rate > best) best = rate;
        }
        printf("%d thread(s): reads %.1f GB/s, ", threads, best);
        printf("8-bit products %.0f GOP/s (" INSTRUCTIONS ")",
               (double)threads * 8e8 * 2 * sizeof(vector) / run(threads, multiply, NULL) / 1e9);
#ifdef __AMX_INT8__
        // ARCH_REQ_XCOMP_PERM for the tile data.
        if (syscall(SYS_arch_prctl, 0x1023, 18) == 0)
            printf(", %.0f GOP/s (AMX)",
                   (double)threads * TILE_PRODUCTS * 16 * 16 * 64 * 2 / run(threads, multiply_tiles, NULL) / 1e9);
#endif
        printf("\n");
    }
}
