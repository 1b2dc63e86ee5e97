/// Block arithmetic for transformer inference on CPUs: packed matrices, activations, attention, a thread pool.
///
/// Except `ck_physical_cores`, no function does I/O. The dispatch table and the grids of quantisation are the only global state, each
/// made once, and only `ck_pool_create` and `ck_start_thread` allocate. Functions with implementations for several instruction sets are called through
/// `ck_kernels`; `scalar.c` is the reference implementation that the others are tested against.
#ifndef CKERNELS_H
#define CKERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensor_types.h"

// MARK: - Thread pool

/// Workers and the caller claim chunks from one atomic counter; the caller waits for claimed chunks only.
typedef struct ck_pool ck_pool;

/// Creates a pool of `threads` threads, including the caller. Returns null if allocation fails.
/// If the system cannot create all threads, the pool uses those that were created.
ck_pool *ck_pool_create(int threads);
void ck_pool_destroy(ck_pool *pool);
int ck_pool_threads(const ck_pool *pool);
/// Calls `body(context)` on a new thread, which ends with it. Returns false if the system cannot create one.
bool ck_start_thread(void (*body)(void *context), void *context);
/// The number of physical cores within this process's CPU affinity. Hyperthreads are not counted because they share the
/// arithmetic units of their core.
int ck_physical_cores(void);
/// Calls `body(context, i)` once for every `i` in `0..<chunks` and returns when all calls have
/// returned. Thread-safe: regions of several callers run one after the other, so that models that share a pool take turns at each
/// operation; only what runs on the caller's thread alone (one chunk, or a pool of one thread) waits for no other region. `body` must
/// not call the pool, which would wait for itself.
void ck_pool_run(ck_pool *pool, int chunks, void (*body)(void *context, int chunk), void *context);

// MARK: - Matrices

/// Rows of a packed matrix are interleaved in panels of this many rows, so that one vector register
/// holds the same columns of all rows of a panel and no horizontal sum is needed.
enum { CK_PANEL = 16 };

/// A packed matrix. `data` holds `ceil(rows/16)` panels of `panel_bytes`; missing rows of the last panel are zero.
/// Products are multiplied by `scale`.
typedef struct {
    int32_t rows;
    int32_t columns;
    ck_layout layout;
    ck_type type;  ///< type of the tensor in the file
    float scale;
    size_t panel_bytes;
    const uint8_t *data;
    /// Whether activations may be rounded to bfloat16 for a product with a `CK_BF16` matrix, which is twice as fast where the processor
    /// has such products.
    bool rounds_activations;
    int32_t identity;  ///< the number of the matrix among those of its model; no kernel reads it
} ck_matrix;

/// The number of tensor types, and the type at an index of the table.
int32_t ck_type_count(void);
ck_type ck_type_at(int32_t index);
/// The usual name of a tensor type, such as `Q4_K`; null for an unknown type.
const char *ck_type_name(ck_type type);
/// Elements and bytes of one block of a tensor type; both 0 for an unknown type.
int32_t ck_type_block(ck_type type);
int32_t ck_type_bytes(ck_type type);
/// The layout that a tensor type is packed into.
ck_layout ck_type_layout(ck_type type);
/// Whether a matrix of this layout has codes and scales, and is multiplied by quantised activations.
bool ck_layout_is_integer(ck_layout layout);
/// Whether products with matrices of this layout can use the `unit` of activations.
bool ck_layout_sums_blocks(ck_layout layout);
/// Bytes of one panel, or 0 if `columns` is not a positive multiple of the type's block size.
size_t ck_panel_bytes(ck_type type, int32_t columns);
/// Packs one panel from up to 16 rows of the file.
void ck_pack(const ck_matrix *matrix, const uint8_t *const *rows, int32_t count, uint8_t *panel);
/// Decodes `count` elements (whole blocks) of a row-major tensor to binary32.
void ck_dequantize(ck_type type, const uint8_t *source, size_t count, float *destination);
/// Merges a low-rank adapter into a matrix: weights `[rows][columns]` += scale · b `[rows][rank]` · a
/// `[rank][columns]`.
void ck_add_low_rank(
    float *weights, const float *b, const float *a, int32_t rows, int32_t rank, int32_t columns, float scale);
/// Whether `ck_encode` can write a type.
bool ck_can_encode(ck_type type);
/// Encodes `count` elements (whole blocks). Types of numbers and Q8_0 are rounded. The others are encoded so that the square error is
/// small; that of large elements counts more. With `importance`, each element's error counts also as much as its importance, which is not
/// negative. Every processor gives the same bytes.
void ck_encode(ck_type type, const float *x, size_t count, const float *importance, uint8_t *out);
/// Decodes one row of a packed matrix, for example a token embedding.
void ck_matrix_row(const ck_matrix *matrix, int32_t row, float *destination);

// MARK: - Activations

/// `count` rows of activations, each `columns` wide (stride `columns`), in binary32 and, for products with integer
/// layouts, as signed bytes with one scale per 32 columns: `x ≈ d·q`.
///
/// With `unit`, the scales of 256 columns are multiples of one unit, `d = unit·factor`, so that products with matrices whose scales
/// are integers too add integers over 256 columns. The codes of such a row are small enough for these sums; see `ck_block_needs` in kernel_sets.h.
typedef struct {
    int32_t count;
    int32_t columns;
    const float *x;    ///< [count][columns]
    int8_t *q;         ///< [count][columns]
    float *d;          ///< [count][columns/32]
    float *s;          ///< [count][columns/32], `d` times the sum of the block's `q`; with `unit`, 8·`unit`·`weighted`
    int32_t *sums;     ///< [count][columns/16], the negated sum of every 16 values of `q`
    float *unit;       ///< [count][columns/256], or null; then the following are not used
    int16_t *factors;  ///< [count][columns/32], 0 to 127
    int16_t *weighted; ///< [count][columns/32], `factor` times the sum of the block's `q`, divided by 8 and rounded
    int32_t *starts;   ///< [count][columns/16], −32 times the sum of every 16 values of `q`
} ck_activations;

/// Positions of one page of a KV cache, and of one part of an attention call.
enum { CK_PAGE = 256 };

/// One attention call for all heads. The queries are the last `rows` of `length` positions. The mask is causal, or, with
/// `both_sides`, every query attends to positions before and after it. With `visible_end`, some queries of a causal call attend
/// to later positions too.
///
/// The KV cache consists of pages of `CK_PAGE` positions. In each page, keys are stored in blocks of 16 positions as
/// `[kv_heads][CK_PAGE/16][head_dim][16]`, values as `[kv_heads][CK_PAGE][value_stride]`, both binary16. `value_stride` is
/// `value_dim` rounded up to a multiple of 16. With 8 bits, elements are int8, and both are followed by their factors,
/// binary32 `[kv_heads][CK_PAGE]`: one for the key of a position and head, and one for the value.
typedef struct {
    const float *q;          ///< [rows][heads·head_dim], already rotated
    float *out;              ///< [rows][heads·value_dim]
    uint8_t *const *pages;   ///< the pages of the sequence, at least those up to `length`
    size_t key_offset;       ///< of the layer's keys in a page, in bytes
    size_t value_offset;
    float *partial;          ///< scratch memory for a split over positions: see `ck_attention_partial_floats`
    const int32_t *visible_end;  ///< [rows], the end of the positions that each row attends to, if it is after the row, at most `length`; null for none
    const float *sinks;      ///< [heads], attention sinks: scores of a position without a value (gpt-oss); null for none
    float scale;             ///< factor of the dot products, usually `1/√head_dim`
    float soft_cap;          ///< scores become `cap·tanh(score/cap)`; 0 for none
    int32_t rows;
    int32_t heads;
    int32_t kv_heads;
    int32_t head_dim;
    int32_t value_dim;
    int32_t value_stride;
    int32_t length;          ///< positions in the cache, including those of the rows
    int32_t window;          ///< sliding window in positions, 0 for none; with `both_sides`, half of it on each side
    bool bytes;              ///< whether keys and values have 8 bits
    bool both_sides;         ///< encoders: no causal mask; `rows` must equal `length`
    bool rounds;             ///< whether rows from position `CK_ROUNDED_FROM` on may use products of bfloat16 (causal masks only)
} ck_attention;

/// The keys and values of one KV head in one page, which are prefetched for a later work item.
typedef struct {
    const uint8_t *keys;
    const uint8_t *values;
} ck_attention_next;

/// Rows at earlier positions, whose attention takes little time, have products of binary32.
enum { CK_ROUNDED_FROM = 512 };

/// The maximum number of floats of `ck_attention.partial` that a call uses.
size_t ck_attention_partial_floats(int32_t heads, int32_t value_dim, int32_t capacity);

// MARK: - Kernels

/// The non-linear function of a feed-forward layer.
typedef enum {
    CK_SILU,         ///< x·σ(x) (SwiGLU, arXiv:2002.05202)
    CK_GELU,         ///< the tanh approximation (arXiv:1606.08415)
    CK_GELU_ERF,     ///< x·Φ(x), with an error of the error function below 2e-7
    CK_RELU_SQUARED,
    CK_SWIGLU_OAI,   ///< gpt-oss: gate·σ(1.702·gate)·(up + 1), with gate clamped to ≤ 7 and up to ±7
} ck_activation;

/// A product with two low-rank matrices beside a matrix (LoRA, arXiv:2106.09685): y += scale · B · (A · x) for each row.
/// Both are in binary16, transposed, and padded with zeros to multiples of 16 of the rank and of the outputs: `a` is [columns][rank], `b` is
/// [outputs / 16][rank][16], so that each is read from its beginning to its end.
typedef struct {
    const float *x;    ///< [rows][columns]
    float *y;          ///< [rows][ldy]
    const uint16_t *a, *b;
    int32_t rows, columns, rank, outputs, ldy;
    float scale;
} ck_low_rank;
/// The maximum rank.
enum { CK_MAX_RANK = 256 };
/// Rows of a low-rank product that are computed together.
enum { CK_LOW_RANK_ROWS = 16 };
/// Parts of the columns of a low-rank product, whose sums are added at the end.
enum { CK_LOW_RANK_PARTS = 4 };

typedef enum { CK_SCALAR, CK_AVX2, CK_AVX512, CK_AMX, CK_NEON } ck_isa;

/// The functions of one instruction set.
typedef struct {
    ck_isa isa;
    const char *name;
    /// Whether products add integers over 256 columns where activations have a `unit` (see `ck_activations`).
    bool sums_blocks;
    /// y[t][row] (stride `ldy`) = matrix · x[t], or += if `add`, for one panel and all rows of the activations.
    void (*panel)(const ck_matrix *m, int32_t panel, const ck_activations *a, float *y, int32_t ldy, bool add);
    /// The same for this panel and the next one, with the same results, where that is faster; else returns false and does
    /// nothing. Null if it never is.
    bool (*pair)(const ck_matrix *m, int32_t panel, const ck_activations *a, float *y, int32_t ldy, bool add);
    /// Quantises one row of activations: writes all arrays of row `row` but `x`.
    void (*quantize)(const ck_activations *a, int32_t row);
    /// out = x / rms(x) · weight; `epsilon` is added to the mean square. A null weight stands for all ones.
    void (*rmsnorm)(const float *x, const float *weight, float epsilon, int32_t n, float *out);
    /// out = (x − mean) / standard deviation · weight + bias (arXiv:1607.06450); `epsilon` is added to the variance. A null
    /// bias stands for zeros. `out` may be `x`.
    void (*layernorm)(const float *x, const float *weight, const float *bias, float epsilon, int32_t n, float *out);
    /// out += factor · x
    void (*add)(float *out, const float *x, float factor, int32_t n);
    /// gate = act(gate) · up, or act(gate) where `up` is null.
    void (*activate)(ck_activation kind, float *gate, const float *up, int32_t n);
    /// One step of a gated DeltaNet for one value head: see `ck_delta`.
    void (*delta_step)(float *state, const float *q, const float *k, const float *v, float decay, float beta,
                       int32_t key_dim, int32_t value_dim, float *out);
    /// One step of Mamba-2 for one head: see `ck_mamba`.
    void (*mamba_step)(float *state, const float *x, const float *b, const float *c, float decay, float delta,
                       int32_t head_dim, int32_t state_size, float *out);
    /// One work item of an attention call: up to 12 query rows (heads times rows) of one KV head over the positions
    /// `from ..< to` of one page. `partial` receives [row][2 + value_stride]: maximum score, sum of exponentials, unnormalised
    /// output. `next` is what a later item reads, or null.
    void (*attention)(const ck_attention *a, int32_t kv_head, int32_t first_head, int32_t head_count, int32_t first_row,
                      int32_t row_count, int32_t from, int32_t to, const ck_attention_next *next, float *partial);
    /// Rounds `n` values to binary16.
    void (*to_half)(const float *x, int32_t n, uint16_t *out);
    /// Index of the maximum; the first one if there are several.
    int32_t (*argmax)(const float *x, int32_t n);
    /// x = cap · tanh(x / cap)
    void (*soft_cap)(float *x, float cap, int32_t n);
    /// out = exp((x − max) · inverse_temperature); returns the sum.
    float (*exp_shifted)(const float *x, float max, float inverse_temperature, int32_t n, float *out);
    /// Up to `CK_LOW_RANK_ROWS` rows of a low-rank product.
    void (*low_rank)(const ck_low_rank *term, int32_t row, int32_t rows);
    /// The same in two steps, for one row: the sums of one part of the columns, `rank` numbers, and then the outputs from `from` to `to`,
    /// multiples of 16, from the sums of all parts, one after the other. The results have the same bits.
    void (*low_rank_part)(const ck_low_rank *term, int32_t row, int part, float *sums);
    void (*low_rank_outputs)(const ck_low_rank *term, int32_t row, const float *sums, int32_t from, int32_t to);
    /// out[row] = the dot product of `query` with each of `count` rows of `n` bytes.
    void (*dot_rows)(const int8_t *rows, size_t count, const int8_t *query, int32_t n, int32_t *out);
} ck_kernels;

/// The fastest kernels this processor supports. Selected on the first call; thread-safe.
const ck_kernels *ck_kernels_best(void);
/// The kernels of one instruction set, or null if this processor or build does not support it.
const ck_kernels *ck_kernels_for(ck_isa isa);

// MARK: - Parallel operations

/// One product of a `ck_matmul` call.
typedef struct {
    ck_matrix matrix;
    const ck_activations *activations;  ///< null for the activations passed to the call
    float *y;      ///< [count][ldy]
    int32_t ldy;
    bool add;      ///< adds to `y` instead of overwriting it
} ck_product;

/// Computes the products on the pool in one parallel region.
void ck_matmul(ck_pool *pool, const ck_kernels *k, const ck_activations *a, const ck_product *products, int32_t count);
/// Computes the panels of a product that contain the given rows of its matrix, on the calling thread. `rows` is in
/// ascending order.
void ck_matmul_rows(const ck_kernels *k, const ck_activations *a, const ck_product *product, const int32_t *rows,
                    int32_t count);
/// Computes all rows of some low-rank products on the pool in one parallel region.
void ck_add_low_rank_products(ck_pool *pool, const ck_kernels *k, const ck_low_rank *terms, int32_t count);
/// The maximum number of sequences of one batch.
enum { CK_MAX_SEGMENTS = 64 };
/// Computes attention of all heads and rows of up to `CK_MAX_SEGMENTS` sequences in one parallel region.
void ck_attend(ck_pool *pool, const ck_kernels *k, const ck_attention *calls, int32_t count);
/// RMS norm of `a->count` rows of `x` into `out` (= `a->x`), and quantisation of the result if `quantize`. If `weight`
/// is null, the rows are copied and not normalised.
void ck_normalize(ck_pool *pool, const ck_kernels *k, const float *x, const float *weight, float epsilon,
                  float *out, const ck_activations *a, bool quantize);
/// Layer norm of `a->count` rows of `x` into `out`, which may be `x`, and quantisation of `a->x` if `quantize`.
void ck_layer_normalize(ck_pool *pool, const ck_kernels *k, const float *x, const float *weight, const float *bias,
                        float epsilon, float *out, const ck_activations *a, bool quantize);
/// residual += scale · norm(x + bias), row by row: adds a branch whose output is normalised. If `weight` is null, it is not
/// normalised; a null `bias` stands for zeros. `x` is overwritten.
void ck_add_branch(ck_pool *pool, const ck_kernels *k, float *x, const float *bias, const float *weight, float epsilon, float scale,
                   float *residual, int32_t rows, int32_t columns);
/// Adds `bias` to each of `rows` rows.
void ck_add_bias(const ck_kernels *k, float *x, const float *bias, int32_t rows, int32_t columns);
/// gate = act(gate) · up, row by row, where `gate` is `a->x`. Biases that are not null are added first. The result is
/// quantised if `quantize`.
void ck_activate(ck_pool *pool, const ck_kernels *k, ck_activation kind, float *gate, const float *up, const float *gate_bias,
                 const float *up_bias, const ck_activations *a, bool quantize);
/// x = x · σ(gate), element by element.
void ck_multiply_sigmoid(ck_pool *pool, float *x, const float *gate, int32_t rows, int32_t columns);
/// Multiplies each row of `x` (`[rows][columns]`) by σ(input row · vector). `input` is `[rows][width]`, `vector`
/// `[width]`.
void ck_scale_by_gate(float *x, int32_t rows, int32_t columns, const float *input, const float *vector, int32_t width);
/// Quantises each row of `a->x`.
void ck_quantize(ck_pool *pool, const ck_kernels *k, const ck_activations *a);

/// How and when queries and keys are normalised.
typedef enum {
    CK_NORM_NONE,
    CK_NORM_HEADS,           ///< each head separately, before rotation
    CK_NORM_HEADS_ROTATED,   ///< each head separately, after rotation
    CK_NORM_WHOLE,           ///< all heads together, before rotation
} ck_head_norm;

/// The step between projections and attention: biases, norms and rotation of queries and keys of `rows` tokens. Keys
/// and values are written into the KV cache from `position` on, in the order that `ck_attention` describes.
typedef struct {
    float *q;             ///< [rows][heads·head_dim], changed in place
    float *k;             ///< [rows][kv_heads·head_dim], changed in place; null if another layer's KV cache is used
    float *v;             ///< [rows][kv_heads·value_dim], changed in place
    const float *q_bias, *k_bias, *v_bias;  ///< null for none
    const float *q_norm, *k_norm;           ///< [head_dim], or [heads·head_dim] with `CK_NORM_WHOLE`
    const float *q_scale;                   ///< [rows], multiplies queries; null for none
    const float *cosine;  ///< [rows][pairs]
    const float *sine;    ///< [rows][pairs]
    uint8_t *const *pages;
    size_t key_offset, value_offset;
    ck_head_norm norm;
    bool normalize_values;  ///< RMS norm of each value head, without weights (Gemma 4)
    float epsilon;
    int32_t rows;
    int32_t heads;
    int32_t kv_heads;
    int32_t head_dim;
    int32_t value_dim;
    int32_t value_stride;
    int32_t position;
    int32_t pairs;        ///< rotated pairs: the 2·pairs dimensions from `first` on
    int32_t first;        ///< the first dimension that is rotated
    bool halves;          ///< pairs are (i, i+pairs) instead of (2i, 2i+1)
    bool bytes;           ///< whether keys and values have 8 bits
} ck_rotation;

/// Computes that step for several sequences in one parallel region.
void ck_rotate_and_store(ck_pool *pool, const ck_kernels *k, const ck_rotation *calls, int32_t count);

// MARK: - Experts

typedef enum {
    CK_GATE_SOFTMAX,         ///< softmax over all experts
    CK_GATE_SIGMOID,
    CK_GATE_SOFTMAX_CHOSEN,  ///< softmax over the chosen experts (gpt-oss)
} ck_gating;

/// How experts are chosen for a row, and how their outputs are weighted.
typedef struct {
    int32_t experts, used;        ///< at most 1024 experts; the number used per row
    int32_t groups, used_groups;  ///< experts are chosen from the best `used_groups` groups; 1 and 1 for no groups
    ck_gating gating;
    bool normalizes;              ///< weights of the chosen experts add up to 1 (before `scale`)
    float scale;                  ///< factor of the weights
    const float *bias;            ///< [experts], added to the logits; null for none
    const float *selection_bias;  ///< [experts], added for the selection but not to the weights; null for none
} ck_routing;

/// Chooses experts for `rows` rows of router logits `[rows][experts]`, which are overwritten. `chosen` and `weights`
/// are `[rows][used]`, in descending order of the score for the selection; of equal experts, the one with the lower
/// index comes first.
void ck_route(const ck_routing *r, float *logits, int32_t rows, int32_t *chosen, float *weights);
/// Copies rows of activations: row i of `to` becomes row `source[i]` of `from`, with its quantised form if `quantized`.
void ck_gather(ck_pool *pool, const ck_activations *from, const int32_t *source, const ck_activations *to, bool quantized);
/// y[row] += Σ weights[row][slot] · x[place[row][slot]] over the slots in order, for `rows` rows of `columns`.
void ck_combine(ck_pool *pool, const float *x, const int32_t *place, const float *weights, int32_t rows, int32_t used,
                int32_t columns, float *y);

// MARK: - Layers with a recurrent state

/// out[row][i] = a[row][i] · b[row][i] for `rows` rows of `columns`; each array has its own stride.
void ck_multiply(const float *a, int32_t a_stride, const float *b, int32_t b_stride, float *out, int32_t out_stride,
                 int32_t rows, int32_t columns);
/// Copies `rows` rows of `columns` elements; each array has its own stride.
void ck_copy_rows(const float *from, int32_t from_stride, float *to, int32_t to_stride, int32_t rows, int32_t columns);

/// Causal depthwise convolution over `rows` rows of `channels`, in place, followed by SiLU if `silu`. `kernel` is
/// `[channels][width]`, `width` at most 16; `bias` is `[channels]` or null. `state` contains the last `width − 1`
/// inputs `[width − 1][channels]` and is updated.
void ck_convolve(ck_pool *pool, float *x, float *state, const float *kernel, const float *bias, int32_t rows,
                 int32_t channels, int32_t stride, int32_t width, bool silu);

/// A gated DeltaNet layer (arXiv:2412.06464) over `rows` rows, after projections and convolution.
/// For each value head: S ← e^g·S; δ = β·(v − S·k); S ← S + δ·kᵀ; out = S·q.
typedef struct {
    const float *mixed;   ///< [rows][2·key_heads·key_dim + value_heads·value_dim]: queries, keys, values
    const float *beta;    ///< [rows][value_heads], before the sigmoid
    const float *alpha;   ///< [rows][value_heads]
    const float *a;       ///< [value_heads], −exp(A_log)
    const float *dt;      ///< [value_heads]
    const float *gate;    ///< [rows][value_heads·value_dim], before SiLU
    const float *norm;    ///< [value_dim]
    float *state;         ///< [value_heads][value_dim][key_dim]
    float *out;           ///< [rows][value_heads·value_dim], normalised and gated
    float epsilon;
    int32_t rows, key_heads, value_heads, key_dim, value_dim;
    bool tiled;           ///< value head h uses key head h mod key_heads instead of h / (value_heads / key_heads)
} ck_delta;

void ck_delta_net(ck_pool *pool, const ck_kernels *k, const ck_delta *d);

/// The scan of a Mamba-2 layer (arXiv:2405.21060) over `rows` rows, after projection and convolution.
typedef struct {
    const float *mixed;   ///< [rows][inner + 2·groups·state_size]: x, B, C
    const float *z;       ///< the gate: `rows` rows of `inner` values, `stride` apart
    const float *dt;      ///< `rows` rows of `heads` values, `stride` apart
    const float *dt_bias; ///< [heads]
    const float *a;       ///< [heads], −exp(A_log)
    const float *d;       ///< [heads]
    const float *norm;    ///< [inner]; null for none
    float *state;         ///< [heads][inner/heads][state_size]
    float *out;           ///< [rows][inner]
    float epsilon;
    int32_t rows, inner, heads, groups, state_size, stride;
} ck_mamba;

void ck_mamba_scan(ck_pool *pool, const ck_kernels *k, const ck_mamba *m);

uint16_t ck_float_to_half(float x);
float ck_half_to_float(uint16_t h);

#include "training.h"

#endif
