(** * A causal mask: outputs before t do not depend on inputs from t on

    [causality]: if a mask shows token i only tokens j <= i, two runs with the same tokens before t have the same
    outputs before t. For every number of tokens n, every t, and through any number of layers and heads.
    [one_unmasked_layer_leaks] says why every layer needs the mask: without one, the first output can depend on the
    second token. *)
From Orderproof Require Import preamble softmax attention masked_attention rows stack agreement.

Definition before n (t : nat) : 'I_n -> bool := fun i => (i < t)%N.

Theorem causality (R : fieldType) n width (visible : 'I_n -> 'I_n -> bool) (ws : seq (weights R width)) t X Y :
  (forall i j, visible i j -> (j <= i)%N) ->
  agree (@before n t) X Y -> agree (@before n t) (masked_transformer visible ws X) (masked_transformer visible ws Y).
Proof.
move=> causal; apply: masked_transformer_agrees => i j i_t /causal j_i.
exact: leq_ltn_trans j_i i_t.
Qed.

Theorem one_unmasked_layer_leaks (R : fieldType) (e : R -> R) (first := ord0 : 'I_2) :
  e 0 != 0 -> (2%:R : R) != 0 -> exists X Y : 'cV[R]_2, agree (@before 2 1) X Y /\
    row first (attention e (0 : 'cV_1) 0 1%:M X) <> row first (attention e (0 : 'cV_1) 0 1%:M Y).
Proof.
move=> e0 two; exists 0, (delta_mx (lift ord0 ord0) ord0); split.
  by case=> -[|[]] //= i_lt _; apply/rowP => j; rewrite !mxE.
move=> /rowP /(_ ord0); rewrite /attention /scores !mulmx0 !mul0mx mulmx1 !mxE !big_ord_recl !big_ord0 !mxE /=.
rewrite !big_ord_recl !big_ord0 !mxE /=.
rewrite !(mulr0, mulr1, addr0, add0r) => /esym /eqP.
by rewrite mulf_eq0 invr_eq0 -mulr2n -(mulr_natr (e 0)) mulf_eq0 (negPf e0) (negPf two).
Qed.
