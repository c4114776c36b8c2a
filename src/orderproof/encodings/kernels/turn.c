/* Turn feature pairs by an angle set by position: (a, b) -> (a c - b s, b c + a s).
 *
 * The angle of pair i at position p is p * frequency[i]. Its cosine and sine come from the addition theorem,
 *     e^{i (1024 h + l) w} = e^{i 1024 h w} e^{i l w},
 * with both factors from tables of 1024 rows in double precision, and are rounded once. So there is no table as
 * long as the sequence, and a far position costs as much, and is as exact, as a near one.
 * Products are rounded one by one (built with -ffp-contract=off), as the same formula in torch does.
 *
 * Plain C, no headers of Python or torch: the library is loaded through ctypes and handed addresses (turn_python.c
 * adds one function that is called without ctypes, where Python's header was there).
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

#define LEVEL 1024
#define FAR ((int64_t)LEVEL * LEVEL)
#define MOST_PAIRS 2048
#define LARGE (1 << 21)
/* The most cosines worked out at once. A head is turned as far as these reach before the next is begun: long runs
 * through memory are faster than short ones, though the angles are then read from a farther cache. */
#define ROOM (1 << 19)
/* Heads turned side by side, so that angles are read once for all of them. */
#define GROUP 4

typedef struct {
    int64_t pairs;           /* pairs that are turned */
    int64_t width;           /* features of a head; those past 2 * pairs are copied */
    int64_t interleaved;     /* 1: pair i is features 2i, 2i + 1; 0: i, i + pairs */
    double gain;
    const double *frequency; /* [pair] */
    const double *low;       /* [2][LEVEL][pair]: cosines, then sines, of l * frequency */
    const double *high;      /* the same of 1024 h * frequency */
    const int64_t *axis;     /* [pair]: the axis of positions that turns it; null where there is one axis */
    int64_t axes;
} Plan;

/* Queries or keys, [row][head][token][feature]; strides in elements. */
typedef struct {
    void *out;
    const void *x;
    const int64_t *positions;
    int64_t position_axis, position_row; /* strides; the row's is 0 where rows share positions */
    int64_t heads, tokens;
    int64_t row, head, token;
    int64_t out_row, out_head, out_token;
} Side;

typedef struct {
    int64_t dtype;  /* 0: float32, 1: bfloat16, 2: float64, 3: float16 */
    int64_t sides;  /* 1 or 2; of 2 with the same positions the angles are worked out once */
    int64_t rows;
    int64_t stream; /* 1: write past the caches */
    double sign;    /* -1 turns back */
    Side side[2];
} Call;

typedef struct { uint16_t bits; } bf16;

INLINE float wide_bf16(bf16 x) {
    uint32_t bits = (uint32_t)x.bits << 16;
    float y;
    memcpy(&y, &bits, 4);
    return y;
}

/* To the nearest, ties to even, as torch rounds. The choice is made before the shift, which keeps it in 32 bits. */
INLINE bf16 narrow_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    const uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
    bf16 y = {(uint16_t)((x == x ? rounded : 0x7fc00000) >> 16)};
    return y;
}

/* Past the caches, where the machine can: the memory that is replaced need not be read first. */
INLINE void put(void *to, const void *from, int64_t bytes) {
#ifdef __SSE2__
    if (((uintptr_t)to | (uintptr_t)bytes) % 16 == 0) {
        for (int64_t i = 0; i < bytes; i += 16)
            _mm_stream_si128((__m128i *)((char *)to + i), _mm_load_si128((const __m128i *)((const char *)from + i)));
        return;
    }
#endif
    memcpy(to, from, (size_t)bytes);
}

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define FOR_DTYPE(name) JOIN(name, DTYPE)

#define DTYPE float32
#define TYPE float
#define REAL float
#define WIDE(x) (x)
#define NARROW(x) (x)
#include "turn_dtype.h"

#define DTYPE float64
#define TYPE double
#define REAL double
#define WIDE(x) (x)
#define NARROW(x) (x)
#include "turn_dtype.h"

#define DTYPE bfloat16
#define TYPE bf16
#define REAL float
#define WIDE(x) wide_bf16(x)
#define NARROW(x) narrow_bf16(x)
#include "turn_dtype.h"

#ifdef __FLT16_MAX__
#define DTYPE float16
#define TYPE _Float16
#define REAL float
#define WIDE(x) ((float)(x))
#define NARROW(x) ((_Float16)(x))
#include "turn_dtype.h"
#endif

static int has_negative(const Plan *plan, const Side *side, int64_t rows) {
    for (int64_t row = 0; row < (side->position_row ? rows : 1); row++)
        for (int64_t axis = 0; axis < plan->axes; axis++)
            for (int64_t t = 0; t < side->tokens; t++)
                if (side->positions[axis * side->position_axis + row * side->position_row + t] < 0) return 1;
    return 0;
}

/* 0: done. 1: a position is negative. 2: the dtype or width is not for this library. 3: no memory.
 * Unless it says 0, nothing useful was written. */
int turn(const Plan *plan, const Call *call) {
    const Side *side = call->side;
    if (plan->pairs > MOST_PAIRS) return 2;
    for (int64_t n = 0; n < call->sides; n++)
        if (has_negative(plan, side + n, call->rows)) return 1;
    const int together = call->sides == 2 && side[0].positions == side[1].positions && side[0].tokens == side[1].tokens;
    int failed = 0;
    for (int64_t n = 0; n < (together ? 1 : call->sides) && !failed; n++) {
        const int64_t count = together ? 2 : 1;
        if (call->dtype == 0) failed = turn_float32(plan, call, side + n, count);
        else if (call->dtype == 1) failed = turn_bfloat16(plan, call, side + n, count);
        else if (call->dtype == 2) failed = turn_float64(plan, call, side + n, count);
#ifdef __FLT16_MAX__
        else if (call->dtype == 3) failed = turn_float16(plan, call, side + n, count);
#endif
        else failed = 2;
    }
#ifdef __SSE2__
    if (call->stream) _mm_sfence();
#endif
    return failed;
}

/* Ask for large pages under a fresh buffer, where the machine gives them to who asks: the first write to a page of
 * 4 KiB takes longer than turning what stands on it. Only the whole large pages inside the buffer are asked for. */
void large_pages(void *start, int64_t bytes) {
#ifdef MADV_HUGEPAGE
    const uintptr_t first = ((uintptr_t)start + LARGE - 1) & ~(uintptr_t)(LARGE - 1);
    const uintptr_t end = ((uintptr_t)start + (uintptr_t)bytes) & ~(uintptr_t)(LARGE - 1);
    if (end > first) madvise((void *)first, end - first, MADV_HUGEPAGE);
#else
    (void)start, (void)bytes;
#endif
}

/* The same for a small contiguous call with one position a token: what stands around it is what takes time. */
int turn_few(const Plan *plan, int64_t dtype, void *q_out, const void *q, void *k_out, const void *k,
             const int64_t *positions, int64_t rows, int64_t q_heads, int64_t k_heads, int64_t tokens) {
    const int64_t token = plan->width, head = token * tokens, q_row = head * q_heads, k_row = head * k_heads;
    const Call call = {dtype, 2, rows, 0, 1.0, {
        {q_out, q, positions, 0, 0, q_heads, tokens, q_row, head, token, q_row, head, token},
        {k_out, k, positions, 0, 0, k_heads, tokens, k_row, head, token, k_row, head, token},
    }};
    return turn(plan, &call);
}

/* The cosines and sines of many positions, [token][pair] each, none of them negative. */
EACH_MACHINE void table(const Plan *plan, const int64_t *positions, int64_t tokens, float *cosine, float *sine) {
    for (int64_t t = 0; t < tokens; t++)
        angles_float32(plan, positions + t, tokens, cosine + t * plan->pairs, sine + t * plan->pairs);
}
