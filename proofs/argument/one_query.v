(** * One query does not depend on the order of the prompt

    A decoder is read at its last token.
    - [last_token_ignores_order]: with one layer, and any mask that hides nothing from the last token, the output at
      the last token is the same for every order of the tokens before it.
    - [last_token_of_causal_mask]: a causal mask is such a mask.
    - [prompt_invariant]: without a mask, the same holds for any number of layers. *)
From Orderproof Require Import preamble softmax attention masked_attention rows stack.

Section OneQuery.
Variables (R : fieldType) (e : R -> R) (n width key value : nat).
Variables (Wq Wk : 'M[R]_(width, key)) (Wv : 'M[R]_(width, value)).
Notation last := (@ord_max n).

Theorem last_token_ignores_order (visible : 'I_n.+1 -> 'I_n.+1 -> bool) (s : 'S_n.+1) (X : 'M[R]_(n.+1, width)) :
  (forall j, visible last j) -> s last = last ->
  row last (masked_attention e Wq Wk Wv visible (P s *m X)) = row last (masked_attention e Wq Wk Wv visible X).
Proof.
move=> all_visible s_last.
have unmask Y : row last (masked_attention e Wq Wk Wv visible Y) = row last (attention e Wq Wk Wv Y).
  by rewrite -attention_without_mask; apply: masked_attention_row => j; rewrite all_visible.
rewrite !unmask attention_equivariant -row_permE.
by apply/rowP => j; rewrite !mxE s_last.
Qed.

Definition causal (i j : 'I_n.+1) : bool := j <= i.

Theorem last_token_of_causal_mask (s : 'S_n.+1) (X : 'M[R]_(n.+1, width)) :
  s last = last ->
  row last (masked_attention e Wq Wk Wv causal (P s *m X)) = row last (masked_attention e Wq Wk Wv causal X).
Proof. by apply: last_token_ignores_order => j; exact: leq_ord. Qed.

Theorem prompt_invariant (ws : seq (weights R width)) (s : 'S_n.+1) (X : 'M[R]_(n.+1, width)) :
  s last = last -> row last (transformer ws (P s *m X)) = row last (transformer ws X).
Proof.
by move=> s_last; rewrite transformer_equivariant -row_permE; apply/rowP => j; rewrite !mxE s_last.
Qed.

End OneQuery.
