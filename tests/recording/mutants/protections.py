"""Mutants of what protects a recording: each removes one check, and a test of recording fails.

`program` is that test. These checks are not here, because the tests of their calls pass without them: another check
refuses the calls, or no test sees the difference.

    writes          a storage that an array shares; a write of constants within a loop
    memory          elements of other sizes
    recorder        operators without torch's tag that give places of data
    view_parts      a slice with steps
    shape_rules     an axis of size one in the order of axes
    python_numbers  a division by a negative size; a value that fixes its sizes
    loop_rolling    not examined
"""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, Mutant, mutants_of

MUTANTS: list[Mutant] = [
    *mutants_of(
        "recording.writes",
        M(
            "write_may_read_its_target",
            "if $reads($recorded, $func, $args, $kwargs): $recorded.$refuse($_why)",
            "if False: $recorded.$refuse($_why)",
            program="test_overlapping_writes.py::test_it_is_not_proved",
        ),
        M(
            "names_may_share_a_written_tensor",
            "if $reason := $recorded.$refusal($alias): $recorded.$refuse($reason)",
            "$reason = ''",
            program="test_shared_memory.py::test_a_write_to_shared_memory_is_refused",
        ),
        M(
            "random_numbers_are_fixed",
            "not $random and all($_every)",
            "all($_every)",
            program="test_values_that_are_not_known.py::test_a_branch_on_it_is_refused_where_the_length_is_open",
        ),
        M(
            "written_constant_keeps_its_values",
            "$alias.$storage.$constant = False",
            "pass",
            program="test_values_that_are_not_known.py::test_a_branch_on_it_is_refused",
        ),
        M(
            "views_keep_what_was_overwritten",
            "$storage.$version += 1",
            "pass",
            program="test_recording.py::test_writes_through_views_give_the_result_of_the_module",
        ),
        M(
            "written_value_keeps_its_dtype",
            "$value.dtype != $target.dtype",
            "False",
            program="test_values_that_are_not_known.py::test_a_write_keeps_the_dtype_of_its_target",
        ),
    ),
    *mutants_of(
        "recording.elements",
        M(
            "elementwise_write_may_read_other_places",
            "$by_element and $geometry($other) == $geometry($target)",
            "$by_element",
            program="test_overlapping_writes.py::test_it_is_not_proved",
        ),
        M(
            "product_may_read_its_target",
            "torch.Tag.pointwise in $func.tags or $_copies",
            "True",
            program="test_overlapping_writes.py::test_it_is_not_proved",
        ),
        M(
            "views_that_overlap_are_apart",
            "bool(torch.isin($_places, $_others).any())",
            "False",
            program="test_overlapping_writes.py::test_it_is_not_proved",
        ),
    ),
    *mutants_of(
        "recording.memory",
        M(
            "watched_memory_may_be_written",
            "if id($alias.$storage) in $self.$watched: return $_why",
            "pass",
            program="test_shared_memory.py::test_a_write_to_shared_memory_is_refused",
        ),
        M(
            "elements_of_a_written_tensor_may_share_memory",
            "$overlaps_itself($tensor) or $tensor.is_shared()",
            "$tensor.is_shared()",
            program="test_shared_memory.py::test_memory_that_changes_without_an_operator_is_noticed",
        ),
        M(
            "written_memory_may_be_used_by_another_name",
            "$overlaps($written.$memory, $memory) and $share($written.$tensor, $tensor)",
            "False",
            program="test_shared_memory.py::test_a_write_to_shared_memory_is_refused",
        ),
        M(
            "values_never_change",
            "$use.$before is not None and not $same($use.$tensor, $use.$before)",
            "False",
            program="test_shared_memory.py::test_memory_that_changes_without_an_operator_is_noticed",
        ),
        M(
            "change_before_a_use_is_not_seen",
            "$use and $changed($use)",
            "False",
            program="test_shared_memory.py::test_memory_that_changes_without_an_operator_is_noticed",
        ),
        M(
            "elements_that_are_not_aligned_are_apart",
            "if int(($starts[0] - $others[0]) % $_size): return True",
            "pass",
            program="test_shared_memory.py::test_a_write_to_shared_memory_is_refused",
        ),
    ),
    *mutants_of(
        "recording.recorder",
        M(
            "layouts_are_not_examined",
            "$hidden($func, $args, $kwargs) or $layout($func, $args)",
            "$hidden($func, $args, $kwargs)",
            program="test_memory_layouts.py::test_no_law_is_proved_where_elements_share_memory",
        ),
        M(
            "values_are_added_at_a_mask",
            "$accumulate or not isinstance($mask, $_kind) or $_dtype or $_values",
            "not isinstance($mask, $_kind) or $_dtype or $_values",
            program="test_writes_at_a_mask.py::test_other_writes_at_a_mask_are_refused",
        ),
        M(
            "each_true_element_has_the_same_values",
            "$values.dim() > $rest or $shape != $x.shape",
            "$shape != $x.shape",
            program="test_writes_at_a_mask.py::test_other_writes_at_a_mask_are_refused",
        ),
        M(
            "number_of_classes_is_known",
            "$name == 'one_hot' and len($args) > 1 and $args[1] > 0",
            "$name == 'one_hot'",
            program="test_one_hot.py::test_a_number_of_classes_that_depends_on_data_is_refused",
        ),
    ),
    *mutants_of(
        "recording.constants",
        M(
            "random_numbers_are_constants",
            "$name in $without or torch.Tag.nondeterministic_seeded in $func.tags",
            "$name in $without",
            program="test_values_that_are_not_known.py::test_a_branch_on_it_is_refused",
        ),
        M(
            "memory_that_was_not_written_is_constant",
            "$name in $without or torch.Tag.nondeterministic_seeded in $func.tags",
            "torch.Tag.nondeterministic_seeded in $func.tags",
            program="test_values_that_are_not_known.py::test_a_branch_on_it_is_refused",
        ),
        M(
            "data_may_be_read",
            "if not all($_constants): $recorded.$refuse($refusal)",
            "pass",
            program="test_values_that_are_not_known.py::test_a_branch_on_it_is_refused",
            quick=True,
        ),
        M(
            "open_sizes_give_constants",
            "$recorded.$in_loop or $open($args, $kwargs)",
            "$recorded.$in_loop",
            program="test_values_that_are_not_known.py",
        ),
    ),
    *mutants_of(
        "recording.recorded_graph",
        M(
            "memory_of_tensors_may_be_exchanged",
            "$tensor.is_meta and $self.$storages.get($_key) is not $found.$storage",
            "False",
            program="test_shared_memory.py::test_memory_that_changes_without_an_operator_is_noticed",
        ),
        M(
            "view_is_not_read_again",
            "$alias.$version != $alias.$storage.$version",
            "False",
            program="test_recording.py::test_writes_through_views_give_the_result_of_the_module",
        ),
        M(
            "memory_that_was_not_written_is_fixed",
            "if 'empty' in $name($func): return False",
            "pass",
            program="test_values_that_are_not_known.py::test_a_branch_on_it_is_refused_where_the_length_is_open",
        ),
        M(
            "chance_is_fixed",
            "$self.$open is None or $func is None or torch.Tag.nondeterministic_seeded in $func.tags",
            "$self.$open is None or $func is None",
            program="test_values_that_are_not_known.py::test_a_branch_on_it_is_refused_where_the_length_is_open",
        ),
    ),
    *mutants_of(
        "recording.view_parts",
        M(
            "windows_have_no_common_elements",
            "if not ($once($one) and $once($other)): return False",
            "pass",
            program="test_overlapping_writes.py::test_it_is_not_proved",
        ),
        M(
            "negative_end_is_counted_from_the_start",
            "$index + 1 if $index != -1 else None",
            "$index + 1",
            program="test_overlapping_writes.py::test_it_is_refused_where_the_length_is_open",
        ),
        M(
            "slice_with_a_start_is_everything",
            "$start in (None, 0) and $_end and $step == 1",
            "$_end and $step == 1",
            program="test_overlapping_writes.py",
        ),
        M(
            "same_operator_gives_the_same_view",
            "$func is $func2 and $place == $place2 and $numbers($a) and $numbers($b) and $a == $b",
            "$func is $func2 and $place == $place2",
            program="test_overlapping_writes.py::test_it_is_refused_where_the_length_is_open",
        ),
    ),
    *mutants_of(
        "recording.views",
        M(
            "permuted_view_is_written_in_its_own_order",
            "[$order.index($d) for $d in range($dims)]",
            "$order",
            program="test_written_views.py",
            quick=True,
        ),
        M(
            "part_of_a_split_begins_at_zero",
            "$start + $sizes[$part]",
            "$sizes[$part]",
            program="test_written_views.py",
        ),
    ),
    *mutants_of(
        "recording.module_tensors",
        M(
            "memory_of_a_parameter_is_not_trained",
            "return $overlaps($storage($tensor), $self.$trained)",
            "return False",
            program="test_shared_memory.py::test_no_part_of_a_parameter_decides",
        ),
    ),
    *mutants_of(
        "recording.memory_layouts",
        M(
            "median_of_an_expanded_tensor",
            "$name in $medians and $func._overloadname.startswith('dim') and $expanded($args[0])",
            "False",
            program="test_memory_layouts.py::test_no_law_is_proved_where_elements_share_memory",
        ),
        M(
            "steps_never_meet",
            "not all($_apart)",
            "False",
            program="test_memory_layouts.py::test_no_law_is_proved_where_elements_share_memory",
        ),
    ),
    *mutants_of(
        "recording.shape_rules",
        M(
            "sizes_that_differ_are_broadcast",
            "if len($others) > 1: return None",
            "pass",
            program="test_shape_rules.py",
        ),
        M(
            "view_of_any_layout",
            "$viewed_sizes($_a, $_b) if $self.$is_contiguous($x) else None",
            "$viewed_sizes($_a, $_b)",
            program="test_shape_rules.py",
        ),
        M(
            "scattered_tensor_may_overlap_itself",
            """
            if $examples is None or 0 in $examples: return None
            return $Layout($_sizes, $_strides, $_dtype, $_offset)
            """,
            "return $Layout($_sizes, $_strides, $_dtype, $_offset)",
            program="test_shape_rules.py",
        ),
    ),
]
