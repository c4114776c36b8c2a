(** * movement_equivariant: operators that only move elements

    C o = A (s o) for a fixed map s of indices: transpose, view, slice, flip, expand, index by a constant.
    - [movement_equivariant]: if r is a map of the indices of C with s (r o) = m (s o), then C moves by r.
    - [movement_not_determined]: [1, 2, 3] with its ends exchanged; the first two elements become [3, 2], which is no
      permutation of [1, 2].
    - [fact_moved]: without moves, C o is known where A (s o) is.
    - [concatenation_fact]: for operands one after the other, the fact of each holds on its part; then the rule for one
      operand applies. *)
From Orderproof Require Import preamble fact.

Section Movement.
Variables (I O : finType) (V : Type) (s : O -> I).
Implicit Types A : tensor I V.

Definition moved A : tensor O V := [ffun o => A (s o)].

Theorem movement_equivariant (m : I -> I) (r : O -> O) known A A' :
  (forall o, s (r o) = m (s o)) ->
  fact m known A A' -> fact r (fun o => known (s o)) (moved A) (moved A').
Proof. by move=> follows same o known_o; rewrite !ffunE follows same. Qed.

Theorem fact_moved known A A' : fact id known A A' -> fact id (fun o => known (s o)) (moved A) (moved A').
Proof. exact: movement_equivariant. Qed.

End Movement.

Section Concatenation.
Variables (I J : finType) (V : Type).

(** The indices of two tensors, one after the other, are the disjoint union I + J. *)
Definition either (T : Type) (f : I -> T) (g : J -> T) (i : I + J) : T :=
  match i with inl i => f i | inr j => g j end.
Definition concatenation (A : tensor I V) (B : tensor J V) : tensor (I + J)%type V := [ffun i => either A B i].

Theorem concatenation_fact m n known known' (A A' : tensor I V) (B B' : tensor J V) :
  fact m known A A' -> fact n known' B B' ->
  fact (either (fun i => inl (m i)) (fun j => inr (n j))) (either known known')
    (concatenation A B) (concatenation A' B').
Proof. by move=> sameA sameB [i|j] known_i; rewrite !ffunE /= ?sameA ?sameB. Qed.

End Concatenation.

Theorem movement_not_determined :
  exists (A A' : tensor 'I_3 nat) (s : 'I_2 -> 'I_3), fact (@rev_ord 3) (@everywhere _) A A' /\
    forall r : 'I_2 -> 'I_2, ~ fact r (@everywhere _) (moved s A) (moved s A').
Proof.
exists [ffun i : 'I_3 => i.+1], [ffun i : 'I_3 => (rev_ord i).+1], (widen_ord (leqnSn 2)).
split=> [i _|r /(_ ord0 isT)]; first by rewrite !ffunE rev_ordK.
by rewrite !ffunE; case: (r ord0) => -[|[]].
Qed.
