(** * A shift of a sinusoidal encoding is linear

    The encoding of position p holds sin (p w) and cos (p w) for each frequency w.
    [sinusoid_shift_linear]: for each k there is one matrix that maps the encoding of p to that of p + k, for every p.
    Only the addition laws are used, so it holds for any pair of functions that satisfies them.
    [sinusoid_shift_of_frequencies]: two encodings with this property, one below the other, have it too. So it holds for
    any number of frequencies, by repetition. *)
From Orderproof Require Import preamble.

Section Sinusoid.
Variables (F : fieldType) (position : zmodType) (cos sin : position -> F).
Hypothesis cos_add : forall a b, cos (a + b) = cos a * cos b - sin a * sin b.
Hypothesis sin_add : forall a b, sin (a + b) = sin a * cos b + cos a * sin b.

(** The pair (sin p, cos p) as a column, and the matrix of a shift by k. *)
Definition pair (p : position) : 'cV[F]_2 := \col_i if i == ord0 then sin p else cos p.
Definition shift_matrix (k : position) : 'M[F]_2 :=
  \matrix_(i, j) if i == j then cos k else if i == ord0 then sin k else - sin k.

Theorem sinusoid_shift_linear k p : pair (p + k) = shift_matrix k *m pair p.
Proof.
apply/matrixP => i j; rewrite !mxE !big_ord_recl big_ord0 !mxE addr0 /=.
case: i => -[|[|]] //= ?.
  by rewrite sin_add mulrC (mulrC (cos p)).
by rewrite cos_add mulNr addrC mulrC (mulrC (cos p)).
Qed.

End Sinusoid.

Section Frequencies.
Variables (F : fieldType) (position : zmodType) (d1 d2 : nat).
Variables (part1 : position -> 'cV[F]_d1) (part2 : position -> 'cV[F]_d2).
Variables (shift1 : position -> 'M[F]_d1) (shift2 : position -> 'M[F]_d2).

Theorem sinusoid_shift_of_frequencies k :
  (forall p, part1 (p + k) = shift1 k *m part1 p) -> (forall p, part2 (p + k) = shift2 k *m part2 p) ->
  forall p, col_mx (part1 (p + k)) (part2 (p + k)) =
    block_mx (shift1 k) 0 0 (shift2 k) *m col_mx (part1 p) (part2 p).
Proof. by move=> linear1 linear2 p; rewrite mul_block_col linear1 linear2 !mul0mx addr0 add0r. Qed.

End Frequencies.
