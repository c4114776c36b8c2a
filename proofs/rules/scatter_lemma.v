(** * dense_dependence, for writes: values written at indices

    C is A, with B j written at index K j of each row, for every j: scatter, index_put, index_add, masked caches.
    Which of several values written at one place is last is decided by a fixed function [last_of] of the indices.
    - [write_dependence]: the row of C is known at i if A is known there, and all indices and written values of the row
      are. The rows move by any map.
    - [write_is_a_copy] (case 4): every element of C is one of A or of B.
    - [write_of_own_scores]: scores written at their own indices are the scores there.
    - [write_covers] (case 5): if v is written at indices that contain i, then C i = v.
    - [reduced_writes_in_any_order]: if the values written at one place are added, multiplied or compared, they may come
      in any order together with their indices. *)
From Orderproof Require Import preamble fact.

Section Write.
Variables (Row I J : finType) (V : Type) (last_of : tensor J I -> I -> option J).
Hypothesis last_of_some : forall K i j, last_of K i = Some j -> K j = i.
Hypothesis last_of_none : forall K i, last_of K i = None -> forall j, K j != i.
Implicit Types (A : tensor (Row * I)%type V) (K : tensor (Row * J)%type I) (B : tensor (Row * J)%type V).

Definition indices_of K r : tensor J I := [ffun j => K (r, j)].
Definition write A K B : tensor (Row * I)%type V :=
  [ffun x => if last_of (indices_of K x.1) x.2 is Some j then B (x.1, j) else A x].

Theorem write_dependence (m : Row -> Row) knownA knownK knownB A A' K K' B B' :
  fact (fun x => (m x.1, x.2)) knownA A A' -> fact (fun x => (m x.1, x.2)) knownK K K' ->
  fact (fun x => (m x.1, x.2)) knownB B B' ->
  fact (fun x => (m x.1, x.2)) (fun x => knownA x && [forall j, knownK (x.1, j) && knownB (x.1, j)])
    (write A K B) (write A' K' B').
Proof.
move=> sameA sameK sameB [r i] /= /andP[knA /forallP kn]; rewrite !ffunE /=.
have -> : indices_of K' (m r) = indices_of K r.
  by apply/ffunP => j; rewrite !ffunE -(sameK (r, j)) //; have /andP[] := kn j.
case: last_of => [j|]; last by rewrite -(sameA (r, i)).
by rewrite -(sameB (r, j)) //; have /andP[] := kn j.
Qed.

Theorem write_is_a_copy A K B x : (exists y, write A K B x = A y) \/ exists y, write A K B x = B y.
Proof. by rewrite ffunE; case: last_of => [j|]; [right; exists (x.1, j) | left; exists x]. Qed.

Theorem write_of_own_scores A K B S r i :
  (forall j, B (r, j) = S (r, K (r, j))) -> write A K B (r, i) = A (r, i) \/ write A K B (r, i) = S (r, i).
Proof.
move=> own; rewrite ffunE /=; case E: last_of => [j|]; last by left.
by right; rewrite own; have := last_of_some E; rewrite ffunE => ->.
Qed.

Theorem write_covers A K B v r i :
  (forall j, B (r, j) = v) -> (exists j, K (r, j) = i) -> write A K B (r, i) = v.
Proof.
move=> all_v [j at_i]; rewrite ffunE /=; case E: last_of => [k|]; first exact: all_v.
by have := last_of_none E j; rewrite ffunE at_i eqxx.
Qed.

End Write.

(** The values that are written at one place are put together by an operation whose order does not matter. *)
Section Reduced.
Variables (I J : finType) (V : Type) (zero : V) (op : Monoid.com_law zero).

Definition reduced_write (A : tensor I V) (K : tensor J I) (B : tensor J V) : tensor I V :=
  [ffun i => op (A i) (\big[op/zero]_(j | K j == i) B j)].

Theorem reduced_writes_in_any_order (p : {perm J}) (A A' : tensor I V) (K K' : tensor J I) (B B' : tensor J V) :
  fact id (@everywhere _) A A' -> fact p (@everywhere _) K K' -> fact p (@everywhere _) B B' ->
  fact id (@everywhere _) (reduced_write A K B) (reduced_write A' K' B').
Proof.
move=> sameA sameK sameB i _; rewrite !ffunE -(sameA i) //; congr (op _ _).
rewrite (reindex_inj (@perm_inj _ p)) /=.
by apply: eq_big => [j | j _]; rewrite ?sameK ?sameB.
Qed.

End Reduced.
