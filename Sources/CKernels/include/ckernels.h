/// Block arithmetic for transformer inference on CPUs: packed matrices, activations, attention, a thread pool.
///
/// No I/O and no global state but the dispatch table. Nothing here allocates except `ck_pool_create`.
/// Every function that has a faster twin for an instruction set is reached through `ck_kernels`;
/// `scalar.c` is the reference the others are tested against.
#ifndef CKERNELS_H
#define CKERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// MARK: - Thread pool

/// Workers and the caller claim chunks from one atomic ticket; the caller waits for claimed chunks only.
typedef struct ck_pool ck_pool;

/// A pool of `threads` threads, the caller being one of them. Null if memory is short.
/// If the system refuses a thread, the pool works with those it got.
ck_pool *ck_pool_create(int threads);
void ck_pool_destroy(ck_pool *pool);
int ck_pool_threads(const ck_pool *pool);
/// Physical cores within this process's CPU affinity: hyperthreads share the units that arithmetic waits for.
int ck_physical_cores(void);
/// Calls `body(context, i)` once for every `i` in `0..<chunks` (at most 65,535) and returns when all are done.
/// One caller at a time; `body` must not call the pool.
void ck_pool_run(ck_pool *pool, int chunks, void (*body)(void *context, int chunk), void *context);

// MARK: - Matrices

/// Rows of a packed matrix are interleaved in panels of this many, so that one vector register
/// holds the same columns of all rows of a panel and no horizontal sum is ever needed.
enum { CK_PANEL = 16 };

/// How a panel stores its weights. Integer layouts hold unsigned codes `q`; a weight is `d·(q − offset)` or `d·q + m`.
/// A block is 32 columns (16 for `CK_U8_D16`): codes as `[block/4][16 rows][4 columns]` bytes
/// (4-bit: low nibbles are columns 0–15, high nibbles 16–31), then 16 `d` and, where present, 16 `m` as binary16.
typedef enum {
    CK_U4_D,    ///< 4-bit codes, offset 8 (Q4_0)
    CK_U4_DM,   ///< 4-bit codes with minimum (Q4_1, Q4_K)
    CK_U8_D,    ///< 8-bit codes, offset 128 (Q8_0)
    CK_U8_DM,   ///< 8-bit codes with minimum (Q5_0, Q5_1, Q5_K)
    CK_U8_D16,  ///< 8-bit codes, offset 32, blocks of 16 (Q6_K)
    CK_F16,     ///< binary16 as `[column][16 rows]`
    CK_BF16,    ///< bfloat16, the same order
    CK_F32,     ///< binary32, the same order
} ck_layout;

/// A packed matrix; `data` holds `ceil(rows/16)` panels of `panel_bytes`, missing rows are zero.
/// The product is multiplied by `scale` (a power of two that keeps block scales inside binary16).
typedef struct {
    int32_t rows;
    int32_t columns;
    ck_layout layout;
    float scale;
    size_t panel_bytes;
    const uint8_t *data;
} ck_matrix;

/// Bytes of one panel, or 0 if `columns` does not fit the layout's block.
size_t ck_panel_bytes(ck_layout layout, int32_t columns);

/// The tensor types of GGUF that can be packed, by their number in the file.
typedef enum {
    CK_TYPE_F32 = 0,
    CK_TYPE_F16 = 1,
    CK_TYPE_Q4_0 = 2,
    CK_TYPE_Q4_1 = 3,
    CK_TYPE_Q5_0 = 6,
    CK_TYPE_Q5_1 = 7,
    CK_TYPE_Q8_0 = 8,
    CK_TYPE_Q4_K = 12,
    CK_TYPE_Q5_K = 13,
    CK_TYPE_Q6_K = 14,
    CK_TYPE_BF16 = 30,
} ck_type;

/// Elements and bytes of one block of a tensor type; both 0 for a type that is not supported.
int32_t ck_type_block(ck_type type);
int32_t ck_type_bytes(ck_type type);
/// The layout a tensor type is packed into.
ck_layout ck_type_layout(ck_type type);
/// The power of two that K-quantised block scales of a tensor are divided by: see `ck_matrix.scale`.
float ck_type_scale(ck_type type, const uint8_t *source, size_t blocks);
/// Packs panels `first..<last` of a row-major tensor at `source` into `destination` (start of panel 0).
void ck_pack(ck_type type, const uint8_t *source, ck_matrix *matrix, uint8_t *destination, int32_t first, int32_t last);
/// Decodes `count` elements (whole blocks) of a row-major tensor to binary32.
void ck_dequantize(ck_type type, const uint8_t *source, size_t count, float *destination);
/// weights `[rows][columns]` += scale · b `[rows][rank]` · a `[rank][columns]`: a low-rank adapter merged into a matrix.
void ck_add_low_rank(
    float *weights, const float *b, const float *a, int32_t rows, int32_t rank, int32_t columns, float scale);
/// Encodes `count` elements (whole blocks of 32) as Q8_0.
void ck_quantize_q8_0(const float *x, size_t count, uint8_t *blocks);
/// Decodes one row of a packed matrix; how token embeddings are read.
void ck_matrix_row(const ck_matrix *matrix, int32_t row, float *destination);

// MARK: - Activations

/// `count` rows of activations, each `columns` wide (stride `columns`), in binary32 and, for integer layouts,
/// as signed bytes with one scale per 32 columns: `x ≈ d·q`.
typedef struct {
    int32_t count;
    int32_t columns;
    const float *x;    ///< [count][columns]
    int8_t *q;         ///< [count][columns]
    float *d;          ///< [count][columns/32]
    float *s;          ///< [count][columns/32], `d` times the sum of the block's `q`
    int32_t *sums;     ///< [count][columns/16], the negated sum of each 16 `q`
} ck_activations;

/// One attention call: `rows` tokens that end at `length`, for all heads.
///
/// Keys are stored in blocks of 16 positions as `[position/16][head_dim][16]`, values as `[position][head_dim]`,
/// both binary16, one region of `capacity` positions per KV head. `head_dim` is a multiple of 16 for values' stride
/// `value_stride`; capacity is a multiple of 16.
typedef struct {
    const float *q;          ///< [rows][heads·head_dim], already rotated
    float *out;              ///< [rows][heads·head_dim]
    const uint16_t *keys;    ///< [kv_heads][capacity/16][head_dim][16]
    const uint16_t *values;  ///< [kv_heads][capacity][value_stride]
    float *partial;          ///< scratch for a split over positions: see `ck_attention_partial_floats`
    float scale;             ///< applied to the products, `1/√head_dim`
    int32_t rows;
    int32_t heads;
    int32_t kv_heads;
    int32_t head_dim;
    int32_t value_stride;
    int32_t capacity;
    int32_t length;          ///< positions in the cache, the rows' own included
    int32_t window;          ///< sliding window in positions, 0 for none
} ck_attention;

/// Floats of `partial` that a call can need.
size_t ck_attention_partial_floats(int32_t heads, int32_t head_dim, int32_t capacity);

// MARK: - Kernels

typedef enum { CK_SCALAR, CK_AVX2, CK_AVX512, CK_AMX, CK_NEON } ck_isa;

/// The functions of one instruction set.
typedef struct {
    ck_isa isa;
    const char *name;
    /// y[t][row] (stride `ldy`) = or += matrix · x[t], for one panel and all rows of the activations.
    void (*panel)(const ck_matrix *m, int32_t panel, const ck_activations *a, float *y, int32_t ldy, bool add);
    /// Quantises one row of activations: fills `q`, `d`, `s`, `sums` for row `row`.
    void (*quantize)(const ck_activations *a, int32_t row);
    /// out = x / rms(x) · weight; `epsilon` is added to the mean square.
    void (*rmsnorm)(const float *x, const float *weight, float epsilon, int32_t n, float *out);
    /// gate = silu(gate) · up
    void (*swiglu)(float *gate, const float *up, int32_t n);
    /// One work item of an attention call: a group of query rows of one KV head over a range of positions.
    void (*attention)(const ck_attention *a, int32_t kv_head, int32_t first_head, int32_t head_count,
                      int32_t first_row, int32_t row_count, int32_t from, int32_t to, float *partial);
    /// Rounds `n` values to binary16.
    void (*to_half)(const float *x, int32_t n, uint16_t *out);
    /// Index of the greatest value; the first of equals.
    int32_t (*argmax)(const float *x, int32_t n);
    /// x = exp((x − max) · inverse_temperature); returns the sum.
    float (*exp_shifted)(const float *x, float max, float inverse_temperature, int32_t n, float *out);
} ck_kernels;

/// The best kernels this processor can run. Chosen once.
const ck_kernels *ck_kernels_best(void);
/// The kernels of one instruction set, or null if this processor or build has none.
const ck_kernels *ck_kernels_for(ck_isa isa);

// MARK: - Parallel operations

/// One product of a set that shares its activations.
typedef struct {
    ck_matrix matrix;
    float *y;      ///< [count][ldy]
    int32_t ldy;
    bool add;
} ck_product;

/// Runs the products over the pool in one parallel region.
void ck_matmul(ck_pool *pool, const ck_kernels *k, const ck_activations *a, const ck_product *products, int32_t count);
/// Computes the panels of a product that hold the given rows of its matrix, in ascending order, on the calling thread.
void ck_matmul_rows(const ck_kernels *k, const ck_activations *a, const ck_product *product, const int32_t *rows,
                    int32_t count);
/// Attention of all heads and rows over the pool.
void ck_attend(ck_pool *pool, const ck_kernels *k, const ck_attention *a);
/// RMS norm of `a->count` rows of `x` into `out` (= `a->x`), and quantisation of the result if `quantize`.
void ck_normalize(ck_pool *pool, const ck_kernels *k, const float *x, const float *weight, float epsilon,
                  float *out, const ck_activations *a, bool quantize);
/// gate = silu(gate) · up by row (= `a->x`), and quantisation of the result if `quantize`.
void ck_swiglu(ck_pool *pool, const ck_kernels *k, float *gate, const float *up, const ck_activations *a, bool quantize);
/// Quantisation of `a->x` by row.
void ck_quantize(ck_pool *pool, const ck_kernels *k, const ck_activations *a);

/// The step between projections and attention: rotates queries and keys of `rows` tokens, and writes keys and values
/// into the cache at `position` and on, in the order that `ck_attention` describes.
typedef struct {
    float *q;             ///< [rows][heads·head_dim], rotated in place
    float *k;             ///< [rows][kv_heads·head_dim], rotated in place
    const float *v;       ///< [rows][kv_heads·head_dim]
    const float *cosine;  ///< [rows][pairs]
    const float *sine;    ///< [rows][pairs]
    uint16_t *keys;
    uint16_t *values;
    int32_t rows;
    int32_t heads;
    int32_t kv_heads;
    int32_t head_dim;
    int32_t value_stride;
    int32_t capacity;
    int32_t position;
    int32_t pairs;        ///< dimensions past 2·pairs are not rotated
    bool halves;          ///< pairs are (i, i+pairs) instead of (2i, 2i+1)
} ck_rotation;

void ck_rotate_and_store(ck_pool *pool, const ck_kernels *k, const ck_rotation *r);

uint16_t ck_float_to_half(float x);
float ck_half_to_float(uint16_t h);

#endif
