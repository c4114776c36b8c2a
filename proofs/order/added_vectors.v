(** * Added position vectors tell two orders apart

    Row i of T is the vector of position i; the model reads X + T. If positions i and j have different vectors, there
    are tokens X for which exchanging tokens i and j is no longer an exchange of the rows of X + T.
    - [added_vectors_break_equivariance]: X -> X + T is not permutation-equivariant unless all rows of T are equal.
    - [equal_vectors_keep_equivariance]: if all rows of T are equal, it is.
    - [added_vectors_separate_orders]: there are tokens and an order of them for which even the sum of the squares of
      the entries of X + T differs ([squares_invariant]: without T it never does). So a model that pools its rows can
      tell the two orders apart. *)
From Orderproof Require Import preamble rows.

Section Added.
Variables (R : fieldType) (n width : nat).
Implicit Types (T X : 'M[R]_(n, width)).

Definition add T X := X + T.

Theorem added_vectors_break_equivariance T (i j : 'I_n) :
  row i T <> row j T -> ~ equivariant (add T).
Proof.
move=> differ same; apply: differ; have := same (tperm i j) 0.
rewrite /add mulmx0 add0r -row_permE => /(congr1 (row i)) ->.
by apply/rowP => c; rewrite !mxE tpermL.
Qed.

Theorem equal_vectors_keep_equivariance T :
  (forall i j, row i T = row j T) -> equivariant (add T).
Proof.
move=> equal s X; rewrite /add mulmxDr; congr (_ + _).
rewrite -row_permE; apply/matrixP => i c; rewrite mxE.
by have /rowP /(_ c) := equal i (s i); rewrite !mxE.
Qed.

End Added.

Section Separate.
Variables (R : fieldType) (n : nat).

(** One number a token. A model that pools can compute the sum of the squares of the rows of X + T. *)
Definition squares (X : 'cV[R]_n) : R := \sum_k X k ord0 ^+ 2.

Lemma squares_invariant (s : 'S_n) X : squares (P s *m X) = squares X.
Proof.
rewrite /squares -row_permE; under eq_bigr do rewrite mxE.
by rewrite [RHS](reindex_inj (@perm_inj _ s)).
Qed.

Lemma squares_of_one_token (T : 'cV[R]_n) i :
  squares (delta_mx i ord0 + T) = 1 + T i ord0 *+ 2 + squares T.
Proof.
rewrite /squares (bigD1 i) //= [in RHS](bigD1 i) //= !mxE !eqxx sqrrD expr1n mul1r !addrA; congr (_ + _).
by apply: eq_bigr => k /negPf k_i; rewrite !mxE k_i add0r.
Qed.

Theorem added_vectors_separate_orders (T : 'cV[R]_n) (i j : 'I_n) :
  T i ord0 != T j ord0 -> (2%:R : R) != 0 ->
  exists X : 'cV[R]_n, squares (P (tperm i j) *m X + T) != squares (X + T).
Proof.
move=> differ two; exists (delta_mx i ord0).
have -> : P (tperm i j) *m delta_mx i ord0 = delta_mx j ord0 :> 'cV[R]_n.
  rewrite -row_permE; apply/matrixP => k c; rewrite !mxE; congr (_ && _)%:R.
  by rewrite -[X in _ == X](tpermR i j) (inj_eq perm_inj).
rewrite !squares_of_one_token; apply: contra differ => /eqP /addIr /addrI /eqP.
by rewrite -[X in X == _]mulr_natr -[X in _ == X]mulr_natr => /eqP /(mulIf two) ->.
Qed.

End Separate.
