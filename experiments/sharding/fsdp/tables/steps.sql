-- title: FSDP
-- caption: Median step time with its 95 % interval, slowest rank. Phases come from events in the step, each of its
--   slowest rank.
-- about exposed_forward, exposed_backward: `exposed` is the time compute waited for all-gathers.
-- about state: `state`: weights, gradients and moments of a rank.
-- about slots: `slots`: where gathered weights (in the compute dtype) and unreduced gradients (in the dtype in which
--   they travel, fp32 if not rounded) take turns.
-- experiment: fsdp
-- fills: *
-- columns: model|1|s|left; @sizes; batch?|1|d|right; context?|1|d|right; precision?|1|s|left; ranks|1|d|right;
--   backend?|1|code|left; wire?|1|s|left; granularity|1|s|left; implementation?|1|code|left;
--   time_ms as time|ms|ci(low_ms, high_ms)|right; forward|ms|.3g|right; backward|ms|.3g|right;
--   updating as update|ms|.3g|right; exposed_forward as exposed forward|ms|.3g|right;
--   exposed_backward as exposed backward|ms|.3g|right; state|B|d|right; formula|B|d|right; padding|B|d|right;
--   slots|B|d|right; gathered|B|d|right; n|1|d|right; noise?|1|s|left; protocol?|1|s|left; device?|1|s|left;
--   status|1|status|left
-- note: `formula`: the state by arithmetic, without padding.
-- note: `batch` is the global batch. `wire`: dtype in which gradients are communicated; `own`: uncompressed. Ranks that
--   share CPU cores cannot overlap communication with compute.
WITH t AS MATERIALIZED (
  SELECT *, metrics AS found
    FROM v_measured v
   WHERE v.experiment = ?1 AND v.status <> 'skipped'
)
SELECT params ->> '$.model' AS model, params ->> '$.d_model' AS d_model,
       params ->> '$.d_ff' AS d_ff, params ->> '$.layers' AS layers,
       params ->> '$.heads' AS heads, params ->> '$.vocab' AS vocab,
       params ->> '$.batch' AS batch, params ->> '$.context' AS context,
       params ->> '$.precision' AS "precision", world_size AS ranks, backend,
       coalesce(params ->> '$.wire', 'own') AS wire, params ->> '$.granularity' AS granularity,
       implementation, time_ms, low_ms, high_ms, 1e3 * (found ->> '$.forward') AS forward,
       1e3 * (found ->> '$.backward') AS backward, 1e3 * (found ->> '$.update') AS updating,
       1e3 * (found ->> '$.exposed_forward') AS exposed_forward,
       1e3 * (found ->> '$.exposed_backward') AS exposed_backward,
       found ->> '$.state_bytes' AS state, found ->> '$.formula_bytes' AS formula,
       found ->> '$.padding_bytes' AS padding,
       found ->> '$.slot_bytes' AS slots, found ->> '$.gathered_bytes' AS gathered, n,
       noise, protocol, device, status, message, facts -> '$.needs' AS needs, run_uid
  FROM t
 ORDER BY model, d_model, d_ff, layers, heads, vocab, batch, context, "precision",
          ranks, row_order, backend, wire <> 'own', wire, granularity DESC;
