(** * softmax_equivariant: softmax moves with its rows, and zeros cut a masked entry's dependence

    C[i, j] = e (A[i, j]) / sum over k of e (A[i, k]), for any function e.
    - [softmax_equivariant] (cases 1, 2, 3): A moves along i by a map and along the row by a permutation; then C moves
      in the same way, and C[i, j] is known if the whole row i is.
    - [softmax_hidden] (case 4): if e is zero at the entries that are not known, in both runs, they contribute
      nothing: the row of C is known all the same.
    - [softmax_hidden_is_zero]: and a hidden entry has weight zero.
    - [softmax_all_hidden]: a row whose two entries are one number m with e m <> 0, such as a finite mask, becomes
      [1/2, 1/2]: a wholly masked row keeps its dependences. *)
From Orderproof Require Import preamble fact.

Section Softmax.
Variables (R : fieldType) (e : R -> R) (I J : finType).
Implicit Types A : tensor (I * J)%type R.

Definition row_softmax A : tensor (I * J)%type R := [ffun x => e (A x) / \sum_k e (A (x.1, k))].

Theorem softmax_equivariant (mi : I -> I) (mj : {perm J}) known A A' :
  fact (fun x => (mi x.1, mj x.2)) known A A' ->
  fact (fun x => (mi x.1, mj x.2)) (fun x => [forall j, known (x.1, j)]) (row_softmax A) (row_softmax A').
Proof.
move=> same [i j] /forallP /= row_known; rewrite !ffunE /= [in LHS](reindex_inj (@perm_inj _ mj)).
rewrite -(same (i, j)) //; congr (_ / _); apply: eq_bigr => k _.
by rewrite -(same (i, k)).
Qed.

Definition hidden_in_both m A A' (x : I * J) := (e (A x) == 0) && (e (A' (m x)) == 0).

Theorem softmax_hidden (mi : I -> I) (mj : {perm J}) known A A' (m := fun x => (mi x.1, mj x.2)) :
  fact m known A A' ->
  fact m (fun x => [forall j, known (x.1, j) || hidden_in_both m A A' (x.1, j)]) (row_softmax A) (row_softmax A').
Proof.
move=> same [i j] /forallP /= row_known.
have weight k : e (A' (mi i, mj k)) = e (A (i, k)).
  case/orP: (row_known k) => [kn|/andP[/eqP -> /eqP]]; last exact.
  by rewrite -(same (i, k)).
rewrite !ffunE /= weight [in LHS](reindex_inj (@perm_inj _ mj)).
by under eq_bigr do rewrite weight.
Qed.

Theorem softmax_hidden_is_zero A x : e (A x) = 0 -> row_softmax A x = 0.
Proof. by rewrite ffunE => ->; rewrite mul0r. Qed.

End Softmax.

Theorem softmax_all_hidden (R : fieldType) (e : R -> R) (m : R) (j : bool) :
  e m != 0 -> row_softmax e [ffun _ : unit * bool => m] (tt, j) = 1 / 2%:R.
Proof.
move=> seen; rewrite !ffunE big_bool /= !ffunE -mulr2n -[in LHS](mulr_natr (e m)).
by rewrite invfM mulrA mulfV.
Qed.
