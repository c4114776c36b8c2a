(** * Scores of rotary encodings depend on the distance alone

    A rotary encoding multiplies query and key of position m by a matrix R m. All that is used of R:
    R (a + b) = R a R b, and the transpose of R a is R (- a): R is a homomorphism into orthogonal matrices.
    Positions are integers; they may be elements of any commutative group, such as pairs of coordinates of an image.
    - [rotary_relative]: the score of query q at m and key k at n is that of q at m - n and k at 0.
    - [rotary_shift]: so it is unchanged if all positions are shifted alike.
    - [rotation_adds], [rotation_transposes]: the rotations of a plane by multiples of an angle are such matrices,
      from the addition laws of cosine and sine alone.
    - [two_blocks_add], [two_blocks_transpose]: so are two such families next to each other, as blocks of one matrix:
      a head of any even width, with one frequency for each pair, by repetition. *)
From Orderproof Require Import preamble.

Section Rotary.
Variables (F : fieldType) (d : nat) (position : zmodType) (rotate : position -> 'M[F]_d).
Hypothesis rotate_add : forall a b, rotate (a + b) = rotate a *m rotate b.
Hypothesis rotate_transpose : forall a, (rotate a)^T = rotate (- a).
Implicit Types (q k : 'rV[F]_d) (m n : position).

Definition rotary_score q m k n : F := ((q *m rotate m) *m (k *m rotate n)^T) ord0 ord0.

Theorem rotary_relative q m k n : rotary_score q m k n = rotary_score q (m - n) k 0.
Proof.
rewrite /rotary_score !trmx_mul !rotate_transpose oppr0 -!mulmxA.
by rewrite !(mulmxA (rotate _)) -!rotate_add addr0.
Qed.

Theorem rotary_shift q m k n shift : rotary_score q (m + shift) k (n + shift) = rotary_score q m k n.
Proof. by rewrite rotary_relative [RHS]rotary_relative opprD addrACA subrr addr0. Qed.

End Rotary.

Section Plane.
Variables (F : fieldType) (position : zmodType) (cos sin : position -> F).
Hypothesis cos_add : forall a b, cos (a + b) = cos a * cos b - sin a * sin b.
Hypothesis sin_add : forall a b, sin (a + b) = sin a * cos b + cos a * sin b.
Hypothesis cos_opp : forall a, cos (- a) = cos a.
Hypothesis sin_opp : forall a, sin (- a) = - sin a.

(** Rows are multiplied from the left: (x, y) becomes (x cos - y sin, x sin + y cos). *)
Definition rotation (a : position) : 'M[F]_2 :=
  \matrix_(i, j) if i == j then cos a else if i == ord0 then sin a else - sin a.

Theorem rotation_adds a b : rotation (a + b) = rotation a *m rotation b.
Proof.
apply/matrixP => i j; rewrite !mxE !big_ord_recl big_ord0 !mxE addr0 cos_add sin_add.
by case: i => -[|[|]] //= ?; case: j => -[|[|]] //= ?; rewrite ?mulrN ?mulNr ?opprD // addrC.
Qed.

Theorem rotation_transposes a : (rotation a)^T = rotation (- a).
Proof.
apply/matrixP => i j; rewrite !mxE cos_opp sin_opp opprK eq_sym.
by case: i => -[|[|]] //= ?; case: j => -[|[|]] //= ?.
Qed.

End Plane.

Section Blocks.
Variables (F : fieldType) (d1 d2 : nat) (position : zmodType).
Variables (rotate1 : position -> 'M[F]_d1) (rotate2 : position -> 'M[F]_d2).

Definition two_blocks (a : position) : 'M[F]_(d1 + d2) := block_mx (rotate1 a) 0 0 (rotate2 a).

Theorem two_blocks_add :
  (forall a b, rotate1 (a + b) = rotate1 a *m rotate1 b) ->
  (forall a b, rotate2 (a + b) = rotate2 a *m rotate2 b) ->
  forall a b, two_blocks (a + b) = two_blocks a *m two_blocks b.
Proof.
move=> add1 add2 a b.
by rewrite /two_blocks mulmx_block add1 add2 !mulmx0 !mul0mx !addr0 !add0r.
Qed.

Theorem two_blocks_transpose :
  (forall a, (rotate1 a)^T = rotate1 (- a)) -> (forall a, (rotate2 a)^T = rotate2 (- a)) ->
  forall a, (two_blocks a)^T = two_blocks (- a).
Proof. by move=> tr1 tr2 a; rewrite /two_blocks tr_block_mx tr1 tr2 !trmx0. Qed.

End Blocks.
