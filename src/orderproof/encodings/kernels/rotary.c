/* Rotate feature pairs by an angle that depends on the position: (a, b) -> (a c - b s, b c + a s).
 *
 * The angle of pair i at position p is p * frequency[i]. Its cosine and sine come from the addition theorem,
 *     e^{i (1024 h + l) w} = e^{i 1024 h w} e^{i l w},
 * with both factors from tables of 1024 rows in double precision, and are rounded once. No table grows with the
 * sequence, and a large position costs the same, and is as exact, as a small one.
 * Each product is rounded separately (compiled with -ffp-contract=off), like the same formula in torch.
 *
 * Plain C without headers of Python or torch: the library is loaded through ctypes and receives addresses
 * (rotary_python.c adds one function for small calls, where Python's header is available).
 */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__)
#define EACH_MACHINE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define EACH_MACHINE
#endif
#define INLINE static inline __attribute__((always_inline))

#define RADIX 1024
#define MAX_FACTORED ((int64_t)RADIX * RADIX)
#define MAX_PAIRS 2048
#define HUGE_PAGE (1 << 21)
#define SMALL_CALL_ROWS (1 << 12) /* of features: up to this number, overhead takes longer than the kernel */
/* Cosines computed per block of tokens. One head is rotated over the whole block before the next one starts: long
 * sequential accesses are faster than short ones, although the angles are then read from a slower cache level. */
#define BLOCK_ANGLES (1 << 19)
/* Heads rotated together, so that the angles are read once for all of them. */
#define HEAD_GROUP 4
/* Tokens of one head that are rotated before the next head, in words_heads. */
#define TOKEN_GROUP 4

typedef struct {
    int64_t pairs;           /* feature pairs that are rotated */
    int64_t width;           /* features of a head; those past 2 * pairs are copied */
    int64_t interleaved;     /* 1: pair i is features 2i, 2i + 1; 0: i, i + pairs */
    double gain;
    const double *frequency; /* [pair] */
    const double *low;       /* [2][RADIX][pair]: cosines, then sines, of l * frequency */
    const double *high;      /* the same for 1024 h * frequency */
    const int64_t *axis;     /* [pair]: the position axis of each pair; null for one axis */
    int64_t axes;
} Plan;

/* Queries or keys, [row][head][token][feature]; strides in elements. */
typedef struct {
    void *out;
    const void *x;
    const int64_t *positions;
    int64_t position_axis, position_row; /* strides; the row stride is 0 where rows share positions */
    int64_t heads, tokens;
    int64_t row, head, token;
    int64_t out_row, out_head, out_token;
} Operand;

typedef struct {
    int64_t dtype;  /* 0: float32, 1: bfloat16, 2: float64, 3: float16 */
    int64_t operands;  /* 1 or 2; two with the same positions share their angles */
    int64_t rows;
    int64_t stream; /* 1: use non-temporal stores */
    double sign;    /* -1: rotate by the negative angle */
    Operand operand[2];
} Call;

typedef struct { uint16_t bits; } bf16;

INLINE float wide_bf16(bf16 x) {
    uint32_t bits = (uint32_t)x.bits << 16;
    float y;
    memcpy(&y, &bits, 4);
    return y;
}

/* The upper half of the result is x in bfloat16, rounded to nearest, ties to even, like torch.
 * A NaN stays one without a branch, which took a sixth of the time: it comes from a bfloat16 operand, or it is the
 * processor's own, because cosines and sines are finite. The low half of both is zero, and rounding carries nothing. */
INLINE uint32_t rounded_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits + 0x7fff + ((bits >> 16) & 1);
}

INLINE bf16 narrow_bf16(float x) {
    bf16 y = {(uint16_t)(rounded_bf16(x) >> 16)};
    return y;
}

/* Two neighbouring bfloat16 features, the first in the lower half. */
typedef uint32_t __attribute__((may_alias, aligned(2))) word;

INLINE float lower_bf16(word x) {
    const bf16 half = {(uint16_t)x};
    return wide_bf16(half);
}

INLINE float upper_bf16(word x) {
    const uint32_t bits = x & 0xffff0000u;
    float y;
    memcpy(&y, &bits, 4);
    return y;
}

INLINE word word_of(float lower, float upper) {
    return rounded_bf16(lower) >> 16 | (rounded_bf16(upper) & 0xffff0000u);
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LITTLE_ENDIAN_WORDS 1
#else
#define LITTLE_ENDIAN_WORDS 0
#endif

/* One head of one token, as words: 32-bit operations alone, where separate features need shuffles between 16 and 32 bits.
 * In the half layout, the angles of the even pairs come before those of the odd ones (`even_first`). */
INLINE void words_head(const int64_t pairs, const int interleaved, int64_t rest, const float *cosine, const float *sine,
                       const word *from, word *to) {
    const int64_t half = pairs / 2;
    if (interleaved) {
#pragma GCC ivdep
        for (int64_t i = 0; i < pairs; i++) {
            const float a = lower_bf16(from[i]), b = upper_bf16(from[i]), c = cosine[i], s = sine[i];
            to[i] = word_of(a * c - b * s, b * c + a * s);
        }
    } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < half; i++) {
            const word first = from[i], second = from[i + half];
            const float a = lower_bf16(first), b = lower_bf16(second), c = cosine[i], s = sine[i];
            const float d = upper_bf16(first), e = upper_bf16(second), f = cosine[i + half], g = sine[i + half];
            to[i] = word_of(a * c - b * s, d * f - e * g);
            to[i + half] = word_of(b * c + a * s, e * f + d * g);
        }
    }
    if (rest && (const word *)to != from) memcpy(to + pairs, from + pairs, (size_t)rest * sizeof(bf16));
}

/* `heads` of rotary_dtype.h, on words. */
INLINE void words_heads(const int64_t pairs, const int interleaved, int64_t rest, const float *cosine, const float *sine,
                        const bf16 *x, int64_t x_head, int64_t x_token, bf16 *y, int64_t y_head, int64_t y_token,
                        int64_t heads, int64_t tokens) {
    for (int64_t first = 0; first < tokens; first += TOKEN_GROUP)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t t = first; t < first + TOKEN_GROUP && t < tokens; t++)
                words_head(pairs, interleaved, rest, cosine + t * pairs, sine + t * pairs,
                           (const word *)(x + h * x_head + t * x_token), (word *)(y + h * y_head + t * y_token));
}

/* Reorder the angles of one token: those of pairs 0, 2, 4, ..., then those of pairs 1, 3, 5, ... */
INLINE void even_first(float *angle, int64_t pairs) {
    float odd[MAX_PAIRS / 2];
    for (int64_t i = 0; i < pairs / 2; i++) {
        odd[i] = angle[2 * i + 1];
        angle[i] = angle[2 * i];
    }
    memcpy(angle + pairs / 2, odd, (size_t)(pairs / 2) * sizeof(float));
}

/* Non-temporal copy where the machine has one: overwritten memory is not read first. */
INLINE void stream_copy(void *to, const void *from, int64_t bytes) {
#ifdef __SSE2__
    if (((uintptr_t)to | (uintptr_t)bytes) % 16 == 0) {
        for (int64_t i = 0; i < bytes; i += 16)
            _mm_stream_si128((__m128i *)((char *)to + i), _mm_load_si128((const __m128i *)((const char *)from + i)));
        return;
    }
#endif
    memcpy(to, from, (size_t)bytes);
}

/* The heads of a group by one of the functions, with common layouts and widths as constants: the compiler unrolls
 * loops of known length completely. */
#define WITH_CONSTANTS(HEADS)                                                                                          \
    do {                                                                                                               \
        if (plan->interleaved) {                                                                                       \
            if (pairs == 64) HEADS(64, 1);                                                                             \
            else if (pairs == 32) HEADS(32, 1);                                                                        \
            else HEADS(pairs, 1);                                                                                      \
        } else {                                                                                                       \
            if (pairs == 64) HEADS(64, 0);                                                                             \
            else if (pairs == 32) HEADS(32, 0);                                                                        \
            else HEADS(pairs, 0);                                                                                      \
        }                                                                                                              \
    } while (0)

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define FOR_DTYPE(name) JOIN(name, DTYPE)

#define DTYPE float32
#define TYPE float
#define REAL float
#define WIDE(x) (x)
#define NARROW(x) (x)
#include "rotary_dtype.h"

#define DTYPE float64
#define TYPE double
#define REAL double
#define WIDE(x) (x)
#define NARROW(x) (x)
#include "rotary_dtype.h"

#define DTYPE bfloat16
#define TYPE bf16
#define WORDS
#define REAL float
#define WIDE(x) wide_bf16(x)
#define NARROW(x) narrow_bf16(x)
#include "rotary_dtype.h"

#ifdef __FLT16_MAX__
#define DTYPE float16
#define TYPE _Float16
#define REAL float
#define WIDE(x) ((float)(x))
#define NARROW(x) ((_Float16)(x))
#include "rotary_dtype.h"
#endif

static int has_negative(const Plan *plan, const Operand *x, int64_t rows) {
    for (int64_t row = 0; row < (x->position_row ? rows : 1); row++)
        for (int64_t axis = 0; axis < plan->axes; axis++)
            for (int64_t t = 0; t < x->tokens; t++)
                if (x->positions[axis * x->position_axis + row * x->position_row + t] < 0) return 1;
    return 0;
}

/* Returns 0: done; 1: a position is negative; 2: unsupported dtype or width; 3: out of memory.
 * The output is valid only after 0. */
int rotate(const Plan *plan, const Call *call) {
    const Operand *x = call->operand;
    if (plan->pairs > MAX_PAIRS) return 2;
    for (int64_t n = 0; n < call->operands; n++)
        if (has_negative(plan, x + n, call->rows)) return 1;
    const int shared = call->operands == 2 && x[0].positions == x[1].positions && x[0].tokens == x[1].tokens;
    int failed = 0;
    for (int64_t n = 0; n < (shared ? 1 : call->operands) && !failed; n++) {
        const int64_t count = shared ? 2 : 1;
        if (call->dtype == 0) failed = rotate_float32(plan, call, x + n, count);
        else if (call->dtype == 1) failed = rotate_bfloat16(plan, call, x + n, count);
        else if (call->dtype == 2) failed = rotate_float64(plan, call, x + n, count);
#ifdef __FLT16_MAX__
        else if (call->dtype == 3) failed = rotate_float16(plan, call, x + n, count);
#endif
        else failed = 2;
    }
#ifdef __SSE2__
    if (call->stream) _mm_sfence();
#endif
    return failed;
}

/* Request huge pages for a new buffer (transparent huge pages by madvise): the first write to a page of 4 KiB takes
 * longer than rotating its contents. Only whole huge pages inside the buffer are requested. */
void advise_huge_pages(void *start, int64_t bytes) {
#ifdef MADV_HUGEPAGE
    const uintptr_t first = ((uintptr_t)start + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
    const uintptr_t end = ((uintptr_t)start + (uintptr_t)bytes) & ~(uintptr_t)(HUGE_PAGE - 1);
    if (end > first) madvise((void *)first, end - first, MADV_HUGEPAGE);
#else
    (void)start, (void)bytes;
#endif
}

/* Queries and keys [row, head, token, width] of a small contiguous call with one position per token, where call overhead
 * dominates. Returns what `rotate` does, or 4 for other shapes and for larger calls; the output is then not written. */
int rotate_small(const Plan *plan, int64_t dtype, void *q_out, const void *q, void *k_out, const void *k,
             const int64_t *positions, const int64_t q_shape[4], const int64_t k_shape[4], int64_t tokens) {
    const int64_t rows = q_shape[0], q_heads = q_shape[1], k_heads = k_shape[1];
    if (k_shape[0] != rows || q_shape[2] != tokens || k_shape[2] != tokens) return 4;
    if (q_shape[3] != plan->width || k_shape[3] != plan->width) return 4;
    if (rows * q_heads * tokens > SMALL_CALL_ROWS || rows * k_heads * tokens > SMALL_CALL_ROWS) return 4;
    const int64_t token = plan->width, head = token * tokens, q_row = head * q_heads, k_row = head * k_heads;
    const Call call = {dtype, 2, rows, 0, 1.0, {
        {q_out, q, positions, 0, 0, q_heads, tokens, q_row, head, token, q_row, head, token},
        {k_out, k, positions, 0, 0, k_heads, tokens, k_row, head, token, k_row, head, token},
    }};
    return rotate(plan, &call);
}

/* Cosines and sines of non-negative positions, [token][pair] each. */
EACH_MACHINE void cos_sin_table(const Plan *plan, const int64_t *positions, int64_t tokens, float *cosine, float *sine) {
    for (int64_t t = 0; t < tokens; t++)
        angles_float32(plan, positions + t, tokens, 1.0, cosine + t * plan->pairs, sine + t * plan->pairs);
}
