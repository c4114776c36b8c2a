(** * Packing: a document does not depend on its neighbours

    [document i] is the number of the document of token i, in any layout: documents of any lengths, interleaved or not.
    - [packing]: if tokens see only tokens of their own document, outputs of document d depend on its tokens alone.
    - [causal_packing]: with a causal mask as well, outputs of document d before t depend on its tokens before t alone.
    The rows of a batch are such documents: a row does not depend on the others. *)
From Orderproof Require Import preamble softmax attention masked_attention rows stack agreement.

Section Packing.
Variables (R : fieldType) (n width : nat) (document : 'I_n -> nat) (ws : seq (weights R width)).
Implicit Types (visible : 'I_n -> 'I_n -> bool) (X Y : 'M[R]_(n, width)) (d t : nat).

Definition in_document d i := document i == d.
Definition in_document_before d t i := in_document d i && (i < t)%N.

Theorem packing visible d X Y :
  (forall i j, visible i j -> document i = document j) ->
  agree (in_document d) X Y ->
  agree (in_document d) (masked_transformer visible ws X) (masked_transformer visible ws Y).
Proof. by move=> own; apply: masked_transformer_agrees => i j /eqP <- /own ->; rewrite /in_document. Qed.

Theorem causal_packing visible d t X Y :
  (forall i j, visible i j -> document i = document j /\ (j <= i)%N) ->
  agree (in_document_before d t) X Y ->
  agree (in_document_before d t) (masked_transformer visible ws X) (masked_transformer visible ws Y).
Proof.
move=> own; apply: masked_transformer_agrees => i j /andP[/eqP <- i_t] /own[-> j_i].
by rewrite /in_document_before /in_document eqxx (leq_ltn_trans j_i i_t).
Qed.

End Packing.
