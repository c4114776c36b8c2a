/* What turn.c does in one dtype: TYPE in memory, REAL in between, WIDE and NARROW from one to the other. */

/* The cosines and sines of one token. */
INLINE void FOR_DTYPE(angles)(const Plan *plan, const int64_t *position, int64_t position_axis, REAL *cosine,
                              REAL *sine) {
    const int64_t pairs = plan->pairs, size = LEVEL * pairs;
    const double gain = plan->gain;
    if (!plan->axis && *position < FAR) {
        const double *low = plan->low + (*position % LEVEL) * pairs, *high = plan->high + (*position / LEVEL) * pairs;
#pragma GCC ivdep
        for (int64_t i = 0; i < pairs; i++) {
            cosine[i] = (REAL)((low[i] * high[i] - low[size + i] * high[size + i]) * gain);
            sine[i] = (REAL)((low[i] * high[size + i] + low[size + i] * high[i]) * gain);
        }
        return;
    }
    for (int64_t i = 0; i < pairs; i++) {
        const int64_t p = position[plan->axis ? plan->axis[i] * position_axis : 0];
        const double *low = plan->low + (p % LEVEL) * pairs + i, *high = plan->high + (p / LEVEL) * pairs + i;
        double c, s;
        if (p < FAR) {
            c = low[0] * high[0] - low[size] * high[size];
            s = low[0] * high[size] + low[size] * high[0];
        } else {
            c = cos((double)p * plan->frequency[i]);
            s = sin((double)p * plan->frequency[i]);
        }
        cosine[i] = (REAL)(c * gain);
        sine[i] = (REAL)(s * gain);
    }
}

/* The tokens of a few heads. `x` and `y` may be the same place: no pair reads what another wrote. */
INLINE void FOR_DTYPE(heads)(const int64_t pairs, const int interleaved, int64_t rest, const REAL *cosine,
                             const REAL *sine, REAL sign, const TYPE *x, int64_t x_head, int64_t x_token, TYPE *y,
                             int64_t y_head, int64_t y_token, int64_t heads, int64_t tokens, int stream) {
    TYPE turned[2 * MOST_PAIRS] __attribute__((aligned(64)));
    for (int64_t t = 0; t < tokens; t++, x += x_token, y += y_token, cosine += pairs, sine += pairs)
        for (int64_t h = 0; h < heads; h++) {
            const TYPE *from = x + h * x_head;
            TYPE *to = y + h * y_head, *into = stream ? turned : to;
#pragma GCC ivdep
            for (int64_t i = 0; i < pairs; i++) {
                const int64_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + pairs;
                const REAL a = WIDE(from[first]), b = WIDE(from[second]), c = cosine[i], s = sign * sine[i];
                into[first] = NARROW(a * c - b * s);
                into[second] = NARROW(b * c + a * s);
            }
            if (stream) put(to, turned, 2 * pairs * (int64_t)sizeof(TYPE));
            if (rest && from != to) memcpy(to + 2 * pairs, from + 2 * pairs, (size_t)rest * sizeof(TYPE));
        }
}

EACH_MACHINE static int FOR_DTYPE(turn)(const Plan *plan, const Call *call, const Side *sides, int64_t count) {
    const int64_t pairs = plan->pairs, rest = plan->width - 2 * pairs, all = sides->tokens;
    const int64_t block = all < ROOM / pairs ? all : ROOM / pairs;
    REAL few[2 * MOST_PAIRS], *cosine = block * pairs <= MOST_PAIRS ? few : malloc(2 * block * pairs * sizeof(REAL));
    if (!cosine) return 3;
    REAL *sine = cosine + block * pairs;
    for (int64_t row = 0; row < call->rows; row++)
        for (int64_t start = 0; start < all; start += block) {
            const int64_t tokens = start + block < all ? block : all - start;
            const int64_t *positions = sides->positions + row * sides->position_row + start;
            for (int64_t t = 0; t < tokens; t++)
                FOR_DTYPE(angles)(plan, positions + t, sides->position_axis, cosine + t * pairs, sine + t * pairs);
            for (const Side *side = sides; side < sides + count; side++)
                for (int64_t head = 0; head < side->heads; head += GROUP) {
                    const int64_t heads = head + GROUP < side->heads ? GROUP : side->heads - head;
                    const TYPE *x = (const TYPE *)side->x + row * side->row + head * side->head + start * side->token;
                    TYPE *y = (TYPE *)side->out + row * side->out_row + head * side->out_head + start * side->out_token;
/* The usual widths once more as constants: loops whose length is known are unrolled whole. */
#define HEADS(PAIRS, INTERLEAVED)                                                                                     \
    FOR_DTYPE(heads)(PAIRS, INTERLEAVED, rest, cosine, sine, (REAL)call->sign, x, side->head, side->token, y,         \
                     side->out_head, side->out_token, heads, tokens, (int)call->stream)
                    if (plan->interleaved) {
                        if (pairs == 64) HEADS(64, 1);
                        else if (pairs == 32) HEADS(32, 1);
                        else HEADS(pairs, 1);
                    } else {
                        if (pairs == 64) HEADS(64, 0);
                        else if (pairs == 32) HEADS(32, 0);
                        else HEADS(pairs, 0);
                    }
#undef HEADS
                }
        }
    if (cosine != few) free(cosine);
    return 0;
}

#undef DTYPE
#undef TYPE
#undef REAL
#undef WIDE
#undef NARROW
