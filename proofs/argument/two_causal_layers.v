(** * Two causal layers use the order of the prompt

    A counterexample with three tokens of one number each: 1, 0, 0 and, with the first two exchanged, 0, 1, 0.
    All query weights are zero, so all scores are equal: each token takes the mean of the tokens that it sees,
    and the exponential plays no role. One layer gives the last token 1/3 for both orders. A second layer gives it
    (1 + 1/2 + 1/3) / 3 = 11/18 for the first order and (0 + 1/2 + 1/3) / 3 = 5/18 for the second.

    - [uniform_attention_is_mean]: with query weights zero, masked attention is that mean, for any e with e 0 <> 0.
    - [one_layer_same], [two_layers_differ]: the outputs at the last token.
    - [two_causal_layers_use_order]: so two layers of masked attention tell the two orders apart, for any such e. *)
From mathcomp Require Import rat ssrnum ssrint.
From Orderproof Require Import preamble softmax attention masked_attention one_query.

Section Mean.
Variables (R : fieldType) (e : R -> R) (n width key : nat).

(** The mean of the values of the visible tokens. *)
Definition mean_of_visible (visible : 'I_n -> 'I_n -> bool) (X : 'M[R]_(n, width)) : 'M[R]_(n, width) :=
  \matrix_(i, c) \sum_(j | visible i j) X j c / #|visible i|%:R.

Theorem uniform_attention_is_mean visible (Wk : 'M[R]_(width, key)) (X : 'M[R]_(n, width)) :
  e 0 != 0 -> masked_attention e 0 Wk 1%:M visible X = mean_of_visible visible X.
Proof.
move=> e0; have zero i k : scores 0 Wk X i k = 0 by rewrite /scores mulmx0 mul0mx mxE.
rewrite /masked_attention mulmx1; apply/matrixP => i c; rewrite !mxE [RHS]big_mkcond.
apply: eq_bigr => j _; rewrite mxE; case: ifP => _; last by rewrite mul0r.
rewrite zero; under eq_bigr do rewrite zero.
by rewrite sumr_const -[in LHS]mulr_natr invfM mulrA mulfV // mul1r mulrC.
Qed.

End Mean.

Section Counterexample.

Definition layer := @mean_of_visible rat_fieldType 3 1 (@causal 2).
Definition first_order : 'M[rat]_(3, 1) := \col_i (if i == ord0 then 1 else 0).
Definition exchange : 'S_3 := tperm ord0 (lift ord0 ord0).

Notation token0 := (@ord0 2).
Notation token1 := (lift ord0 ord0 : 'I_3).
Notation last := (lift ord0 (lift ord0 ord0) : 'I_3).

Lemma visible_count (i : 'I_3) : #|causal i| = i.+1.
Proof.
by rewrite -sum1_card big_mkcond !big_ord_recl big_ord0 /=; case: i => -[|[|[|]]].
Qed.

Lemma layer_first X : layer X token0 ord0 = X token0 ord0.
Proof.
rewrite mxE big_mkcond visible_count !big_ord_recl big_ord0 /= !addr0 divr1 //.
Qed.

Lemma layer_second X : layer X token1 ord0 = (X token0 ord0 + X token1 ord0) / 2%:R.
Proof.
by rewrite mxE big_mkcond visible_count !big_ord_recl big_ord0 /= !addr0 mulrDl.
Qed.

Lemma layer_last X : layer X last ord0 = (X token0 ord0 + X token1 ord0 + X last ord0) / 3%:R.
Proof.
by rewrite mxE big_mkcond visible_count !big_ord_recl big_ord0 /= !addr0 !mulrDl addrA.
Qed.

Lemma values (X := first_order) (Y := P exchange *m first_order) :
  (X token0 ord0, X token1 ord0, X last ord0, Y token0 ord0, Y token1 ord0, Y last ord0) = (1, 0, 0, 0, 1, 0).
Proof. by rewrite /X /Y -row_permE !mxE !permE. Qed.

Theorem one_layer_same : layer first_order last ord0 = layer (P exchange *m first_order) last ord0.
Proof. by case: values => x0 x1 x2 y0 y1 y2; rewrite !layer_last x0 x1 x2 y0 y1 y2. Qed.

Theorem two_layers_differ :
  layer (layer first_order) last ord0 = 11%:R / 18%:R /\
  layer (layer (P exchange *m first_order)) last ord0 = 5%:R / 18%:R.
Proof.
case: values => x0 x1 x2 y0 y1 y2.
by rewrite !(layer_last, layer_second, layer_first) x0 x1 x2 y0 y1 y2; split; apply/eqP; vm_compute.
Qed.

Theorem two_causal_layers_use_order (e : rat -> rat) (attend := masked_attention e 0 (0 : 'cV_1) 1%:M (@causal 2)) :
  e 0 != 0 ->
  row last (attend (attend first_order)) <> row last (attend (attend (P exchange *m first_order))).
Proof.
move=> e0; rewrite /attend !uniform_attention_is_mean // -/layer => /rowP /(_ ord0).
by rewrite mxE [RHS]mxE; case: two_layers_differ => -> ->.
Qed.

End Counterexample.
