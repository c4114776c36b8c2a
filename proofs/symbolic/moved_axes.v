(** * The steps of a theorem about permutations: which axes move

    Run 2 has token p i where run 1 has token i, for any permutation p. An axis of a tensor is moved (p is applied to
    its index), still (the identity), or free (the tensor is the same for every index along it).
    - [free_axis]: along a free axis, moved and still say the same.
    - [sum_over_moved_axis]: a sum over an axis that is moved in both factors has the same terms in another order: the
      step softmax (P S P^T) P V = P (softmax S) V.
    - [scores_of_moved_tokens], [softmax_of_moved_scores]: P Q (P K)^T = P (Q K^T) P^T, and its softmax.
    - [moved_lookup]: a table of the same values in both runs, read at indices that move, moves with them.
    - [whole_row_function]: a symmetric function of a moved axis removes the axis.
    - [moved_diagonal]: the diagonal of two axes that are moved is moved; [diagonal_of_one_moved_axis]: if only one of
      them is moved, nothing follows.
    - [still_meets_moved]: where a still axis meets one that is moved, nothing follows. *)
From Orderproof Require Import preamble fact contraction_lemma reduction_lemma softmax_lemma lookup_lemma.

Section Axes.
Variables (n : nat) (p : 'S_n) (B I K : finType).

(** A tensor with an axis of tokens and other axes I: which move it has along the tokens. *)
Definition along (m : 'I_n -> 'I_n) (x : 'I_n * I) := (m x.1, x.2).
Definition free_along_tokens (V : Type) (A : tensor ('I_n * I)%type V) : Prop :=
  forall t t' i, A (t, i) = A (t', i).

Theorem free_axis (V : Type) (A A' : tensor ('I_n * I)%type V) :
  free_along_tokens A' -> fact (along p) (@everywhere _) A A' <-> fact (along id) (@everywhere _) A A'.
Proof.
by move=> free; split=> same [t i] _; rewrite -(same (t, i)) //; apply: free.
Qed.

Theorem sum_over_moved_axis (R : ringType) (A A' : tensor (B * I * 'I_n)%type R) (D D' : tensor (B * 'I_n * K)%type R)
    (mi : I -> I) :
  fact (move3 id mi p) (@everywhere _) A A' -> fact (move3 id p id) (@everywhere _) D D' ->
  fact (move3 id mi id) (@everywhere _) (contraction A D) (contraction A' D').
Proof.
move=> sameA sameD x _; apply: (contraction_equivariant sameA sameD).
by apply/forallP => j.
Qed.

Theorem scores_of_moved_tokens (R : ringType) (Q Q' : tensor (B * 'I_n * I)%type R)
    (T T' : tensor (B * I * 'I_n)%type R) :
  fact (move3 id p id) (@everywhere _) Q Q' -> fact (move3 id id p) (@everywhere _) T T' ->
  fact (move3 id p p) (@everywhere _) (contraction Q T) (contraction Q' T').
Proof.
move=> sameQ sameT x _.
have sameQ1 : fact (move3 id p (1%g : {perm I})) (@everywhere _) Q Q'.
  by move=> y _; rewrite /move3 perm1; apply: sameQ.
have sameT1 : fact (move3 id (1%g : {perm I}) p) (@everywhere _) T T'.
  by move=> y _; rewrite /move3 perm1; apply: sameT.
by apply: (contraction_equivariant sameQ1 sameT1); apply/forallP.
Qed.

Theorem softmax_of_moved_scores (R : fieldType) (e : R -> R) (S S' : tensor ('I_n * 'I_n)%type R) :
  fact (fun x => (p x.1, p x.2)) (@everywhere _) S S' ->
  fact (fun x => (p x.1, p x.2)) (@everywhere _) (row_softmax e S) (row_softmax e S').
Proof. by move=> same x _; apply: (softmax_equivariant e same); apply/forallP. Qed.

Theorem moved_lookup (N : finType) (V : Type) (W : tensor (N * I)%type V) (ids ids' : tensor 'I_n N) :
  fact p (@everywhere _) ids ids' -> fact (along p) (@everywhere _) (lookup W ids) (lookup W ids').
Proof. by move=> same [t i] _; rewrite !ffunE /= same. Qed.

Theorem whole_row_function (V W : Type) (h : tensor 'I_n V -> W) (A A' : tensor (I * 'I_n)%type V) :
  symmetric_reduction h -> fact (fun x => (x.1, p x.2)) (@everywhere _) A A' ->
  fact id (@everywhere _) (reduction h A) (reduction h A').
Proof.
by move=> symmetric same i _; apply: (reduction_invariant (mi := id) symmetric same); apply/forallP.
Qed.

Theorem moved_diagonal (V : Type) (S S' : tensor (I * 'I_n * 'I_n)%type V) :
  fact (fun x => (x.1.1, p x.1.2, p x.2)) (@everywhere _) S S' ->
  fact (fun x => (x.1, p x.2)) (@everywhere _) [ffun x => S (x, x.2)] [ffun x => S' (x, x.2)].
Proof. by move=> same [i t] _; rewrite !ffunE /= -(same ((i, t), t)). Qed.

End Axes.

(** Where an axis that is still meets one that is moved, nothing follows: a table of positions [1, 2], added to tokens
    [0, 5] and to tokens [5, 0], gives [1, 7] and [6, 2]. *)
Theorem still_meets_moved :
  exists X X' T : tensor bool nat, fact negb (@everywhere _) X X' /\ fact id (@everywhere _) T T /\
    forall m, ~ fact m (@everywhere _) [ffun i => X i + T i]%N [ffun i => X' i + T i]%N.
Proof.
exists [ffun i : bool => i * 5]%N, [ffun i : bool => (~~ i) * 5]%N, [ffun i : bool => i.+1].
split; first by case=> _; rewrite !ffunE.
by split=> // m /(_ true isT); rewrite !ffunE; case: (m true).
Qed.

(** The diagonal of a matrix whose rows only are moved: [[1, 2], [3, 4]] has [1, 4], [[3, 4], [1, 2]] has [3, 2]. *)
Theorem diagonal_of_one_moved_axis :
  exists S S' : tensor (bool * bool)%type nat, fact (fun x => (~~ x.1, x.2)) (@everywhere _) S S' /\
    forall m, ~ fact m (@everywhere _) [ffun i => S (i, i)] [ffun i => S' (i, i)].
Proof.
exists [ffun x : bool * bool => x.1 * 2 + x.2]%N, [ffun x : bool * bool => (~~ x.1) * 2 + x.2]%N.
split; first by case=> [[] []] _; rewrite !ffunE.
by move=> m /(_ true isT); rewrite !ffunE; case: (m true).
Qed.
