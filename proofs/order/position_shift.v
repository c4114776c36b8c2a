(** * Relative encodings do not see a shift of all positions

    Attention reads position ids through a score function: [score q k m n] for query q at position m and key k at n.
    - [relative_attention_shift]: if the score depends on m - n alone, shifting all position ids by one number changes
      nothing. It holds for every mask, and for values that depend on n - m as well (relative values).
    - [positions_permuted_with_tokens]: whatever the score, permuting tokens and position ids together permutes the
      output in the same way. *)
From Orderproof Require Import preamble.

Section Shift.
Variables (F : fieldType) (position : zmodType) (token : Type) (n : nat) (e : F -> F).
Variables (score : token -> token -> position -> position -> F).
Variables (value : token -> position -> F).
Implicit Types (x : 'I_n -> token) (p : 'I_n -> position) (visible : 'I_n -> 'I_n -> bool) (s : 'S_n).

(** One entry of the output at token i. A value may depend on the distance from query to key. *)
Definition attention_at visible x p i : F :=
  \sum_(j | visible i j) e (score (x i) (x j) (p i) (p j)) /
    (\sum_(k | visible i k) e (score (x i) (x k) (p i) (p k))) * value (x j) (p j - p i).

Theorem relative_attention_shift visible x p shift i :
  (forall q k m n' a, score q k (m + a) (n' + a) = score q k m n') ->
  attention_at visible x (fun j => p j + shift) i = attention_at visible x p i.
Proof.
move=> relative; apply: eq_bigr => j _; rewrite relative opprD addrACA subrr addr0.
by under eq_bigr do rewrite relative.
Qed.

Theorem positions_permuted_with_tokens visible x p s i :
  attention_at (fun i j => visible (s i) (s j)) (x \o s) (p \o s) i = attention_at visible x p (s i).
Proof.
rewrite /attention_at [RHS](reindex_inj (@perm_inj _ s)); apply: eq_bigr => j _ /=.
by rewrite [in RHS](reindex_inj (@perm_inj _ s)).
Qed.

End Shift.
