(** * contraction_equivariant: sums of products

    C[b,i,k] is the sum of A[b,i,j] B[b,j,k] over j: matrix products, linear maps, einsum.
    [contraction_equivariant] has cases 1, 2 and 4 in one statement. Each free dimension b, i, k moves by a map, and the
    summed one by a permutation that is the same in both operands. An element is known if each of its terms is: both
    factors are known, or one of them is zero in both runs.
    [contraction_not_determined] (case 3): if only one operand moves along j, C is not determined. *)
From Orderproof Require Import preamble fact.
From mathcomp Require Import ssrint.

Section Contraction.
Variables (R : ringType) (B I J K : finType).

Definition contraction (A : tensor (B * I * J)%type R) (D : tensor (B * J * K)%type R) : tensor (B * I * K)%type R :=
  [ffun x => \sum_j A (x.1.1, x.1.2, j) * D (x.1.1, j, x.2)].

(** The move of three dimensions, each by its own map. *)
Definition move3 (S T U : Type) (m1 : S -> S) (m2 : T -> T) (m3 : U -> U) (x : S * T * U) :=
  (m1 x.1.1, m2 x.1.2, m3 x.2).

Definition zero_in_both (I : finType) (m : I -> I) (A A' : tensor I R) i := (A i == 0) && (A' (m i) == 0).

Theorem contraction_equivariant (mb : B -> B) (mi : I -> I) (mj : {perm J}) (mk : K -> K) knownA knownD A A' D D' :
  fact (move3 mb mi mj) knownA A A' -> fact (move3 mb mj mk) knownD D D' ->
  fact (move3 mb mi mk)
    (fun x => [forall j, knownA (x.1.1, x.1.2, j) && knownD (x.1.1, j, x.2)
       || zero_in_both (move3 mb mi mj) A A' (x.1.1, x.1.2, j) || zero_in_both (move3 mb mj mk) D D' (x.1.1, j, x.2)])
    (contraction A D) (contraction A' D').
Proof.
move=> sameA sameD [[b i] k] /forallP /= terms; rewrite !ffunE /= [LHS](reindex_inj (@perm_inj _ mj)).
apply: eq_bigr => j _; case/orP: (terms j) => [/orP[/andP[knA knD]|/andP[/eqP zA /eqP zA']]|/andP[/eqP zD /eqP zD']].
- by rewrite -(sameA (b, i, j)) // -(sameD (b, j, k)).
- by rewrite zA -[A' _]/(A' (move3 mb mi mj (b, i, j))) zA' !mul0r.
by rewrite zD -[D' _]/(D' (move3 mb mj mk (b, j, k))) zD' !mulr0.
Qed.

End Contraction.

(** [1 2] times the column [1 3] is 7; [2 1] times it is 5. *)
Theorem contraction_not_determined :
  exists (A A' : tensor (unit * unit * bool)%type int) (D : tensor (unit * bool * unit)%type int),
    fact (move3 id id negb) (@everywhere _) A A' /\
    forall m, ~ fact m (@everywhere _) (contraction A D) (contraction A' D).
Proof.
exists [ffun x => if x.2 then 2%:Z else 1], [ffun x => if x.2 then 1 else 2%:Z], [ffun x => if x.1.2 then 3%:Z else 1].
split=> [[[[] []] []]|m /(_ (tt, tt, tt) isT)]; rewrite ?ffunE //.
by rewrite !big_bool /= !ffunE.
Qed.
