(** * Attention with a mask

    [visible i j] says whether token i may see token j. Hidden keys get weight 0, and the softmax of a row is over its
    visible keys. Without a hidden key it is attention ([attention_without_mask]).
    - [masked_attention_equivariant]: if tokens and mask are permuted together, the output is permuted in the same way.
    - [masked_attention_row]: the output of token i depends on row i of the mask alone.
    A causal mask, permuted, is another mask. So the first theorem says nothing of a causal decoder. *)
From Orderproof Require Import preamble softmax attention.

Section Masked.
Variables (R : fieldType) (e : R -> R).

Definition masked_softmax m n (visible : 'I_m -> 'I_n -> bool) (S : 'M[R]_(m, n)) : 'M[R]_(m, n) :=
  \matrix_(i, j) if visible i j then e (S i j) / \sum_(k | visible i k) e (S i k) else 0.

Variables (n width key value : nat).
Variables (Wq Wk : 'M[R]_(width, key)) (Wv : 'M[R]_(width, value)).
Implicit Types (visible : 'I_n -> 'I_n -> bool) (X : 'M[R]_(n, width)) (s : 'S_n).

Definition masked_attention visible X : 'M[R]_(n, value) :=
  masked_softmax visible (scores Wq Wk X) *m (X *m Wv).

Theorem attention_without_mask X : masked_attention (fun _ _ => true) X = attention e Wq Wk Wv X.
Proof. by congr (_ *m _); apply/matrixP => i j; rewrite !mxE. Qed.

Theorem masked_attention_row visible visible' i X :
  (forall j, visible i j = visible' i j) ->
  row i (masked_attention visible X) = row i (masked_attention visible' X).
Proof.
move=> same; rewrite /masked_attention !row_mul; congr (_ *m _); apply/rowP => j; rewrite !mxE same.
by rewrite (eq_bigl _ _ same).
Qed.

Lemma masked_softmax_perm visible s (S : 'M[R]_n) :
  masked_softmax (fun i j => visible (s i) (s j)) (P s *m S *m (P s)^T) =
  P s *m masked_softmax visible S *m (P s)^T.
Proof.
rewrite tr_perm_mx -!row_permE -!col_permE; apply/matrixP => i j; rewrite !mxE.
under eq_bigr do rewrite !mxE.
by rewrite [in RHS](reindex_inj (@perm_inj _ s)).
Qed.

Theorem masked_attention_equivariant visible s X :
  masked_attention (fun i j => visible (s i) (s j)) (P s *m X) = P s *m masked_attention visible X.
Proof.
rewrite /masked_attention scores_perm masked_softmax_perm -!mulmxA.
by rewrite (mulmxA (P s)^T) perm_transpose mul1mx.
Qed.

End Masked.
