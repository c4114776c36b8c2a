(** * A stack of layers is permutation-equivariant

    A transformer layer adds attention over normalized rows, and then a feed-forward network of normalized rows.
    [layer_equivariant]: one layer, for any weights, any normalization and any feed-forward function.
    [stack_equivariant]: any number of layers, each of its own kind, by induction.
    [transformer_equivariant]: a transformer, as a list of such layers with the weights of each. *)
From Orderproof Require Import preamble softmax attention heads rows.

Section Stack.
Variables (R : fieldType) (n width : nat).
Notation tokens := 'M[R]_(n, width).
Notation row_map := ('rV[R]_width -> 'rV[R]_width).

Definition layer (mix : tokens -> tokens) (norm1 norm2 feed : row_map) : tokens -> tokens :=
  (fun X => X + by_row (feed \o norm2) X) \o (fun X => X + mix (by_row norm1 X)).

Theorem layer_equivariant mix norm1 norm2 feed :
  equivariant mix -> equivariant (layer mix norm1 norm2 feed).
Proof.
move=> mixP; apply: compose_equivariant.
  exact/residual_equivariant/rows_equivariant.
apply: (residual_equivariant (f := mix \o by_row norm1)).
exact: compose_equivariant mixP (rows_equivariant _).
Qed.

Definition stack (layers : seq (tokens -> tokens)) (X : tokens) : tokens :=
  foldl (fun Y f => f Y) X layers.

Theorem stack_equivariant (layers : seq (tokens -> tokens)) :
  List.Forall (@equivariant R n width width) layers -> equivariant (stack layers).
Proof.
elim=> // f rest fP _ IH s X.
by rewrite /stack /= fP; exact: IH.
Qed.

(** The transformer: each layer has its own heads (weights) and its own row maps. *)
Record weights := Weights {
  count : nat; key : nat; value : nat; score : R -> R;
  Wq : 'I_count -> 'M[R]_(width, key); Wk : 'I_count -> 'M[R]_(width, key);
  Wv : 'I_count -> 'M[R]_(width, value); Wo : 'I_count -> 'M[R]_(value, width);
  norm1 : row_map; norm2 : row_map; feed : row_map }.
Arguments Wq w h : clear implicits.
Arguments Wk w h : clear implicits.
Arguments Wv w h : clear implicits.
Arguments Wo w h : clear implicits.

Definition block (w : weights) : tokens -> tokens :=
  layer (heads (score w) (Wq w) (Wk w) (Wv w) (Wo w)) (norm1 w) (norm2 w) (feed w).

Definition transformer (ws : seq weights) : tokens -> tokens := stack (map block ws).

Theorem transformer_equivariant (ws : seq weights) (s : 'S_n) (X : tokens) :
  transformer ws (P s *m X) = P s *m transformer ws X.
Proof.
apply: stack_equivariant; elim: ws => [|w ws IH] /=; constructor=> //.
exact/layer_equivariant/heads_equivariant.
Qed.

End Stack.
Arguments Wq {R width} w h.
Arguments Wk {R width} w h.
Arguments Wv {R width} w h.
Arguments Wo {R width} w h.
