(** * Softmax and the order of rows and columns

    The softmax of a matrix of scores S divides e (S i j) by the sum of e (S i k) over all k.
    Here e is any function; the exponential is one of them.

    - [softmax_rows]: if the rows of S are permuted, the rows of its softmax are permuted in the same way.
    - [softmax_columns]: the same for columns.
    - [softmax_perm]: softmax (P S P^T) = P (softmax S) P^T. *)
From Orderproof Require Import preamble.

Section Softmax.
Variables (R : fieldType) (e : R -> R).

Definition softmax m n (S : 'M[R]_(m, n)) : 'M[R]_(m, n) :=
  \matrix_(i, j) (e (S i j) / \sum_k e (S i k)).

Theorem softmax_rows m n (s : 'S_m) (S : 'M[R]_(m, n)) :
  softmax (P s *m S) = P s *m softmax S.
Proof.
rewrite -!row_permE; apply/matrixP => i j; rewrite !mxE.
by under eq_bigr do rewrite mxE.
Qed.

Theorem softmax_columns m n (s : 'S_n) (S : 'M[R]_(m, n)) :
  softmax (S *m (P s)^T) = softmax S *m (P s)^T.
Proof.
rewrite tr_perm_mx -!col_permE; apply/matrixP => i j; rewrite !mxE.
under eq_bigr do rewrite mxE.
by rewrite [in RHS](reindex_inj (@perm_inj _ s)).
Qed.

Theorem softmax_perm n (s : 'S_n) (S : 'M[R]_n) :
  softmax (P s *m S *m (P s)^T) = P s *m softmax S *m (P s)^T.
Proof. by rewrite softmax_columns softmax_rows. Qed.

End Softmax.
