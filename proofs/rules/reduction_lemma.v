(** * reduction_invariant: a function of a row that does not depend on the order of its elements

    C i = h (A i), where A i is the row and h is symmetric: sum, product, norm, any, all, variance.
    - [reduction_invariant] (cases 1, 2, 3): if A moves along i, so does C; if it moves by a permutation along the
      row, C is unchanged by that; C i is known if the whole row is.
    - [sum_symmetric]: a sum is symmetric.
    - [sum_of_zeros] (case 4): a sum of elements that are zero in both runs is zero in both runs.
    - [argmax_not_symmetric]: the index of a maximum is not. *)
From Orderproof Require Import preamble fact.

Section Reduction.
Variables (I J : finType) (V W : Type) (h : tensor J V -> W).
Implicit Types A : tensor (I * J)%type V.

Definition symmetric_reduction : Prop := forall (p : {perm J}) (a : tensor J V), h [ffun j => a (p j)] = h a.
Definition row_of A i : tensor J V := [ffun j => A (i, j)].
Definition reduction A : tensor I W := [ffun i => h (row_of A i)].

Theorem reduction_invariant (mi : I -> I) (mj : {perm J}) known A A' :
  symmetric_reduction ->
  fact (fun x => (mi x.1, mj x.2)) known A A' ->
  fact mi (fun i => [forall j, known (i, j)]) (reduction A) (reduction A').
Proof.
move=> symmetric same i /forallP row_known; rewrite !ffunE -[LHS](symmetric mj); congr (h _).
by apply/ffunP => j; rewrite !ffunE -(same (i, j)).
Qed.

End Reduction.

Theorem sum_symmetric (R : ringType) (J : finType) :
  symmetric_reduction (fun a : tensor J R => \sum_j a j).
Proof. by move=> p a; rewrite [RHS](reindex_inj (@perm_inj _ p)); apply: eq_bigr => j _; rewrite ffunE. Qed.

Theorem sum_of_zeros (R : ringType) (J : finType) (a : tensor J R) :
  (forall j, a j = 0) -> \sum_j a j = 0.
Proof. by move=> zeros; apply: big1. Qed.

(** Of two numbers, the index of the largest: 1 for [1, 2] and 0 for [2, 1]. *)
Definition argmax (a : tensor bool nat) : bool := (a false < a true)%N.

Theorem argmax_not_symmetric : ~ symmetric_reduction argmax.
Proof.
move=> /(_ (tperm false true) [ffun j : bool => j.+1]).
by rewrite /argmax !ffunE tpermL tpermR.
Qed.
