(** * Induction over layers, and over the iterations of a loop

    A layer computes the next token states from the states, its own parameters and tensors that all layers share. F is
    a relation of the states of two runs, such as "equal before t" or "permuted by p".
    - [depth_induction]: if F holds of what enters the first layer, and each layer maps states in relation F to states
      in relation F, then F holds after any number of layers, in any order and with any parameters.
    - [depth_induction_weaken]: it is enough that each layer maps F to a relation G that implies F.

    Iteration i of a loop maps the states at its begin to those at the begin of the next. F i is a relation of the
    states of two runs at the begin of iteration i. If F 0 holds of what enters the loop, and each iteration i < n maps
    states in relation F i to states in relation F (i + 1), then
    - [loop_induction]: F n holds of what leaves the loop;
    - [loop_values]: F i holds at the begin of every iteration i < n, so that what follows from it holds there. *)
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

Section Loop.
Variables (state : Type) (body body' : nat -> state -> state) (F : nat -> state -> state -> Prop).

Fixpoint iterate (step : nat -> state -> state) (n : nat) (x : state) : state :=
  if n is i.+1 then step i (iterate step i x) else x.

Theorem loop_induction n x x' :
  (forall i y y', i < n -> F i y y' -> F i.+1 (body i y) (body' i y')) -> F 0 x x' ->
  F n (iterate body n x) (iterate body' n x').
Proof.
elim: n => [|n IH] /= kept start; first by [].
apply: (kept); first exact: ltnSn.
by apply: IH => // i y y' small; apply: (kept); apply: leqW.
Qed.

Theorem loop_values n i x x' :
  (forall j y y', j < n -> F j y y' -> F j.+1 (body j y) (body' j y')) -> F 0 x x' -> i < n ->
  F i (iterate body i x) (iterate body' i x').
Proof.
move=> kept start small; apply: loop_induction => // j y y' before.
by apply: kept; apply: ltn_trans small.
Qed.

End Loop.
