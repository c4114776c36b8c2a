(** * Two runs that agree on some tokens

    A dependence law compares two runs, with inputs X and Y. [agree D X Y] says that the tokens in the set D are the
    same in both. [D] is *closed* under a mask if no token of D sees a token outside D.
    - [masked_attention_agrees]: attention with the mask keeps agreement on each closed set.
    - [rows_agree], [residual_agrees], [stack_agrees]: so do maps of rows, residual connections and stacks.
    - [masked_transformer_agrees]: so outputs in a closed set depend on inputs in that set alone, for every number of
      tokens, layers and heads, and for every weight. *)
From Orderproof Require Import preamble softmax attention masked_attention rows stack.

Section Agreement.
Variables (R : fieldType) (n : nat).
Implicit Types (D : 'I_n -> bool) (visible : 'I_n -> 'I_n -> bool).

Definition agree D width (X Y : 'M[R]_(n, width)) : Prop := forall i, D i -> row i X = row i Y.

Definition keeps_agreement D a b (f : 'M[R]_(n, a) -> 'M[R]_(n, b)) : Prop :=
  forall X Y, agree D X Y -> agree D (f X) (f Y).

Definition closed visible D : Prop := forall i j, D i -> visible i j -> D j.

Lemma agree_mul D a b (X Y : 'M[R]_(n, a)) (W : 'M[R]_(a, b)) i j :
  agree D X Y -> D i -> (X *m W) i j = (Y *m W) i j.
Proof.
move=> same Di; have /rowP /(_ j) : row i (X *m W) = row i (Y *m W) by rewrite !row_mul same.
by rewrite !mxE.
Qed.

Lemma agree_score D width key (Wq Wk : 'M[R]_(width, key)) X Y i j :
  agree D X Y -> D i -> D j -> scores Wq Wk X i j = scores Wq Wk Y i j.
Proof.
have scoreE Z : scores Wq Wk Z i j = \sum_k (Z *m Wq) i k * (Z *m Wk) j k.
  by rewrite mxE; apply: eq_bigr => k _; rewrite [_^T _ _]mxE.
by move=> same Di Dj; rewrite !scoreE; apply: eq_bigr => k _; rewrite !(agree_mul _ _ same).
Qed.

Theorem masked_attention_agrees e width key value (Wq Wk : 'M[R]_(width, key)) (Wv : 'M[R]_(width, value)) visible D :
  closed visible D -> keeps_agreement D (masked_attention e Wq Wk Wv visible).
Proof.
move=> closedD X Y same i Di; apply/rowP => c; rewrite mxE [RHS]mxE mxE [RHS]mxE.
apply: eq_bigr => j _; rewrite mxE [in RHS]mxE; case: ifP => [seen|_]; last by rewrite !mul0r.
have all_same k : visible i k -> scores Wq Wk X i k = scores Wq Wk Y i k.
  by move=> ik; apply: (agree_score _ _ same Di); exact: closedD Di ik.
congr (e _ / _ * _); [exact: all_same | by apply: eq_bigr => k /all_same -> |].
by apply: (agree_mul _ _ same); exact: closedD Di seen.
Qed.

Theorem rows_agree D a b (f : 'rV[R]_a -> 'rV[R]_b) : keeps_agreement D (by_row f).
Proof. by move=> X Y same i Di; apply/rowP => j; rewrite !mxE same. Qed.

Theorem residual_agrees D a (f : 'M[R]_(n, a) -> 'M[R]_(n, a)) :
  keeps_agreement D f -> keeps_agreement D (fun X => X + f X).
Proof.
by move=> fD X Y same i Di; rewrite !linearD /= same // (fD X Y).
Qed.

Theorem stack_agrees D width (layers : seq ('M[R]_(n, width) -> 'M[R]_(n, width))) :
  List.Forall (@keeps_agreement D width width) layers -> keeps_agreement D (stack layers).
Proof. by elim=> //= f rest fD _ IH X Y same; apply/IH/fD. Qed.

(** The transformer of [stack.v], with a mask in each layer. *)
Definition masked_heads width visible (w : weights R width) (X : 'M[R]_(n, width)) : 'M[R]_(n, width) :=
  \sum_h masked_attention (score w) (Wq w h) (Wk w h) (Wv w h) visible X *m Wo w h.

Definition masked_transformer width visible (ws : seq (weights R width)) : 'M[R]_(n, width) -> 'M[R]_(n, width) :=
  stack [seq layer (masked_heads visible w) (norm1 w) (norm2 w) (feed w) | w <- ws].

Theorem masked_transformer_agrees width visible D (ws : seq (weights R width)) :
  closed visible D -> keeps_agreement D (masked_transformer visible ws).
Proof.
move=> closedD; apply: stack_agrees; elim: ws => [|w ws IH] /=; constructor=> // X Y same.
have heads_agree : keeps_agreement D (masked_heads visible w).
  move=> U V sameUV i Di; rewrite !linear_sum /=; apply: eq_bigr => h _.
  by rewrite row_mul [RHS]row_mul (masked_attention_agrees _ _ _ _ closedD sameUV).
rewrite /layer /=; apply: residual_agrees; first exact: rows_agree.
by apply: (residual_agrees (f := masked_heads visible w \o by_row _)) same => U V sameUV; apply/heads_agree/rows_agree.
Qed.

End Agreement.
