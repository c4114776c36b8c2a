(** * Padding: real tokens do not depend on pads

    [padding]: for every mask of real tokens, if no real token sees a pad, two runs with the same real tokens have the
    same outputs at real tokens. Pads may be in front, behind or between. A causal mask, or any further mask, may hide
    more.
    [key_mask_padding]: a mask that hides the pads from every query is such a mask. *)
From Orderproof Require Import preamble softmax attention masked_attention rows stack agreement.

Section Padding.
Variables (R : fieldType) (n width : nat) (real : 'I_n -> bool) (ws : seq (weights R width)).
Implicit Types (visible : 'I_n -> 'I_n -> bool) (X Y : 'M[R]_(n, width)).

Theorem padding visible X Y :
  (forall i j, real i -> visible i j -> real j) ->
  agree real X Y -> agree real (masked_transformer visible ws X) (masked_transformer visible ws Y).
Proof. by move=> hidden; apply: masked_transformer_agrees. Qed.

(** A key mask hides the pads from every query; a further mask may hide more. *)
Theorem key_mask_padding (further : 'I_n -> 'I_n -> bool) X Y (visible := fun i j => real j && further i j) :
  agree real X Y -> agree real (masked_transformer visible ws X) (masked_transformer visible ws Y).
Proof. by apply: padding => i j _ /andP[]. Qed.

End Padding.
