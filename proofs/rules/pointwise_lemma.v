(** * pointwise_equivariant: operators that compute each element from one element of each operand

    C i = h (A k i for every operand k). The operands are broadcast to one index set first ([fact_moved] of
    movement_lemma.v).
    - [pointwise_equivariant] (case 1): operands that move in the same way give a result that moves in that way. An
      element is known where all operands are.
    - [pointwise_constant] (case 2): a constant satisfies the premise where its values do.
    - [pointwise_not_determined] (case 3): operands that move differently do not determine the result.
    - [pointwise_decided] (case 4): an element that one operand alone decides depends on that operand alone. *)
From Orderproof Require Import preamble fact.

Section Pointwise.
Variables (I K : finType) (V W : Type) (h : {ffun K -> V} -> W).
Implicit Types (m : I -> I) (A : K -> tensor I V).

Definition pointwise A : tensor I W := [ffun i => h [ffun k => A k i]].

Theorem pointwise_equivariant m (known : K -> I -> bool) A A' :
  (forall k, fact m (known k) (A k) (A' k)) ->
  fact m (fun i => [forall k, known k i]) (pointwise A) (pointwise A').
Proof.
move=> same i /forallP all_known; rewrite !ffunE; congr (h _).
by apply/ffunP => k; rewrite !ffunE same.
Qed.

Theorem pointwise_constant m (known : I -> bool) (B : tensor I V) :
  (forall i, known i -> B (m i) = B i) -> fact m known B B.
Proof. by []. Qed.

(** [decides k a]: if operand k has the value a, the result does not depend on the others. *)
Theorem pointwise_decided m (known : K -> I -> bool) A A' (decides : K -> V -> bool) :
  (forall k (a b : {ffun K -> V}), a k = b k -> decides k (a k) -> h a = h b) ->
  (forall k, fact m (known k) (A k) (A' k)) ->
  fact m (fun i => [exists k, known k i && decides k (A k i)]) (pointwise A) (pointwise A').
Proof.
move=> alone same i /existsP[k /andP[known_k decided]]; rewrite !ffunE; apply/esym/(alone k).
  by rewrite !ffunE same.
by rewrite ffunE.
Qed.

End Pointwise.

(** A = [1, 2] with its ends exchanged, and B = [1, 2] unchanged: A + B is [2, 4], and then [3, 3]. *)
Theorem pointwise_not_determined :
  exists A A' B : tensor bool nat, fact negb (@everywhere _) A A' /\ fact id (@everywhere _) B B /\
    forall m : bool -> bool, ~ fact m (@everywhere _) [ffun i => A i + B i]%N [ffun i => A' i + B i]%N.
Proof.
exists [ffun i : bool => i.+1], [ffun i : bool => (~~ i).+1], [ffun i : bool => i.+1].
split; first by case=> _; rewrite !ffunE.
split=> // m /(_ true isT); rewrite !ffunE; by case: (m true).
Qed.
