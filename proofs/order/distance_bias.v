(** * A bias of |m - n| keeps the reversal and breaks another permutation

    A bias b (m, n) is added to the score of query m and key n (ALiBi: minus a slope times |m - n|).
    - [biased_attention_symmetry]: attention with a bias keeps every permutation s with b (s m, s n) = b (m, n).
    - [distance_reversed]: the distance |m - n| is such a bias for the reversal of the tokens.
    - [reversal_kept]: so attention with any function of the distance as bias cannot tell a sentence from its reverse.
    - [exchange_not_kept]: exchanging the first two of three tokens is not kept, once the bias gives distances 1 and 2
      different weights. *)
From Orderproof Require Import preamble softmax attention rows.

Section Bias.
Variables (R : fieldType) (e : R -> R) (n width key value : nat).
Variables (Wq Wk : 'M[R]_(width, key)) (Wv : 'M[R]_(width, value)).
Implicit Types (B : 'M[R]_n) (X : 'M[R]_(n, width)).

Definition biased_attention B X : 'M[R]_(n, value) := softmax e (scores Wq Wk X + B) *m (X *m Wv).

Theorem biased_attention_symmetry B (s : 'S_n) X :
  (forall i j, B (s i) (s j) = B i j) -> biased_attention B (P s *m X) = P s *m biased_attention B X.
Proof.
move=> kept; have BP : P s *m B *m (P s)^T = B.
  by rewrite tr_perm_mx -row_permE -col_permE; apply/matrixP => i j; rewrite !mxE kept.
rewrite /biased_attention scores_perm -{1}BP -mulmxDl -mulmxDr softmax_perm -!mulmxA.
by rewrite (mulmxA (P s)^T) perm_transpose mul1mx.
Qed.

End Bias.

Section Distance.

(** |i - j|, written with truncated subtraction: one of the two is zero. *)
Definition distance n (i j : 'I_n) : nat := ((i - j) + (j - i))%N.

Definition reversal n : 'S_n := perm (@rev_ord_inj n).

Theorem distance_reversed n (i j : 'I_n) : distance (reversal n i) (reversal n j) = distance i j.
Proof.
rewrite /distance !permE /= addnC.
by congr addn; rewrite subnBA // addnC addnBA // -subnDA subnDr subSS.
Qed.

Theorem reversal_kept (R : fieldType) (e : R -> R) n width key value
    (Wq Wk : 'M[R]_(width, key)) (Wv : 'M[R]_(width, value)) (slope : nat -> R) (X : 'M[R]_(n, width)) :
  biased_attention e Wq Wk Wv (\matrix_(i, j) slope (distance i j)) (P (reversal n) *m X) =
  P (reversal n) *m biased_attention e Wq Wk Wv (\matrix_(i, j) slope (distance i j)) X.
Proof. by apply: biased_attention_symmetry => i j; rewrite !mxE distance_reversed. Qed.

Theorem exchange_not_kept (R : fieldType) (e : R -> R) (slope : nat -> R) :
  e (slope 1%N) != e (slope 2%N) -> e (slope 2%N) + e (slope 1%N) + e (slope 0%N) != 0 ->
  ~ equivariant (biased_attention e 0 (0 : 'cV_1) 1%:M (\matrix_(i < 3, j < 3) slope (distance i j))).
Proof.
move=> differ total equal.
pose last : 'I_3 := lift ord0 (lift ord0 ord0); pose second : 'I_3 := lift ord0 ord0.
have := equal (tperm ord0 second) (delta_mx ord0 ord0).
rewrite -!row_permE => /matrixP /(_ last ord0).
rewrite /biased_attention /scores !mulmx0 !mul0mx !add0r !mulmx1 !mxE.
have entry (k : 'I_3) : row_perm (tperm ord0 second) (delta_mx ord0 ord0) k ord0 =
    (tperm ord0 second k == ord0)%:R :> R by rewrite !mxE andbT.
rewrite !big_ord_recl !big_ord0 !entry !permE /= !(mxE, big_ord_recl, big_ord0) /=.
rewrite !(mulr0, mulr1, addr0, add0r) addrA => /(mulIf _) same.
by move: differ; rewrite same ?eqxx // invr_eq0.
Qed.

End Distance.
