// The thread pool. Chunks are claimed dynamically. Measurements showed that with a static split, one busy core delays
// every region; here, a late worker finds no chunk left because the other threads have already claimed its share.

#define _GNU_SOURCE
#include "ckernels.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#if defined(__x86_64__)
#define PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ volatile("yield")
#else
#define PAUSE() ((void)0)
#endif

// Iterations of busy waiting: long enough for the serial parts of a layer, short enough not to starve other processes.
enum { SPINS = 600 };

// Chunks of one parallel region: the ticket has 16 bits for them.
enum { MAX_CHUNKS = 0xFFFF };

struct ck_pool {
    // epoch (32 bits) · chunks (16) · next (16): one word, so that a claim cannot combine values of two regions.
    _Alignas(64) _Atomic uint64_t ticket;
    _Alignas(64) _Atomic uint32_t epoch;  // futex word of the workers
    _Atomic uint32_t sleepers;
    _Alignas(64) _Atomic uint32_t done;   // futex word of the caller
    _Atomic uint32_t caller_sleeps;
    void (*body)(void *, int);
    void *context;
    int first;  // the region's first chunk
    _Atomic bool stop;
    pthread_mutex_t lock;  // held during a parallel region
    int threads;
    pthread_t handles[];
};

static void wait_on(_Atomic uint32_t *word, uint32_t expected) {
#if defined(__linux__)
    syscall(SYS_futex, (uint32_t *)word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
#else
    (void)word, (void)expected;
    sched_yield();
#endif
}

static void wake(_Atomic uint32_t *word, int count) {
#if defined(__linux__)
    syscall(SYS_futex, (uint32_t *)word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
#else
    (void)word, (void)count;
#endif
}

/// Claims and runs chunks of parallel region `epoch` until none is left.
static void work(ck_pool *pool, uint32_t epoch) {
    for (;;) {
        uint64_t ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
        uint32_t chunks = (uint32_t)(ticket >> 16) & 0xFFFF, next = (uint32_t)ticket & 0xFFFF;
        if ((uint32_t)(ticket >> 32) != epoch || next >= chunks) return;
        if (!atomic_compare_exchange_weak_explicit(&pool->ticket, &ticket, ticket + 1, memory_order_acq_rel,
                                                   memory_order_relaxed))
            continue;
        pool->body(pool->context, pool->first + (int)next);
        if (atomic_fetch_add(&pool->done, 1) + 1 == chunks && atomic_load(&pool->caller_sleeps)) wake(&pool->done, 1);
    }
}

static void *worker(void *argument) {
    ck_pool *pool = argument;
    uint32_t seen = 0;
    for (;;) {
        uint32_t epoch = atomic_load_explicit(&pool->epoch, memory_order_acquire);
        for (int i = 0; epoch == seen && i < SPINS; i++) {
            PAUSE();
            epoch = atomic_load_explicit(&pool->epoch, memory_order_acquire);
        }
        while (epoch == seen) {
            atomic_fetch_add(&pool->sleepers, 1);
            wait_on(&pool->epoch, seen);
            atomic_fetch_sub(&pool->sleepers, 1);
            epoch = atomic_load(&pool->epoch);
        }
        if (atomic_load(&pool->stop)) return NULL;
        seen = epoch;
        work(pool, epoch);
    }
}

ck_pool *ck_pool_create(int threads) {
    if (threads < 1) threads = 1;
    size_t bytes = sizeof(ck_pool) + (size_t)threads * sizeof(pthread_t);
    ck_pool *pool = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    if (!pool) return NULL;
    __builtin_memset(pool, 0, bytes);
    pool->threads = 1;
    pthread_mutex_init(&pool->lock, NULL);
    for (int i = 1; i < threads; i++) {
        if (pthread_create(&pool->handles[pool->threads - 1], NULL, worker, pool) != 0) break;
        pool->threads++;
    }
    return pool;
}

void ck_pool_destroy(ck_pool *pool) {
    if (!pool) return;
    atomic_store(&pool->stop, true);
    atomic_fetch_add(&pool->epoch, 1);
    wake(&pool->epoch, pool->threads);
    for (int i = 0; i < pool->threads - 1; i++) pthread_join(pool->handles[i], NULL);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

int ck_pool_threads(const ck_pool *pool) { return pool->threads; }

static void run_region(ck_pool *pool, int first, int chunks) {
    pool->first = first;
    atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
    uint32_t epoch = atomic_load_explicit(&pool->epoch, memory_order_relaxed) + 1;
    atomic_store_explicit(&pool->ticket, (uint64_t)epoch << 32 | (uint64_t)chunks << 16, memory_order_release);
    atomic_store(&pool->epoch, epoch);
    if (atomic_load(&pool->sleepers)) wake(&pool->epoch, pool->threads);
    work(pool, epoch);

    uint32_t done = atomic_load_explicit(&pool->done, memory_order_acquire);
    for (int i = 0; done != (uint32_t)chunks && i < SPINS; i++) {
        PAUSE();
        done = atomic_load_explicit(&pool->done, memory_order_acquire);
    }
    if (done == (uint32_t)chunks) return;
    atomic_store(&pool->caller_sleeps, 1);
    while ((done = atomic_load(&pool->done)) != (uint32_t)chunks) wait_on(&pool->done, done);
    atomic_store(&pool->caller_sleeps, 0);
}

void ck_pool_run(ck_pool *pool, int chunks, void (*body)(void *context, int chunk), void *context) {
    if (chunks <= 1 || pool->threads == 1) {
        for (int i = 0; i < chunks; i++) body(context, i);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->body = body;
    pool->context = context;
    for (int first = 0; first < chunks; first += MAX_CHUNKS)
        run_region(pool, first, chunks - first < MAX_CHUNKS ? chunks - first : MAX_CHUNKS);
    pthread_mutex_unlock(&pool->lock);
}

int ck_physical_cores(void) {
#if defined(__linux__)
    cpu_set_t allowed, counted;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
    CPU_ZERO(&counted);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        char path[96];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
        // The file lists the hyperthreads of the core in ascending order; the lowest one identifies the core.
        int core = cpu;
        FILE *file = fopen(path, "re");
        if (file) {
            if (fscanf(file, "%d", &core) != 1 || core < 0 || core >= CPU_SETSIZE) core = cpu;
            fclose(file);
        }
        CPU_SET(core, &counted);
    }
    return CPU_COUNT(&counted);
#else
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? (int)cores : 1;
#endif
}

typedef struct {
    void (*body)(void *context);
    void *context;
} thread_start;

static void *run_thread(void *argument) {
    thread_start start = *(thread_start *)argument;
    free(argument);
    start.body(start.context);
    return NULL;
}

bool ck_start_thread(void (*body)(void *context), void *context) {
    thread_start *start = malloc(sizeof *start);
    if (!start) return false;
    *start = (thread_start){body, context};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_thread, start) != 0) {
        free(start);
        return false;
    }
    pthread_detach(thread);
    return true;
}
