"""The expected share of the most frequent letter in a random string.

Of n letters drawn uniformly from V, let M be the count of the most frequent one. A predictor that knows the bag and
must give one answer at all positions gives that letter, and E M / n of its answers are right.

Let a_V(n) be the number of strings in which no letter occurs more than k times. Append a letter to each, and subtract
the strings in which a letter now occurs k + 1 times: V letters, the positions of its k other occurrences, and the rest
of the string from the other letters:

    a_V(n + 1) = V a_V(n) - V C(n, k) a_{V-1}(n - k)        a_V(0) = 1, a_0(n) = 0 for n > 0

Then E M = sum over k of P(M > k) = sum over k = 0 ... n - 1 of (1 - a_V(n) / V^n). For V = 2, M = (n + |S|) / 2
for a random walk S of n steps, and E |S| = n C(n - 1, floor((n - 1) / 2)) / 2^(n - 1), so that

    E M / n = 1/2 + C(n - 1, floor((n - 1) / 2)) / 2^n
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import comb


@cache
def expected_mode_share(letters: int, length: int) -> Fraction:
    """E M / n for n = ``length`` letters out of V = ``letters``."""
    if letters == 2:
        return Fraction(1, 2) + Fraction(comb(length - 1, (length - 1) // 2), 2**length)
    total = letters**length
    return Fraction(sum(total - count_strings(letters, length, at_most=k) for k in range(length)), length * total)


def count_strings(letters: int, length: int, *, at_most: int) -> int:
    """The number of strings in which no letter occurs more than ``at_most`` times."""
    previous = [1] + [0] * length  # with no letters there is only the empty string
    for alphabet_size in range(1, letters + 1):
        counts = [1]
        for n in range(length):
            excess = comb(n, at_most) * previous[n - at_most] if n >= at_most else 0
            counts.append(alphabet_size * (counts[n] - excess))
        previous = counts
    return previous[length]
