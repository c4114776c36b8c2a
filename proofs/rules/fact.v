(** * Facts: relations between two runs

    A tensor has a finite set I of indices, often a product of dimensions, and a value at each. The graph is run
    twice, and a tensor is A in the first run and A' in the second. [fact m known A A'] is the relation that the
    prover derives:

      A' (m i) = A i   for every index i with [known i].

    The map m says where elements moved; the identity says "not at all". For a law about permutations, [known] holds
    everywhere or nowhere; for a law about a cut, it holds of the elements whose dependence is below the cut.
    - [fact_weaken]: a fact with fewer known elements follows.
    - [fact_constant] (same_in_both_runs): a value that depends on no input is the same in both runs.
    - [fact_given] (given): the relation of the inputs is assumed, so it holds.
    - [fact_part] (part_of_a_tuple): one of two results of an operator has the fact of the pair.
    - [fact_pure] (pure_function_of_unmoved): if an operand is the same in both runs, so is every function of it. *)
From Orderproof Require Import preamble.

Notation tensor I V := {ffun I -> V}.

Section Fact.
Variables (I : finType) (V : Type).
Implicit Types (m : I -> I) (known : I -> bool) (A : tensor I V).

Definition fact m known A A' : Prop := forall i, known i -> A' (m i) = A i.

Definition everywhere : I -> bool := fun _ => true.

Theorem fact_given m known A A' : (forall i, known i -> A' (m i) = A i) -> fact m known A A'.
Proof. by []. Qed.

Theorem fact_weaken m known known' A A' :
  (forall i, known' i -> known i) -> fact m known A A' -> fact m known' A A'.
Proof. by move=> fewer same i /fewer; apply: same. Qed.

Theorem fact_constant known A : fact id known A A.
Proof. by []. Qed.

End Fact.

Theorem fact_part (I : finType) (V W : Type) (m : I -> I) known (A A' : tensor I (V * W)) :
  fact m known A A' -> fact m known [ffun i => (A i).1] [ffun i => (A' i).1].
Proof. by move=> same i known_i; rewrite !ffunE same. Qed.

Theorem fact_pure (I J : finType) (V W : Type) (F : tensor I V -> tensor J W) (A A' : tensor I V) :
  fact id (@everywhere I) A A' -> fact id (@everywhere J) (F A) (F A').
Proof. by move=> same j _; congr (F _ j); apply/ffunP => i; apply: same. Qed.
