/* rotary.c for one dtype: TYPE in memory, REAL for arithmetic, WIDE and NARROW convert between them. WORDS: two features
 * are rotated as one word. */

/* The cosines, and the sines times `sign`, of the angles of one token. */
INLINE void FOR_DTYPE(angles)(const Plan *plan, const int64_t *position, int64_t position_axis, double sign,
                              REAL *cosine, REAL *sine) {
    const int64_t pairs = plan->pairs, size = RADIX * pairs;
    const double gain = plan->gain, sine_gain = sign * gain;
    if (!plan->axis && *position < MAX_FACTORED) {
        const double *low = plan->low + (*position % RADIX) * pairs, *high = plan->high + (*position / RADIX) * pairs;
#pragma GCC ivdep
        for (int64_t i = 0; i < pairs; i++) {
            cosine[i] = (REAL)((low[i] * high[i] - low[size + i] * high[size + i]) * gain);
            sine[i] = (REAL)((low[i] * high[size + i] + low[size + i] * high[i]) * sine_gain);
        }
        return;
    }
    for (int64_t i = 0; i < pairs; i++) {
        const int64_t p = position[plan->axis ? plan->axis[i] * position_axis : 0];
        const double *low = plan->low + (p % RADIX) * pairs + i, *high = plan->high + (p / RADIX) * pairs + i;
        double c, s;
        if (p < MAX_FACTORED) {
            c = low[0] * high[0] - low[size] * high[size];
            s = low[0] * high[size] + low[size] * high[0];
        } else {
            c = cos((double)p * plan->frequency[i]);
            s = sin((double)p * plan->frequency[i]);
        }
        cosine[i] = (REAL)(c * gain);
        sine[i] = (REAL)(s * sine_gain);
    }
}

/* All tokens of a few heads. `x` and `y` may be the same buffer: no pair reads what another pair wrote. */
INLINE void FOR_DTYPE(heads)(const int64_t pairs, const int interleaved, int64_t rest, const REAL *cosine,
                             const REAL *sine, const TYPE *x, int64_t x_head, int64_t x_token, TYPE *y, int64_t y_head,
                             int64_t y_token, int64_t heads, int64_t tokens, int stream) {
    TYPE rotated[2 * MAX_PAIRS] __attribute__((aligned(64)));
    for (int64_t t = 0; t < tokens; t++, x += x_token, y += y_token, cosine += pairs, sine += pairs)
        for (int64_t h = 0; h < heads; h++) {
            const TYPE *from = x + h * x_head;
            TYPE *to = y + h * y_head, *into = stream ? rotated : to;
#pragma GCC ivdep
            for (int64_t i = 0; i < pairs; i++) {
                const int64_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + pairs;
                const REAL a = WIDE(from[first]), b = WIDE(from[second]), c = cosine[i], s = sine[i];
                into[first] = NARROW(a * c - b * s);
                into[second] = NARROW(b * c + a * s);
            }
            if (stream) stream_copy(to, rotated, 2 * pairs * (int64_t)sizeof(TYPE));
            if (rest && from != to) memcpy(to + 2 * pairs, from + 2 * pairs, (size_t)rest * sizeof(TYPE));
        }
}

EACH_MACHINE static int FOR_DTYPE(rotate)(const Plan *plan, const Call *call, const Operand *operands, int64_t count) {
    const int64_t pairs = plan->pairs, rest = plan->width - 2 * pairs, all = operands->tokens;
    const int64_t block = all < BLOCK_ANGLES / pairs ? all : BLOCK_ANGLES / pairs;
    REAL small[2 * MAX_PAIRS], *cosine = block * pairs <= MAX_PAIRS ? small : malloc(2 * block * pairs * sizeof(REAL));
    if (!cosine) return 3;
    REAL *sine = cosine + block * pairs;
#ifdef WORDS
    const int words = LITTLE_ENDIAN_WORDS && (plan->interleaved || pairs % 2 == 0);
#endif
    for (int64_t row = 0; row < call->rows; row++)
        for (int64_t start = 0; start < all; start += block) {
            const int64_t tokens = start + block < all ? block : all - start;
            const int64_t *positions = operands->positions + row * operands->position_row + start;
            for (int64_t t = 0; t < tokens; t++) {
                REAL *c = cosine + t * pairs, *s = sine + t * pairs;
                FOR_DTYPE(angles)(plan, positions + t, operands->position_axis, call->sign, c, s);
#ifdef WORDS
                if (words && !plan->interleaved) even_first(c, pairs), even_first(s, pairs);
#endif
            }
            for (const Operand *side = operands; side < operands + count; side++)
                for (int64_t head = 0; head < side->heads; head += HEAD_GROUP) {
                    const int64_t heads = head + HEAD_GROUP < side->heads ? HEAD_GROUP : side->heads - head;
                    const TYPE *x = (const TYPE *)side->x + row * side->row + head * side->head + start * side->token;
                    TYPE *y = (TYPE *)side->out + row * side->out_row + head * side->out_head + start * side->out_token;
#define HEADS(PAIRS, INTERLEAVED)                                                                                     \
    FOR_DTYPE(heads)(PAIRS, INTERLEAVED, rest, cosine, sine, x, side->head, side->token, y, side->out_head,           \
                     side->out_token, heads, tokens, (int)call->stream)
#ifdef WORDS
#define WORDS_HEADS(PAIRS, INTERLEAVED)                                                                               \
    words_heads(PAIRS, INTERLEAVED, rest, cosine, sine, x, side->head, side->token, y, side->out_head,                \
                side->out_token, heads, tokens)
                    if (words) WITH_CONSTANTS(WORDS_HEADS);
                    else
#undef WORDS_HEADS
#endif
                        WITH_CONSTANTS(HEADS);
#undef HEADS
                }
        }
    if (cosine != small) free(cosine);
    return 0;
}

#undef DTYPE
#undef TYPE
#undef REAL
#undef WORDS
#undef WIDE
#undef NARROW
