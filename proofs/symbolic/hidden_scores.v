(** * Hidden scores: a softmax with a finite mask

    torch subtracts the largest score v of a row, and then takes e = exp: the weight of score a is e (a - v). A hidden
    score is at most [hide]; a visible one is at least [low]. The assumption on scores is that e is zero at hide - low
    and below: exp underflows there.
    - [hidden_weight_is_zero]: if some score of the row is visible, each hidden score has weight zero.
    - [softmax_step]: so the row agrees in both runs where each of its entries agrees or is hidden in both, if some
      entry of the row is visible (and the same in both).
    - [row_without_visible_entry]: without one, nothing follows: for hidden scores hide - 1 and hide the weights
      differ from those of hide and hide.
    - [minus_infinity_added]: a score to which -inf is added is -inf in both runs, whatever it was, and has weight zero.
    - [added_mask_hides]: a score of at most [ordinary] to which at most hide - ordinary is added is hidden. *)
From Orderproof Require Import preamble fact softmax_lemma.
From mathcomp Require Import order ssrnum.
Import Order.Theory Num.Theory.

Section Hidden.
Variables (R : realFieldType) (e : R -> R) (low hide : R) (J : finType).
Hypothesis underflow : forall x, x <= hide - low -> e x = 0.
Implicit Types a : tensor J R.

Definition largest (v : R) a : Prop := (exists j, a j = v) /\ forall j, a j <= v.

Theorem hidden_weight_is_zero a v j : (exists k, low <= a k) -> largest v a -> a j <= hide -> e (a j - v) = 0.
Proof.
move=> [k visible] [_ above] hidden; apply: underflow.
by apply: ler_sub hidden _; apply: le_trans visible (above k).
Qed.

(** The softmax of one row, with its largest score subtracted. *)
Definition stable_softmax v a j : R := e (a j - v) / \sum_k e (a k - v).

Theorem softmax_step a a' v v' j :
  largest v a -> largest v' a' ->
  (forall k, a' k = a k \/ a k <= hide /\ a' k <= hide) ->
  (exists k, low <= a k /\ a' k = a k) -> hide < low ->
  stable_softmax v' a' j = stable_softmax v a j.
Proof.
move=> is_v is_v' rows [k0 [visible0 same0]] apart.
have visible0' : low <= a' k0 by rewrite same0.
have not_hidden x : low <= x -> x <= hide -> false.
  by move=> lx xh; have := lt_le_trans apart (le_trans lx xh); rewrite ltxx.
have vE : v' = v.
  case: is_v is_v' => [[i iv] above] [[i' iv'] above']; apply/eqP; rewrite eq_le; apply/andP; split.
    case: (rows i') => [same|[_ hid]]; first by rewrite -iv' same.
    by move: (not_hidden v' (le_trans visible0' (above' k0))); rewrite -iv' hid => /(_ isT).
  case: (rows i) => [same|[hid _]]; first by rewrite -iv -same.
  by move: (not_hidden v (le_trans visible0 (above k0))); rewrite -iv hid => /(_ isT).
have weight k : e (a' k - v') = e (a k - v).
  case: (rows k) => [->|[hid hid']]; first by rewrite vE.
  by rewrite (hidden_weight_is_zero _ is_v hid) ?(hidden_weight_is_zero _ is_v' hid') //; [exists k0 | exists k0].
by rewrite /stable_softmax weight; under eq_bigr do rewrite weight.
Qed.

Theorem added_mask_hides ordinary x m : x <= ordinary -> m <= hide - ordinary -> x + m <= hide.
Proof. by move=> small large; have := ler_add small large; rewrite addrCA subrr addr0. Qed.

(** Scores with -inf, which is [None]. *)
Definition plus (x y : option R) : option R := if x is Some s then if y is Some t then Some (s + t) else None else None.
Definition weight (v : R) (x : option R) : R := if x is Some s then e (s - v) else 0.

Theorem minus_infinity_added x x' v : plus x None = plus x' None /\ weight v (plus x None) = 0.
Proof. by case: x; case: x'. Qed.

End Hidden.

(** Two hidden scores in each run, and no visible one: (hide, hide) and (hide, hide - 1). *)
Theorem row_without_visible_entry (R : realFieldType) (e : R -> R) (hide : R) :
  e 0 != 0 -> e (-1) != e 0 ->
  stable_softmax e hide [ffun _ : bool => hide] true <>
  stable_softmax e hide [ffun j : bool => if j then hide else hide - 1] true.
Proof.
move=> e0 differ; rewrite /stable_softmax !big_bool /= !ffunE subrr addrAC subrr add0r.
move=> /(mulfI e0) /invr_inj /addrI same; by rewrite same eqxx in differ.
Qed.
