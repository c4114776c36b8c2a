(** * Maps of rows are permutation-equivariant

    A feed-forward network and a layer normalization apply one function f to each row. A residual connection adds the
    input. [rows_equivariant], [residual_equivariant] and [compose_equivariant] say that these keep the relation
    f (P X) = P (f X). No step "loses" the order: the rows leave in the order in which they enter.

    [equivariant f] abbreviates: f (P X) = P (f X) for every permutation and every X. *)
From Orderproof Require Import preamble.

Section Rows.
Variables (R : fieldType) (n : nat).

Definition equivariant a b (f : 'M[R]_(n, a) -> 'M[R]_(n, b)) : Prop :=
  forall (s : 'S_n) X, f (P s *m X) = P s *m f X.

Definition by_row a b (f : 'rV[R]_a -> 'rV[R]_b) (X : 'M[R]_(n, a)) : 'M[R]_(n, b) :=
  \matrix_(i, j) f (row i X) ord0 j.

Theorem rows_equivariant a b (f : 'rV[R]_a -> 'rV[R]_b) : equivariant (by_row f).
Proof.
move=> s X; rewrite -!row_permE; apply/matrixP => i j; rewrite !mxE.
by congr (f _ ord0 j); apply/rowP => k; rewrite !mxE.
Qed.

Theorem residual_equivariant a (f : 'M[R]_(n, a) -> 'M[R]_(n, a)) :
  equivariant f -> equivariant (fun X => X + f X).
Proof. by move=> fP s X; rewrite fP mulmxDr. Qed.

Theorem compose_equivariant a b c (f : 'M[R]_(n, b) -> 'M[R]_(n, c)) (g : 'M[R]_(n, a) -> 'M[R]_(n, b)) :
  equivariant f -> equivariant g -> equivariant (f \o g).
Proof. by move=> fP gP s X; rewrite /= gP fP. Qed.

End Rows.
