(** * Self-attention is permutation-equivariant

    X contains one token in each row. Queries, keys and values are X Wq, X Wk and X Wv.
    Attention is softmax (Q K^T) V. The factor 1 / sqrt d of the scores is part of Wq or of e.
    [attention_equivariant]: attention (P X) = P (attention X), for every number of tokens, width, weight,
    permutation and score function e.

    Proof, in three steps: the scores of P X are P S P^T; softmax (P S P^T) = P (softmax S) P^T; and
    P A P^T P V = P A V, because P^T P = 1. *)
From Orderproof Require Import preamble softmax.

Section Attention.
Variables (R : fieldType) (e : R -> R) (n width key value : nat).
Variables (Wq Wk : 'M[R]_(width, key)) (Wv : 'M[R]_(width, value)).
Implicit Types (X : 'M[R]_(n, width)) (s : 'S_n).

Definition scores X : 'M[R]_n := X *m Wq *m (X *m Wk)^T.
Definition attention X : 'M[R]_(n, value) := softmax e (scores X) *m (X *m Wv).

Lemma scores_perm s X : scores (P s *m X) = P s *m scores X *m (P s)^T.
Proof. by rewrite /scores -!mulmxA trmx_mul. Qed.

Theorem attention_equivariant s X : attention (P s *m X) = P s *m attention X.
Proof.
rewrite /attention scores_perm softmax_perm -!mulmxA.
by rewrite (mulmxA (P s)^T) perm_transpose mul1mx.
Qed.

End Attention.
