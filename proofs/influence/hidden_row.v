(** * A row that is hidden throughout, and why the statements speak of real tokens

    Programs hide a key by a score m, such as -inf or the least finite number, instead of leaving it out:
    [filled_attention].
    - [filled_is_masked]: if e m = 0 (as for -inf), this is attention with a mask.
    - [hidden_row_is_zero]: then a row without visible keys is zero (0 / 0 is 0 here, and NaN in torch, unless the
      softmax is a safe one).
    - [hidden_row_is_mean]: if e m is not 0, as for a finite m, the softmax of a row that is hidden throughout is
      uniform: the output is the mean of all values, hidden or not.
    - [hidden_row_sees_hidden_tokens]: so it depends on hidden tokens, and a statement about pads cannot include pads
      as queries. Their outputs are read by no real token ([padding]). *)
From Orderproof Require Import preamble softmax attention masked_attention.

Section Hidden.
Variables (R : fieldType) (e : R -> R) (hide : R) (n width key value : nat).
Implicit Types (visible : 'I_n -> 'I_n -> bool) (S : 'M[R]_n) (V : 'M[R]_(n, value)).

Definition filled visible S : 'M[R]_n := \matrix_(i, j) if visible i j then S i j else hide.
Definition filled_attention visible S V : 'M[R]_(n, value) := softmax e (filled visible S) *m V.

Theorem filled_is_masked visible S V :
  e hide = 0 -> filled_attention visible S V = masked_softmax e visible S *m V.
Proof.
move=> hidden; congr (_ *m _); apply/matrixP => i j; rewrite !mxE.
have -> : \sum_k e (filled visible S i k) = \sum_(k | visible i k) e (S i k).
  by rewrite [RHS]big_mkcond; apply: eq_bigr => k _; rewrite mxE; case: ifP.
by case: ifP; rewrite // hidden mul0r.
Qed.

Theorem hidden_row_is_zero visible S V i :
  (forall j, ~~ visible i j) -> row i (masked_softmax e visible S *m V) = 0.
Proof.
move=> none; rewrite row_mul (_ : row i _ = 0) ?mul0mx //.
by apply/rowP => j; rewrite !mxE (negPf (none j)).
Qed.

Theorem hidden_row_is_mean visible S V i c :
  e hide != 0 -> (forall j, ~~ visible i j) ->
  filled_attention visible S V i c = \sum_j V j c / n%:R.
Proof.
move=> seen none; rewrite mxE; apply: eq_bigr => j _; rewrite mxE.
have filledE k : filled visible S i k = hide by rewrite mxE (negPf (none k)).
rewrite filledE; under eq_bigr do rewrite filledE.
by rewrite sumr_const card_ord -[in LHS]mulr_natr invfM mulrA mulfV // mul1r mulrC.
Qed.

Theorem hidden_row_sees_hidden_tokens visible S i (j : 'I_n) (c : 'I_value) :
  e hide != 0 -> (n%:R : R) != 0 -> (forall k, ~~ visible i k) ->
  exists V V', (forall k, k != j -> row k V = row k V') /\
    filled_attention visible S V i c <> filled_attention visible S V' i c.
Proof.
move=> seen positive none; exists 0, (delta_mx j c); split.
  by move=> k /negPf k_j; apply/rowP => b; rewrite !mxE k_j.
rewrite !hidden_row_is_mean // big1 => [|k _]; last by rewrite mxE mul0r.
rewrite (bigD1 j) //= big1 => [|k /negPf k_j]; last by rewrite mxE k_j mul0r.
by rewrite mxE !eqxx addr0 mul1r => /esym /eqP; rewrite invr_eq0 (negPf positive).
Qed.

End Hidden.
