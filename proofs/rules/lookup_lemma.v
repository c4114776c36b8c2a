(** * lookup_equivariant: a table read at an index follows the index

    C[i, c] = W[K i, c]: embedding, gather, index select.
    - [lookup_equivariant]: if the indices move by m and the table is the same in both runs, C moves by m.
    - [lookup_not_determined]: if the table moves too, C is not determined. *)
From Orderproof Require Import preamble fact.

Section Lookup.
Variables (I N C : finType) (V : Type).

Definition lookup (W : tensor (N * C)%type V) (K : tensor I N) : tensor (I * C)%type V := [ffun x => W (K x.1, x.2)].

Theorem lookup_equivariant (m : I -> I) known known' (W W' : tensor (N * C)%type V) (K K' : tensor I N) :
  fact m known K K' -> fact id known' W W' ->
  fact (fun x => (m x.1, x.2)) (fun x => known x.1 && known' (K x.1, x.2)) (lookup W K) (lookup W' K').
Proof. by move=> sameK sameW [i c] /= /andP[kn kn']; rewrite !ffunE /= sameK // sameW. Qed.

End Lookup.

Theorem lookup_not_determined :
  exists (W W' : tensor (bool * unit)%type nat) (K : tensor unit bool),
    fact (fun x => (~~ x.1, x.2)) (@everywhere _) W W' /\
    forall m, ~ fact m (@everywhere _) (lookup W K) (lookup W' K).
Proof.
exists [ffun x : bool * unit => x.1.+1], [ffun x : bool * unit => (~~ x.1).+1], [ffun _ => true].
split=> [[[] []] _|m /(_ (tt, tt) isT)]; rewrite !ffunE //.
Qed.
