(** * normalisation_equivariant: normalization over a set of elements

    C[i, :] = h (A[i, :]) w + b, where h subtracts the mean and divides by the deviation (layer norm), or divides by the
    root mean square (RMS norm). [normalizer] has both: [center] and [scale] are symmetric functions of the row, and an
    element becomes (a j - center a) * scale a. The square root and epsilon are in [scale].
    - [normalization_equivariant]: A moves along i by a map, and along the normalized dimension by a permutation; the
      weights move in the same way (case 2), or are uniform. Then C moves in the same way. C[i, j] is known if the whole
      row i is (case 3).
    - [mean_symmetric], [square_symmetric]: mean and mean square are symmetric functions of the row. *)
From Orderproof Require Import preamble fact reduction_lemma.

Section Normalization.
Variables (R : fieldType) (I J : finType) (center scale : tensor J R -> R).
Hypothesis center_symmetric : symmetric_reduction center.
Hypothesis scale_symmetric : symmetric_reduction scale.
Implicit Types (A : tensor (I * J)%type R) (w b : tensor J R).

Definition normalizer (a : tensor J R) j : R := (a j - center a) * scale a.
Definition normalization A w b : tensor (I * J)%type R :=
  [ffun x => normalizer (row_of A x.1) x.2 * w x.2 + b x.2].

Theorem normalization_equivariant (mi : I -> I) (mj : {perm J}) known A A' w w' b b' :
  fact (fun x => (mi x.1, mj x.2)) known A A' ->
  fact mj (@everywhere J) w w' -> fact mj (@everywhere J) b b' ->
  fact (fun x => (mi x.1, mj x.2)) (fun x => [forall j, known (x.1, j)]) (normalization A w b) (normalization A' w' b').
Proof.
move=> same sameW sameB [i j] /forallP /= row_known.
have rowE : [ffun j => row_of A' (mi i) (mj j)] = row_of A i.
  by apply/ffunP => k; rewrite !ffunE -(same (i, k)).
have centerE : center (row_of A' (mi i)) = center (row_of A i) by rewrite -(center_symmetric mj) rowE.
have scaleE : scale (row_of A' (mi i)) = scale (row_of A i) by rewrite -(scale_symmetric mj) rowE.
rewrite ffunE [RHS]ffunE /normalizer /= sameW // sameB // centerE scaleE.
by rewrite ffunE [row_of A i j]ffunE -(same (i, j)).
Qed.

End Normalization.

Theorem mean_symmetric (R : fieldType) (J : finType) :
  symmetric_reduction (fun a : tensor J R => (\sum_j a j) / #|J|%:R).
Proof. by move=> p a; rewrite sum_symmetric. Qed.

Theorem square_symmetric (R : fieldType) (J : finType) (f : R -> R) :
  symmetric_reduction (fun a : tensor J R => f (\sum_j a j ^+ 2)).
Proof.
move=> p a; rewrite [in RHS](reindex_inj (@perm_inj _ p)).
by congr (f _); apply: eq_bigr => j _; rewrite ffunE.
Qed.
