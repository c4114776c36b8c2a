(** * The mean over the tokens is the same for every order

    [mean_invariant]: the mean of the rows of P X is the mean of the rows of X.
    [bag_of_words]: so a permutation-equivariant model followed by a mean gives one result for all orders of its
    tokens: it is a bag of words. [transformer_bag_of_words]: the transformer of stack.v is one. *)
From Orderproof Require Import preamble rows softmax attention heads stack.

Section Bag.
Variables (R : fieldType) (n width : nat).

Definition mean a (X : 'M[R]_(n, a)) : 'rV[R]_a := \row_j ((\sum_i X i j) / n%:R).

Theorem mean_invariant a (s : 'S_n) (X : 'M[R]_(n, a)) : mean (P s *m X) = mean X.
Proof.
apply/rowP => j; rewrite !mxE -row_permE; congr (_ / _).
under eq_bigr do rewrite mxE.
by rewrite [RHS](reindex_inj (@perm_inj _ s)).
Qed.

Theorem bag_of_words a b (f : 'M[R]_(n, a) -> 'M[R]_(n, b)) (s : 'S_n) X :
  equivariant f -> mean (f (P s *m X)) = mean (f X).
Proof. by move=> fP; rewrite fP mean_invariant. Qed.

Theorem transformer_bag_of_words (ws : seq (weights R width)) (s : 'S_n) (X : 'M[R]_(n, width)) :
  mean (transformer ws (P s *m X)) = mean (transformer ws X).
Proof. by rewrite transformer_equivariant mean_invariant. Qed.

End Bag.
