(** * triangular_solve_dependence: row i of the solution reads rows up to i

    A X = B with A lower triangular: row i says that the sum of A[i, j] X[j, k] over j <= i is B[i, k].
    - [triangular_solve_dependence] (case 1): if two systems agree in rows up to i, read where j <= i only, and no
      diagonal entry there is zero, then their solutions agree in rows up to i.
    - [inverse_is_triangular]: the solution for the identity, with a diagonal of ones, is zero above the diagonal.
    - [triangular_columns] (case 2): the columns of B are solved one by one, so a map of the columns of B is one of X.
    - [triangular_not_determined] (case 3): with [[1, 0], [1, 1]], the solution for [1, 0] is [1, -1], for [0, 1] it
      is [0, 1]: exchanging the rows of B does not exchange those of X. *)
From mathcomp Require Import ssrint.
From Orderproof Require Import preamble fact.

Section Triangular.
Variables (F : fieldType) (n columns : nat).
Implicit Types (A : 'M[F]_n) (X B : 'M[F]_(n, columns)).

Definition solves A X B : Prop := forall (i : 'I_n) k, \sum_(j < n | (j <= i)%N) A i j * X j k = B i k.

Theorem triangular_solve_dependence A A' X X' B B' (t : nat) :
  solves A X B -> solves A' X' B' ->
  (forall i j : 'I_n, (j <= i)%N -> (i < t)%N -> A' i j = A i j) ->
  (forall i : 'I_n, (i < t)%N -> A i i != 0) ->
  (forall (i : 'I_n) k, (i < t)%N -> B' i k = B i k) ->
  forall (i : 'I_n) k, (i < t)%N -> X' i k = X i k.
Proof.
move=> sol sol' sameA diagonal sameB i k.
have [m] := ubnP i; elim: m i => // m IH i; rewrite ltnS => i_m i_t.
have split_row (M : 'M[F]_n) Y :
    \sum_(j < n | (j <= i)%N) M i j * Y j k = M i i * Y i k + \sum_(j < n | (j < i)%N) M i j * Y j k.
  rewrite (bigD1 i) //=; congr (_ + _); apply: eq_bigl => j.
  by rewrite andbC ltn_neqAle.
have := sameB i k i_t; rewrite -sol -sol' !split_row sameA //.
rewrite (eq_bigr (fun j => A i j * X j k)) => [/addIr /(mulfI (diagonal i i_t)) //|j j_i].
by rewrite sameA ?(ltnW j_i) // IH ?(leq_trans j_i i_m) // (ltn_trans j_i i_t).
Qed.

End Triangular.

Theorem inverse_is_triangular (F : fieldType) n (A X : 'M[F]_n) :
  solves A X 1%:M -> (forall i : 'I_n, A i i = 1) -> forall i k : 'I_n, (i < k)%N -> X i k = 0.
Proof.
move=> sol ones i k; have [m] := ubnP i; elim: m i => // m IH i; rewrite ltnS => i_m i_k.
have := sol i k; rewrite (bigD1 i) //= ones mul1r big1 ?addr0 => [->|j /andP[j_i j_ne]].
  by rewrite mxE -val_eqE (ltn_eqF i_k).
have ji : (j < i)%N by rewrite ltn_neqAle j_ne.
by rewrite (IH j) ?mulr0 // ?(leq_trans ji i_m) // (ltn_trans ji i_k).
Qed.

Theorem triangular_columns (F : fieldType) n a b (f : 'I_b -> 'I_a) (A : 'M[F]_n) (X B : 'M[F]_(n, a)) :
  solves A X B -> solves A (\matrix_(i, k) X i (f k)) (\matrix_(i, k) B i (f k)).
Proof. by move=> sol i k; rewrite mxE -sol; apply: eq_bigr => j _; rewrite mxE. Qed.

Theorem triangular_not_determined (F : fieldType) (A : 'M[F]_2 := \matrix_(i, j) 1) :
  exists X X' B : 'cV[F]_2, solves A X B /\ solves A X' (P (tperm ord0 (lift ord0 ord0)) *m B) /\
    forall s : 'S_2, X' <> P s *m X.
Proof.
exists (\col_i if i == ord0 then 1 else -1), (\col_i if i == ord0 then 0 else 1), (\col_i if i == ord0 then 1 else 0).
split; last split.
- move=> i k; rewrite big_mkcond !big_ord_recl big_ord0 !mxE.
  by case: i => -[|[]] //= ?; rewrite !(mul1r, addr0, subrr).
- move=> i k; rewrite -row_permE big_mkcond !big_ord_recl big_ord0 !mxE !permE.
  by case: i => -[|[]] //= ?; rewrite !(mul1r, addr0, add0r).
move=> s /matrixP /(_ ord0 ord0) /eqP; rewrite -row_permE !mxE /=.
by case: ifP => _; rewrite eq_sym ?oppr_eq0 oner_eq0.
Qed.
