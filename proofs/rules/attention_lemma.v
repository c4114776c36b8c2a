(** * attention_equivariant: scaled dot-product attention of operands that moved

    [attention_of_moved_operands]: if queries, keys and values are P Q, P K and P V in the second run, and the mask is
    P M P^T (for a constant mask: the mask is symmetric under P), then the result is P times that of the first run.
    [attention_of_moved_keys]: if only keys, values and the columns of the mask move, the result is the same. *)
From Orderproof Require Import preamble softmax.

Section Attention.
Variables (R : fieldType) (e : R -> R) (m n key value : nat).

Definition dot_product_attention m n (Q : 'M[R]_(m, key)) (K : 'M[R]_(n, key)) (V : 'M[R]_(n, value)) M :=
  softmax e (Q *m K^T + M) *m V.

Theorem attention_of_moved_operands (s : 'S_n) (Q K : 'M[R]_(n, key)) (V : 'M[R]_(n, value)) (M M' : 'M[R]_n) :
  M' = P s *m M *m (P s)^T ->
  dot_product_attention (P s *m Q) (P s *m K) (P s *m V) M' = P s *m dot_product_attention Q K V M.
Proof.
move=> ->; rewrite /dot_product_attention.
have -> : P s *m Q *m (P s *m K)^T + P s *m M *m (P s)^T = P s *m (Q *m K^T + M) *m (P s)^T.
  by rewrite mulmxDr mulmxDl trmx_mul !mulmxA.
rewrite softmax_perm.
by rewrite -!mulmxA (mulmxA (P s)^T) perm_transpose mul1mx.
Qed.

Theorem attention_of_moved_keys (s : 'S_n) (Q : 'M[R]_(m, key)) (K : 'M[R]_(n, key)) (V : 'M[R]_(n, value)) M :
  dot_product_attention Q (P s *m K) (P s *m V) (M *m (P s)^T) = dot_product_attention Q K V M.
Proof.
rewrite /dot_product_attention trmx_mul (mulmxA Q) -mulmxDl softmax_columns -!mulmxA.
by rewrite (mulmxA (P s)^T) perm_transpose mul1mx.
Qed.

End Attention.
