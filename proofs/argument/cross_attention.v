(** * Cross-attention does not depend on the order of the keys

    Queries come from one sequence Y, keys and values from another sequence X.
    [cross_attention_invariant]: permuting X changes nothing.
    [cross_attention_equivariant]: permuting Y permutes the output in the same way. *)
From Orderproof Require Import preamble softmax.

Section Cross.
Variables (R : fieldType) (e : R -> R) (m n width width' key value : nat).
Variables (Wq : 'M[R]_(width', key)) (Wk : 'M[R]_(width, key)) (Wv : 'M[R]_(width, value)).
Implicit Types (Y : 'M[R]_(m, width')) (X : 'M[R]_(n, width)).

Definition cross_attention Y X : 'M[R]_(m, value) :=
  softmax e (Y *m Wq *m (X *m Wk)^T) *m (X *m Wv).

Theorem cross_attention_invariant (s : 'S_n) Y X : cross_attention Y (P s *m X) = cross_attention Y X.
Proof.
rewrite /cross_attention -!(mulmxA (P s)) trmx_mul (mulmxA (Y *m Wq)) softmax_columns -!mulmxA.
by rewrite (mulmxA (P s)^T) perm_transpose mul1mx.
Qed.

Theorem cross_attention_equivariant (s : 'S_m) Y X :
  cross_attention (P s *m Y) X = P s *m cross_attention Y X.
Proof. by rewrite /cross_attention -!(mulmxA (P s)) softmax_rows -mulmxA. Qed.

End Cross.
