(** * Common notation

    [P s] is the matrix of the permutation s: P s *m X contains the rows of X in another order.
    [(P s)^T] is its transpose, which is its inverse ([perm_transpose]).
    Numbers are elements of a field R, for example the real numbers. [X i j] is the entry in row i and column j. *)
From mathcomp Require Export ssreflect ssrfun ssrbool eqtype ssrnat seq choice fintype finfun bigop perm.
From mathcomp Require Export fingroup ssralg matrix.
Export GRing.Theory.
#[export] Set Implicit Arguments.
#[export] Unset Strict Implicit.
#[export] Unset Printing Implicit Defensive.
Open Scope ring_scope.

Notation P s := (perm_mx s).

Lemma perm_transpose (R : fieldType) n (s : 'S_n) : (P s)^T *m P s = 1%:M :> 'M[R]_n.
Proof. by rewrite tr_perm_mx -perm_mxM mulVg perm_mx1. Qed.
