(** * extreme_of_visible: the maximum of a row with a visible entry does not depend on the masked entries

    A row has entries a j. Masked entries are at most [low]; a visible one is at least [low].
    - [maximum_of_visible]: if two rows agree except at entries that are masked in both, and some entry is visible, they
      have the same maximum.
    - [log_sum_exp_of_visible]: the same for log sum exp, where masked entries have e a = 0. No visible entry is needed.
    - [largest_is_not_below]: the largest entry is not below another one of the row; [largest_is_visible]: it is visible
      if some entry is; [selected_row_is_visible]: so it stays if entries below another one are hidden.
    - [maximum_all_masked]: the maximum of a row of one number m is m: a wholly masked row keeps its dependences. *)
From Orderproof Require Import preamble fact.
From mathcomp Require Import order.
Import Order.Theory.

Section Maximum.
Variables (disp : unit) (V : orderType disp) (J : finType).
Implicit Types a : tensor J V.

(** v is an entry of the row, and no entry is larger. *)
Definition is_maximum (v : V) a : Prop := (exists j, a j = v) /\ forall j, (a j <= v)%O.

Theorem maximum_of_visible (visible : J -> bool) (low : V) a a' v :
  (forall j, visible j -> a' j = a j) ->
  (forall j, ~~ visible j -> (a j <= low)%O && (a' j <= low)%O) ->
  (exists2 j, visible j & (low <= a j)%O) ->
  is_maximum v a -> is_maximum v a'.
Proof.
move=> same masked [j0 vis0 low0] [[j jv] largest].
have low_v : (low <= v)%O by apply: le_trans low0 (largest j0).
split=> [|k]; last first.
  by case: (boolP (visible k)) => [/same ->|/masked/andP[_ kl]] //; apply: le_trans kl low_v.
case: (boolP (visible j)) => [vis|/masked/andP[jl _]]; first by exists j; rewrite same.
exists j0; rewrite same //; apply/eqP; rewrite eq_le largest /=.
by rewrite -jv; apply: le_trans jl low0.
Qed.

Theorem maximum_all_masked (m : V) (j : J) : is_maximum m [ffun _ => m].
Proof. by split; [exists j; rewrite ffunE | move=> k; rewrite ffunE]. Qed.

Theorem largest_is_not_below a v t : is_maximum v a -> (exists j, a j = t) -> (v < t)%O = false.
Proof. by move=> [_ largest] [j <-]; apply: le_gtF. Qed.

Theorem largest_is_visible (visible : J -> bool) (low : V) a v j :
  (forall k, ~~ visible k -> (a k < low)%O) -> (exists2 k, visible k & (low <= a k)%O) ->
  is_maximum v a -> a j = v -> visible j.
Proof.
move=> masked [k _ low_k] [_ largest] jv; apply/idPn => /masked.
by rewrite jv ltNge (le_trans low_k (largest k)).
Qed.

Theorem selected_row_is_visible (visible : J -> bool) (low : V) a v t :
  (forall k, ~~ visible k -> (a k < low)%O) -> (exists2 k, visible k & (low <= a k)%O) ->
  is_maximum v a -> (exists j, a j = t) -> exists j, visible j /\ (a j < t)%O = false.
Proof.
move=> masked seen is_max ranked; have [[j jv] _] := is_max; exists j; split.
  exact: largest_is_visible masked seen is_max jv.
by rewrite jv; apply: largest_is_not_below is_max ranked.
Qed.

End Maximum.

Theorem log_sum_exp_of_visible (R : ringType) (W : Type) (J : finType) (e : R -> R) (log : R -> W) (visible : J -> bool)
    (a a' : tensor J R) :
  (forall j, visible j -> a' j = a j) -> (forall j, ~~ visible j -> e (a j) = 0 /\ e (a' j) = 0) ->
  log (\sum_j e (a' j)) = log (\sum_j e (a j)).
Proof.
move=> same masked; congr (log _); apply: eq_bigr => j _.
by case: (boolP (visible j)) => [/same ->|/masked[-> ->]].
Qed.
