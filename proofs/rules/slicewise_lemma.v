(** * dense_dependence: every slice of the result is one function of the same slice of the operands

    C[b, e] = h e (A[b, -], D[b, -], D2[b, e]): Fourier transforms, writes at fixed places, parts of complex numbers.
    - [dense_dependence] (cases 1, 2): operands moved along b in the same way give C moved along b. C[b, e] is known
      where the slices A[b, -] and the element D[b, e] are.
    - [transform_not_determined] (case 3): the transform of [1, 0] is [1, 1], that of [0, 1] is [1, -1]. *)
From mathcomp Require Import ssrint.
From Orderproof Require Import preamble fact.

Section Slicewise.
Variables (B E J : finType) (V U W : Type) (h : E -> tensor J V -> U -> W).

Definition slicewise (A : tensor (B * J)%type V) (D : tensor (B * E)%type U) : tensor (B * E)%type W :=
  [ffun x => h x.2 [ffun j => A (x.1, j)] (D x)].

Theorem dense_dependence (m : B -> B) knownA knownD (A A' : tensor (B * J)%type V) (D D' : tensor (B * E)%type U) :
  fact (fun x => (m x.1, x.2)) knownA A A' -> fact (fun x => (m x.1, x.2)) knownD D D' ->
  fact (fun x => (m x.1, x.2)) (fun x => [forall j, knownA (x.1, j)] && knownD x) (slicewise A D) (slicewise A' D').
Proof.
move=> sameA sameD [b e] /= /andP[/forallP knA knD]; rewrite !ffunE /= -(sameD (b, e)) //; congr (h e _ _).
by apply/ffunP => j; rewrite !ffunE -(sameA (b, j)).
Qed.

End Slicewise.

(** The Fourier transform of two numbers: their sum and their difference. *)
Definition transform (a : tensor bool int) : tensor bool int :=
  [ffun e => if e then a false - a true else a false + a true].

Theorem transform_not_determined :
  exists A A' : tensor bool int, fact negb (@everywhere _) A A' /\
    forall m : {perm bool}, ~ fact m (@everywhere _) (transform A) (transform A').
Proof.
exists [ffun i : bool => (~~ i : nat)%:Z], [ffun i : bool => (i : nat)%:Z]; split.
  by case=> _; rewrite !ffunE.
move=> m same; have all_one i : m i = false.
  by move: (same i isT); rewrite !ffunE; case: (m i); case: i.
by have := @perm_inj _ m true false; rewrite !all_one => /(_ erefl).
Qed.
