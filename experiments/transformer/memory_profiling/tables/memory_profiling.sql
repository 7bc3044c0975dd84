-- title: Peak memory
-- caption: Peak live memory of a pass by the allocator, and its composition at that moment.
-- about predicted: `predicted` is calculated from this implementation's tensors.
-- about framework: `baseline` is calculated for the hand-out's model in PyTorch eager mode with its AdamW, and was not
--   run here.
-- experiment: memory_profiling
-- fills: b
-- columns: model|1|s|left; batch?|1|d|right; context|1|d|right; precision|1|s|left; pass|1|s|left;
--   implementation|1|code|left; peak|MiB|.5g|right; parameters|MiB|.4g|right; gradients|MiB|.4g|right;
--   optimizer|MiB|.4g|right; saved|MiB|.4g|right; temporaries|MiB|.3g|right; others?|MiB|.2g|right;
--   predicted|MiB|.5g|right; off as predicted − peak|%|.2g|right; moment as predicted moment|1|s|left;
--   framework as baseline|MiB|.5g|right; device?|1|s|left; status|1|status|left
-- note: `forward`: inference; `forward_kept`: keeps activations for backward; neither holds gradients or moments.
--   `step`: a training step.
--   `optimizer`: AdamW's moments and a few scalars. `saved`: activations kept for backward. `temporaries`: freed before
--   the pass ends.
-- note: `baseline`, with P parameters and L blocks of R bytes: 4P and the largest of attention, feed-forward and logits
--   (`forward`); 4P + L·R + logits (`forward_kept`); the larger of 12P + L·R + the gradients after the loss, and 16P +
--   AdamW's temporaries, five times the largest parameter tensor (`step`); under autocast 2P more. Library workspaces
--   and fragmentation are not included: PyTorch's measured peaks of five models (docs/performance.md) are up to 1.2 %
--   above.
WITH t AS MATERIALIZED (
  SELECT v.*, (SELECT json_group_object(k.name, k.value / 1048576) FROM metric k
                WHERE k.attempt_id = v.attempt_id AND v.status <> 'error') AS mib
    FROM v_measured v
   WHERE v.experiment = ?1
)
SELECT params ->> '$.model' AS model, params ->> '$.batch' AS batch,
       params ->> '$.context' AS context, params ->> '$.precision' AS precision,
       params ->> '$.pass' AS pass, implementation, mib ->> '$.peak_bytes' AS peak,
       mib ->> '$.at_peak_parameters' AS parameters,
       mib ->> '$.at_peak_gradients' AS gradients, mib ->> '$.at_peak_optimizer_state' AS optimizer,
       mib ->> '$.at_peak_saved_activations' AS saved, mib ->> '$.at_peak_temporaries' AS temporaries,
       mib ->> '$.at_peak_inputs_and_others' AS others, mib ->> '$.predicted_peak' AS predicted,
       100 * ((mib ->> '$.predicted_peak') / (mib ->> '$.peak_bytes') - 1) AS off,
       facts ->> '$.predicted_moment' AS moment,
       mib ->> '$.framework_peak' AS framework, device, status, message, run_uid
  FROM t
 ORDER BY mib ->> '$.parameters', model, context, precision,
          CASE pass WHEN 'forward' THEN 0 WHEN 'forward_kept' THEN 1 ELSE 2 END, device, protocol, implementation;
