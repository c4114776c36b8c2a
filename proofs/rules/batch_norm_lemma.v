(** * channelwise_equivariant: batch normalization with stored statistics

    C[b, c, x] = (A[b, c, x] - mean c) / deviation c * w c + bias c.
    [channelwise_equivariant]: A moves along batch
    and places by any maps; along the channels by a map that statistics and weights follow (case 2), for example the
    identity. C[b, c, x] is known where A[b, c, x] and channel c of the statistics and weights are (case 3). *)
From Orderproof Require Import preamble fact contraction_lemma.

Section BatchNorm.
Variables (R : fieldType) (B C X : finType).
Implicit Types (A : tensor (B * C * X)%type R) (mean deviation weight bias : tensor C R).

Definition batch_norm A mean deviation weight bias : tensor (B * C * X)%type R :=
  [ffun x => (A x - mean x.1.2) / deviation x.1.2 * weight x.1.2 + bias x.1.2].

Theorem channelwise_equivariant mb mc mx known known1 known2 known3 known4 A A' mean mean' dev dev' w w' b b' :
  fact (move3 mb mc mx) known A A' ->
  fact mc known1 mean mean' -> fact mc known2 dev dev' -> fact mc known3 w w' -> fact mc known4 b b' ->
  fact (move3 mb mc mx) (fun x => [&& known x, known1 x.1.2, known2 x.1.2, known3 x.1.2 & known4 x.1.2])
    (batch_norm A mean dev w b) (batch_norm A' mean' dev' w' b').
Proof.
move=> sameA same1 same2 same3 same4 x /and5P[kn k1 k2 k3 k4].
by rewrite !ffunE /= sameA // same1 // same2 // same3 // same4.
Qed.

End BatchNorm.
