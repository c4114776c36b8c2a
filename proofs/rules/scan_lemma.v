(** * scan_dependence: operators that read a window of one dimension by position

    C[b, i] = h i (A[b, -]), where h i reads the entries j in a window w i: j <= i for a cumulative sum, all j for a
    sort, a range of places for a convolution or a pooling.
    - [scan_dependence] (cases 1, 2): moved along b, C moves in the same way; C[b, i] is known where A[b, j] is for
      every j in the window.
    - [cumulative_sum_reads_prefix], [convolution_reads_window]: two operators and their windows.
    - [cumulative_sum_not_determined] (case 3): moved along the dimension, C is not determined.
    - [sorted_values_invariant] (case 3): but the sorted values of a row do not depend on its order.
    - [top_contains_largest]: the indices of largest entries contain that of the largest one.
    - [top_contains_visible] (case 4): if a row has at most k visible entries and all others are smaller, the indices
      of the k largest contain every visible one.
    - [top_cuts_visible] (case 4): with more than k visible entries they do not contain all of them. *)
From Orderproof Require Import preamble fact.
From mathcomp Require Import path finset order.

Section Scan.
Variables (B I J : finType) (V W : Type) (h : I -> tensor J V -> W) (window : I -> J -> bool).

Definition reads_window : Prop :=
  forall i (a a' : tensor J V), (forall j, window i j -> a j = a' j) -> h i a = h i a'.
Definition scan (A : tensor (B * J)%type V) : tensor (B * I)%type W := [ffun x => h x.2 [ffun j => A (x.1, j)]].

Theorem scan_dependence (m : B -> B) known (A A' : tensor (B * J)%type V) :
  reads_window -> fact (fun x => (m x.1, x.2)) known A A' ->
  fact (fun x => (m x.1, x.2)) (fun x => [forall j, window x.2 j ==> known (x.1, j)]) (scan A) (scan A').
Proof.
move=> reads same [b i] /forallP /= window_known; rewrite !ffunE /=; apply: reads => j in_window.
by rewrite !ffunE -(same (b, j)) //; apply: (implyP (window_known j)).
Qed.

End Scan.

Theorem cumulative_sum_reads_prefix (R : ringType) n :
  reads_window (fun (i : 'I_n) (a : tensor 'I_n R) => \sum_(j < n | (j <= i)%N) a j) (fun i j => j <= i)%N.
Proof. by move=> i a a' same; apply: eq_bigr => j /same. Qed.

(** Stride s, padding p in front, dilation d: output o reads place o s - p + k d for each k of the kernel w. A place is
    written with p on the other side, as j + p = o s + k d. *)
Theorem convolution_reads_window (R : ringType) (out size width s p d : nat) (w : 'I_width -> R) :
  reads_window
    (fun (o : 'I_out) (a : tensor 'I_size R) => \sum_(k < width) \sum_(j < size | (j + p == o * s + k * d)%N) w k * a j)
    (fun o j => [exists k : 'I_width, j + p == o * s + k * d]%N).
Proof.
move=> o a a' same; apply: eq_bigr => k _; apply: eq_bigr => j at_k.
by rewrite same //; apply/existsP; exists k.
Qed.

(** The running sums of [1, 2] are [1, 3], of [2, 1] they are [2, 3]. *)
Definition running_sums (a : tensor bool nat) : tensor bool nat :=
  [ffun i => if i then a false + a true else a false]%N.

Theorem cumulative_sum_not_determined :
  exists A A' : tensor bool nat, fact negb (@everywhere _) A A' /\
    forall m, ~ fact m (@everywhere _) (running_sums A) (running_sums A').
Proof.
exists [ffun i : bool => i.+1], [ffun i : bool => (~~ i).+1]; split; first by case=> _; rewrite !ffunE.
by move=> m /(_ false isT); rewrite !ffunE; case: (m false).
Qed.

Theorem sorted_values_invariant (V : eqType) (le : rel V) (a b : seq V) :
  total le -> transitive le -> antisymmetric le -> perm_eq a b -> sort le a = sort le b.
Proof. by move=> total_le trans_le anti_le; move/(perm_sortP total_le trans_le anti_le). Qed.

Section Top.
Variables (disp : unit) (V : orderType disp) (J : finType) (a : tensor J V) (visible : {set J}).
Import Order.Theory.

(** A set of indices of largest entries: none outside is larger than one inside. *)
Definition is_top (top : {set J}) : Prop := forall i j, i \in top -> j \notin top -> (a j <= a i)%O.

Theorem top_contains_largest (top : {set J}) i0 :
  is_top top -> i0 \in top -> exists2 j, j \in top & forall k, (a k <= a j)%O.
Proof.
move=> ranked in0; case: (@Order.TotalTheory.arg_maxP _ _ _ i0 (mem top) a in0) => j jin largest.
by exists j => // k; case: (boolP (k \in top)) => [/largest|/(ranked _ _ jin)].
Qed.

Theorem top_contains_visible (top : {set J}) :
  (forall i j, i \in visible -> j \notin visible -> (a j < a i)%O) ->
  (#|visible| <= #|top|)%N -> is_top top -> visible \subset top.
Proof.
move=> larger few top_largest; apply/subsetP => j vis_j; apply: contraT => not_top.
have inside : top \subset visible :\ j.
  apply/subsetP => i top_i; rewrite !inE (contraNneq _ not_top) => [|<-] //=.
  by apply: contraT => hidden_i; move: (top_largest i j top_i not_top); rewrite leNgt larger.
have := leq_trans few (subset_leq_card inside).
by rewrite (cardsD1 j visible) vis_j ltnn.
Qed.

Theorem top_cuts_visible (top : {set J}) : (#|top| < #|visible|)%N -> ~~ (visible \subset top).
Proof. by move=> few; apply: contraL few => /subset_leq_card; rewrite leqNgt. Qed.

End Top.
