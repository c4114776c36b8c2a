"""How often the commonest letter of a string comes: the score of who answers all places with one letter.

Of n letters drawn evenly from V, let M be how often the commonest comes. Who knows the bag and must give one answer for
all places says that letter, and E M / n of its answers are right.

Let a_V(n) be the number of strings in which no letter comes more than k times. Append a letter to each; those that now
have one k + 1 times are taken off, by that letter, by where its k others stand, and by the rest of other letters:

    a_V(n + 1) = V a_V(n) - V C(n, k) a_{V-1}(n - k)        a_V(0) = 1, a_0(n) = 0 for n > 0

and E M = sum over k of P(M > k) = sum over k = 0 ... n - 1 of (1 - a_V(n) / V^n). For V = 2, n - M and M are the two
sides of a random walk, whose mean distance from its start is n C(n - 1, floor((n - 1) / 2)) / 2^(n - 1), so that

    E M / n = 1/2 + C(n - 1, floor((n - 1) / 2)) / 2^n
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import comb


@cache
def largest_share(letters: int, length: int) -> Fraction:
    """E M / n."""
    if letters == 2:
        return Fraction(1, 2) + Fraction(comb(length - 1, (length - 1) // 2), 2**length)
    every = letters**length
    return Fraction(sum(every - strings(letters, length, at_most=k) for k in range(length)), length * every)


def strings(letters: int, length: int, *, at_most: int) -> int:
    """How many strings there are in which no letter comes more than so many times."""
    fewer = [1] + [0] * length  # of no letters there is the empty string
    for many in range(1, letters + 1):
        found = [1]
        for n in range(length):
            over = comb(n, at_most) * fewer[n - at_most] if n >= at_most else 0
            found.append(many * (found[n] - over))
        fewer = found
    return fewer[length]
