(** * The steps of a theorem about every length: where two runs agree

    For an open graph, the prover derives a condition on the indices of a tensor under which both runs have the same
    element: [agree_where same A A']. The set of indices stands for any sizes. Each step is one operator.
    - [implication_step]: a weaker fact follows. This is the question that the solver answers.
    - [pointwise_step]: the result agrees where all operands do.
    - [product_step]: a product agrees, too, where one factor is zero in both runs.
    - [where_step]: a selection agrees where the chosen operand does, if the condition is the same in both runs.
    - [contraction_step]: a sum of products agrees where each product does: both factors agree, or one is zero in
      both.
    - [reduction_step], [sum_step]: a function of a row agrees where the whole row does; a sum also where the elements
      that differ are zero in both runs.
    - [lookup_known_step]: an element chosen by a known index agrees where the operand does at that index.
    - [lookup_any_step]: if the index is not known, all elements that it may choose have to agree.
    - [piecewise_step]: concatenation, padding, a triangle, a replaced part: the element comes from one of two
      tensors, as a condition on its index says.
    - [normalization_step]: an element agrees where its whole row and the weights do.
    - [branch_step]: a branch on a value that is the same in both runs: each side is proved.
    - [whole_count_step]: mask.sum() == mask.numel() says that every element is true. *)
From Orderproof Require Import preamble fact contraction_lemma reduction_lemma.

Section Steps.
Variables (I J K : finType) (V W : Type).

Definition agree_where (L : finType) (U : Type) (same : L -> bool) (A A' : tensor L U) : Prop := fact id same A A'.

Theorem implication_step (same same' : I -> bool) (A A' : tensor I V) :
  (forall i, same' i -> same i) -> agree_where same A A' -> agree_where same' A A'.
Proof. exact: fact_weaken. Qed.

Theorem pointwise_step (U : Type) (h : V -> W -> U) (same1 same2 : I -> bool)
    (A A' : tensor I V) (B B' : tensor I W) :
  agree_where same1 A A' -> agree_where same2 B B' ->
  agree_where (fun i => same1 i && same2 i) [ffun i => h (A i) (B i)] [ffun i => h (A' i) (B' i)].
Proof. by move=> sameA sameB i /andP[s1 s2]; rewrite !ffunE [A' _]sameA // [B' _]sameB. Qed.

Theorem where_step (condition : tensor I bool) (same1 same2 : I -> bool) (A A' B B' : tensor I V) :
  agree_where same1 A A' -> agree_where same2 B B' ->
  agree_where (fun i => if condition i then same1 i else same2 i)
    [ffun i => if condition i then A i else B i] [ffun i => if condition i then A' i else B' i].
Proof. by move=> sameA sameB i; rewrite !ffunE /=; case: (condition i) => [/sameA|/sameB]. Qed.

Theorem lookup_known_step (index : I -> J) (same : J -> bool) (A A' : tensor J V) :
  agree_where same A A' -> agree_where (fun i => same (index i)) [ffun i => A (index i)] [ffun i => A' (index i)].
Proof. by move=> sameA i s; rewrite !ffunE [A' _]sameA. Qed.

Theorem lookup_any_step (same : J -> bool) (same_index : I -> bool) (may : I -> J -> bool)
    (A A' : tensor J V) (index index' : tensor I J) :
  agree_where same A A' -> agree_where same_index index index' -> (forall i, may i (index i)) ->
  agree_where (fun i => same_index i && [forall j, may i j ==> same j])
    [ffun i => A (index i)] [ffun i => A' (index' i)].
Proof.
move=> sameA sameK in_range i /andP[sk /forallP all_same]; rewrite !ffunE [index' _]sameK //=.
by apply: sameA; apply: (implyP (all_same _)).
Qed.

Theorem piecewise_step (from_first : I -> bool) (first : I -> J) (second : I -> K)
    (same1 : J -> bool) (same2 : K -> bool)
    (A A' : tensor J V) (B B' : tensor K V) :
  agree_where same1 A A' -> agree_where same2 B B' ->
  agree_where (fun i => if from_first i then same1 (first i) else same2 (second i))
    [ffun i => if from_first i then A (first i) else B (second i)]
    [ffun i => if from_first i then A' (first i) else B' (second i)].
Proof. by move=> sameA sameB i; rewrite !ffunE /=; case: (from_first i) => [/sameA|/sameB]. Qed.

Theorem reduction_step (h : tensor J V -> W) (same : I * J -> bool) (A A' : tensor (I * J)%type V) :
  agree_where same A A' ->
  agree_where (fun i => [forall j, same (i, j)]) (reduction h A) (reduction h A').
Proof.
move=> sameA i /forallP all_same; rewrite !ffunE; congr (h _).
by apply/ffunP => j; rewrite !ffunE [A' _]sameA.
Qed.

Theorem normalization_step (U : Type) (h : tensor J V -> J -> W -> U) (same : I * J -> bool) (same_weight : J -> bool)
    (A A' : tensor (I * J)%type V) (w w' : tensor J W) :
  agree_where same A A' -> agree_where same_weight w w' ->
  agree_where (fun x => [forall j, same (x.1, j)] && same_weight x.2)
    [ffun x => h (row_of A x.1) x.2 (w x.2)] [ffun x => h (row_of A' x.1) x.2 (w' x.2)].
Proof.
move=> sameA sameW [i j] /= /andP[/forallP all_same sw]; rewrite !ffunE /= [w' _]sameW //; congr (h _ _ _).
by apply/ffunP => k; rewrite !ffunE [A' _]sameA.
Qed.

(** Both runs take the same side, because the condition is the same in both. *)
Theorem branch_step (condition : bool) (same : I -> bool) (A A' B B' : tensor I V) :
  (condition -> agree_where same A A') -> (~~ condition -> agree_where same B B') ->
  agree_where same (if condition then A else B) (if condition then A' else B').
Proof. by case: condition => [/(_ isT)|_ /(_ isT)]. Qed.

Theorem whole_count_step (mask : tensor I bool) : (\sum_i mask i == #|I|)%N <-> forall i, mask i.
Proof.
have -> : (\sum_i mask i = #|[pred i | mask i]|)%N.
  by rewrite -sum1_card [RHS]big_mkcond; apply: eq_bigr => i _; rewrite inE; case: (mask i).
rewrite -(cardC [pred i | mask i]) -[X in X == _]addn0 eqn_add2l; split=> [/eqP/esym/card0_eq none i|all_true].
  by have := none i; rewrite !inE => /negbFE.
by rewrite eq_sym; apply/eqP/eq_card0 => i; rewrite !inE all_true.
Qed.

End Steps.

Section Arithmetic.
Variables (R : ringType) (I J : finType) (B L M K : finType).

Definition agree_or_zero (same : I -> bool) (A A' : tensor I R) i := same i || (A i == 0) && (A' i == 0).

Theorem product_step (same1 same2 : I -> bool) (A A' D D' : tensor I R) :
  agree_where same1 A A' -> agree_where same2 D D' ->
  agree_where (fun i => same1 i && same2 i || (A i == 0) && (A' i == 0) || (D i == 0) && (D' i == 0))
    [ffun i => A i * D i] [ffun i => A' i * D' i].
Proof.
move=> sameA sameD i /=; rewrite !ffunE => /orP[/orP[/andP[s1 s2]|/andP[/eqP -> /eqP ->]]|/andP[/eqP -> /eqP ->]].
- by rewrite [A' _]sameA // [D' _]sameD.
- by rewrite !mul0r.
by rewrite !mulr0.
Qed.

Theorem contraction_step same1 same2 (A A' : tensor (B * L * M)%type R) (D D' : tensor (B * M * K)%type R) :
  agree_where same1 A A' -> agree_where same2 D D' ->
  agree_where (fun x => [forall j, same1 (x.1.1, x.1.2, j) && same2 (x.1.1, j, x.2)
      || (A (x.1.1, x.1.2, j) == 0) && (A' (x.1.1, x.1.2, j) == 0)
      || (D (x.1.1, j, x.2) == 0) && (D' (x.1.1, j, x.2) == 0)])
    (contraction A D) (contraction A' D').
Proof.
move=> sameA sameD [[b i] k] /forallP /= terms; rewrite !ffunE; apply: eq_bigr => j _ /=.
case/orP: (terms j) => [/orP[/andP[s1 s2]|/andP[/eqP -> /eqP ->]]|/andP[/eqP -> /eqP ->]].
- by rewrite [A' _]sameA // [D' _]sameD.
- by rewrite !mul0r.
by rewrite !mulr0.
Qed.

Theorem sum_step same (A A' : tensor (I * J)%type R) :
  agree_where same A A' ->
  agree_where (fun i => [forall j, same (i, j) || (A (i, j) == 0) && (A' (i, j) == 0)])
    [ffun i => \sum_j A (i, j)] [ffun i => \sum_j A' (i, j)].
Proof.
move=> sameA i /forallP terms; rewrite !ffunE; apply: eq_bigr => j _.
by case/orP: (terms j) => [s|/andP[/eqP -> /eqP ->]]; rewrite // [A' _]sameA.
Qed.

End Arithmetic.
