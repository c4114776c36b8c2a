(** * Induction over layers

    A layer computes the next token states from the states, its own parameters and tensors that all layers share. F is
    a relation of the states of two runs, such as "equal before t" or "permuted by p".
    - [depth_induction]: if F holds of what enters the first layer, and each layer maps states in relation F to states
      in relation F, then F holds after any number of layers, in any order and with any parameters.
    - [depth_induction_weaken]: it is enough that each layer maps F to a relation G that implies F. *)
From Orderproof Require Import preamble.

Section Depth.
Variables (state parameters : Type) (layer : parameters -> state -> state) (F : state -> state -> Prop).

Definition run (ps : seq parameters) (x : state) : state := foldl (fun y p => layer p y) x ps.

Theorem depth_induction ps x x' :
  (forall p y y', F y y' -> F (layer p y) (layer p y')) -> F x x' -> F (run ps x) (run ps x').
Proof. by move=> kept; elim: ps x x' => //= p ps IH x x' /(kept p); apply: IH. Qed.

Theorem depth_induction_weaken (G : state -> state -> Prop) ps x x' :
  (forall p y y', F y y' -> G (layer p y) (layer p y')) -> (forall y y', G y y' -> F y y') ->
  F x x' -> F (run ps x) (run ps x').
Proof. by move=> kept weaker; apply: depth_induction => p y y' /(kept p) /weaker. Qed.

End Depth.
