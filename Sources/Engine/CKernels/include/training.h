/// Arithmetic for training low-rank adapters: products with frozen matrices and their gradients.
///
/// All numbers are binary32; sums are binary32. With `rounds`, the operands of products are rounded to bfloat16. The results do not
/// depend on the number of threads. Functions with a pool may be called by one thread at a time.
#ifndef CK_TRAINING_H
#define CK_TRAINING_H

#include "ckernels.h"

/// Rows of the left operand of a product, and columns of its right operand, that are multiplied together.
enum { CK_TRAINING_ROWS = 12, CK_TRAINING_COLUMNS = 32 };

/// The functions of one instruction set. Panels of left operands are `[k][12]`, tiles of right operands `[k][32]`; rounded ones hold
/// pairs of successive k, `[k/2][12][2]` and `[k/2][32][2]`.
typedef struct {
    const char *name;
    /// c[row][column] = scale · Σ a[k][row] · b[k][column] for up to 12 rows and 32 columns, or += if `add`. `b` may be rows of any
    /// matrix, `ldb` apart; 32 columns of it are read.
    void (*tile)(const float *a, const float *b, int32_t ldb, int32_t k, int32_t rows, int32_t columns, float scale, bool add,
                 float *c, int32_t ldc);
    /// The same for rounded operands with `pairs` pairs; null if the processor has no such products.
    void (*rounded_tile)(const uint32_t *a, const uint32_t *b, int32_t pairs, int32_t rows, int32_t columns, float scale, bool add,
                         float *c, int32_t ldc);
    /// Writes up to 16 rows of k numbers as columns: out[i · stride + row]; with `rounds`, k/2 pairs of successive numbers. Missing rows are
    /// zeros. `stride` may be less than 16 for the last rows that are written.
    void (*interleave)(const float *const *rows, int32_t count, int32_t k, bool rounds, int32_t stride, uint32_t *out);
    /// Pairs of the numbers of two rows, rounded.
    void (*pair_rows)(const float *first, const float *second, int32_t count, uint32_t *out);
    /// h = act(gate) · up
    void (*activate)(ck_activation kind, const float *gate, const float *up, int32_t n, float *h);
    /// The gradients of both inputs, in their place.
    void (*activate_backward)(ck_activation kind, float *gate, float *up, const float *dh, int32_t n);
    /// dx += the gradient of x / rms(x) · weight. A null weight stands for ones.
    void (*norm_backward)(const float *x, const float *weight, const float *dy, float epsilon, int32_t n, float *dx);
    /// exp(x − maximum) for n values; returns the sum.
    float (*exponentials)(float *x, float maximum, int32_t n);
    /// x = cap · tanh(x / cap)
    void (*soft_cap)(float *x, float cap, int32_t n);
} ck_training_kernels;

/// The fastest functions for this processor.
const ck_training_kernels *ck_training_best(void);
/// Those of one instruction set (`CK_SCALAR`, `CK_AVX2` or `CK_AVX512`), or null if the processor does not have it.
const ck_training_kernels *ck_training_for(ck_isa isa);

/// A left operand as panels of 12 rows; missing rows are zeros.
typedef struct {
    void *panels;    ///< `ck_training_panel_bytes`
    int32_t count;   ///< rows
    int32_t k;
    bool rounds;
} ck_training_operand;

size_t ck_training_panel_bytes(int32_t count, int32_t k, bool rounds);
/// Writes the panels of a matrix `x[count][k]`, or with `transposed` of `x[k][count]`, whose rows are `ldx` apart.
void ck_training_pack(ck_pool *pool, const float *x, int32_t ldx, bool transposed, const ck_training_operand *operand);

/// y[count][n] = scale · x · weightsᵀ, where n is the number of rows of the matrix; with `transposed`, scale · x · weights.
typedef struct {
    const uint8_t *weights;  ///< [rows][columns] of `type`, rows `row_bytes` apart
    size_t row_bytes;
    ck_type type;
    int32_t rows, columns;
    bool transposed;
    ck_training_operand x;
    float *y;
    int32_t ldy;
    float scale;
    bool add;
} ck_training_product;

/// Packs a quantised matrix for products with integers (`ck_matmul`): the panels of `target`.
void ck_training_pack_panels(ck_pool *pool, const uint8_t *weights, size_t row_bytes, const ck_matrix *target, uint8_t *panels);
/// Packs the transpose of a quantised matrix as Q8_0, which `target` describes: its columns, the rows of the matrix, are a multiple of 32.
/// `scratch` has the size of the transpose in Q8_0.
void ck_training_pack_transposed(ck_pool *pool, const uint8_t *weights, size_t row_bytes, ck_type type, const ck_matrix *target,
                                 uint8_t *panels, uint8_t *scratch);

void ck_training_multiply(ck_pool *pool, const ck_training_kernels *k, const ck_training_product *products, int32_t count);

/// Causal attention of one layer over sequences that are packed one after the other, and its gradient. Rows of queries, keys and
/// values have their own strides, so that they may be parts of one matrix. At least 32 more floats must follow each array.
typedef struct {
    const int32_t *starts;     ///< [sequences + 1], the first row of each sequence
    int32_t sequences;
    /// Sequences that are several with the same beginning: `prefixes[sequences]` rows of each, then branches, whose rows do not see each
    /// other. `branches[rows]` is the first row of a row's branch in its sequence, or 0. Both are null where no sequence has branches.
    const int32_t *prefixes, *branches;
    int32_t heads, kv_heads, key_dim, value_dim;
    int32_t ldq, ldk, ldv, ldo;
    float scale, soft_cap;     ///< `soft_cap` 0 for none
    int32_t window;            ///< 0 for none
    const float *q, *k, *v;
    float *out;                ///< [rows][ldo]; for the gradient, the output of the forward pass
    float *lse;                ///< [rows][heads], the logarithm of the sum of exponentials
    const float *dout;         ///< gradient only
    float *dq, *dk, *dv;       ///< gradient only, with the strides of q, k, v; overwritten
    float *scratch;            ///< `ck_training_attention_floats` for each thread of the pool
} ck_training_attention;

size_t ck_training_attention_floats(const ck_training_attention *a);
void ck_training_attend(ck_pool *pool, const ck_training_kernels *k, const ck_training_attention *a);
void ck_training_attend_backward(ck_pool *pool, const ck_training_kernels *k, const ck_training_attention *a);

/// out = norm(x), row by row, as `rmsnorm` of ck_kernels. A row has `n` elements; rows are `ldx` and `ldo` apart.
void ck_training_norm(ck_pool *pool, const ck_kernels *k, const float *x, int32_t ldx, const float *weight, float epsilon, int32_t rows,
                      int32_t n, float *out, int32_t ldo);
/// dx += its gradient.
void ck_training_norm_backward(ck_pool *pool, const ck_training_kernels *k, const float *x, int32_t ldx, const float *weight,
                               const float *dy, int32_t ldy, float epsilon, int32_t rows, int32_t n, float *dx, int32_t ldd);
/// Rotates pairs of the `heads` heads of each row: `pairs` pairs, (i, i + pairs) with `halves`, else (2i, 2i + 1). Cosine and sine are
/// `[rows][pairs]`. With `inverse`, the gradient of the rotation.
void ck_training_rotate(ck_pool *pool, float *x, int32_t ldx, int32_t rows, int32_t heads, int32_t dim, int32_t pairs, bool halves,
                        const float *cosine, const float *sine, bool inverse);
/// Row by row; gate and up are `ld` apart, h `n` apart.
void ck_training_activate(ck_pool *pool, const ck_training_kernels *k, ck_activation kind, const float *gate, const float *up, int32_t ld,
                          int32_t rows, int32_t n, float *h);
void ck_training_activate_backward(ck_pool *pool, const ck_training_kernels *k, ck_activation kind, float *gate, float *up, int32_t ld,
                                   int32_t rows, int32_t n, const float *dh);
/// The cross-entropy of rows of logits: losses[row] = lse − logit of the target; then the logits are replaced by their gradient times
/// `factor`. With a soft cap, the logits are capped first. `is_right[row]` tells whether the target has the largest logit.
void ck_training_cross_entropy(ck_pool *pool, const ck_training_kernels *k, float *logits, int32_t rows, int32_t vocabulary,
                               const int32_t *targets, float soft_cap, float factor, float *losses, bool *is_right);
/// The largest number of tokens whose probabilities `ck_training_divergence` compares one by one.
enum { CK_TRAINING_LIKELY_TOKENS = 64 };
/// The Kullback-Leibler divergence of rows of logits from known probabilities, in nats: those of the `likely` most likely tokens, and of
/// all others together. `tokens` and `probabilities` are `[rows][likely]`, the tokens of a row are different. The logits are replaced by
/// the gradient times `factor`. With a soft cap, the logits are capped first.
void ck_training_divergence(ck_pool *pool, const ck_training_kernels *k, float *logits, int32_t rows, int32_t vocabulary,
                            const int32_t *tokens, const float *probabilities, int32_t likely, float soft_cap, float factor,
                            float *losses);
/// out += x, in parallel.
void ck_training_add(ck_pool *pool, float *out, const float *x, size_t count);
/// One step of AdamW (arXiv:1711.05101) of `count` parameters. `correction1` and `correction2` are 1 − βᵗ.
void ck_training_adam(ck_pool *pool, float *x, const float *gradient, float *mean, float *square, size_t count, float factor, float rate,
                      float beta1, float beta2, float epsilon, float decay, float correction1, float correction2);
/// The sum of squares, which does not depend on the number of threads.
double ck_training_squares(const float *x, size_t count);

#endif
