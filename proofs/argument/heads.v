(** * Attention with any number of heads is permutation-equivariant

    Head h has its own weights Wq h, Wk h, Wv h, and its part Wo h of the output projection: to concatenate the heads
    and multiply by one output matrix is to add (head h) (Wo h) over h.
    [heads_equivariant]: heads (P X) = P (heads X), for any number of heads. *)
From Orderproof Require Import preamble softmax attention.

Section Heads.
Variables (R : fieldType) (e : R -> R) (n width key value out count : nat).
Variables (Wq Wk : 'I_count -> 'M[R]_(width, key)) (Wv : 'I_count -> 'M[R]_(width, value)).
Variable Wo : 'I_count -> 'M[R]_(value, out).

Definition heads (X : 'M[R]_(n, width)) : 'M[R]_(n, out) :=
  \sum_h attention e (Wq h) (Wk h) (Wv h) X *m Wo h.

Theorem heads_equivariant (s : 'S_n) X : heads (P s *m X) = P s *m heads X.
Proof.
rewrite /heads mulmx_sumr; apply: eq_bigr => h _.
by rewrite attention_equivariant mulmxA.
Qed.

End Heads.
