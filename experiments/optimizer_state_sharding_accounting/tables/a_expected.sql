-- sentence: {model} in {precision} on {ranks} ranks ({backend}, gradients {travelling}, {device}, {implementation}), sharding {sharding} (updates {turn}), in buckets of {bucket_mb} MiB: weights, gradients and moments of a rank are {held_state} bytes where the
--   formula has {formula_state}, {off} % more, which are padding and slots that gradients pass through. Beside a state that is not divided ({none_state}
--   bytes) a rank saves {saved} %.
-- experiment: optimizer_state_sharding_accounting
-- fills: a
-- columns: model|1|s|left; precision|1|s|left; ranks|1|d|right; backend|1|code|left; travelling|1|s|left; device|1|s|left; implementation|1|code|left; sharding|1|code|left; turn|1|s|left; bucket_mb|MiB|d|right; held_state|B|d|right; formula_state|B|d|right;
--   off|%|.3g|right; none_state|B|d|right; saved|%|.3g|right
WITH v AS MATERIALIZED (
  SELECT t.*, t.params ->> '$.model' AS model, t.params ->> '$.batch' AS batch, t.params ->> '$.context' AS context,
         t.params ->> '$.precision' AS "precision", t.params ->> '$.sharding' AS sharding,
         coalesce(t.params ->> '$.wire', 'own') AS wire, coalesce('in ' || nullif(t.params ->> '$.wire', 'own'), 'as they lie') AS travelling,
         coalesce(t.params ->> '$.updates', 'at_end') AS updates, iif(t.params ->> '$.updates' = 'in_turn', 'in turn', 'at the end') AS turn,
         coalesce(t.params ->> '$.bucket_mb', 25) AS bucket_mb, t.world_size AS ranks,
         json_remove(t.params, '$.sharding', '$.updates') AS point,
         metrics AS found
    FROM v_measured t
   WHERE t.experiment = ?1
)
SELECT v.model, v."precision", v.ranks, v.backend, v.travelling, v.device, v.implementation, v.sharding, v.turn, v.bucket_mb,
       CAST(v.found ->> '$.held_state' AS INTEGER) AS held_state,
       CAST(round(v.found ->> '$.formula_state') AS INTEGER) AS formula_state,
       100 * ((v.found ->> '$.held_state') / (v.found ->> '$.formula_state') - 1) AS off, CAST(n.found ->> '$.held_state' AS INTEGER) AS none_state,
       100 * (1 - (v.found ->> '$.held_state') / (n.found ->> '$.held_state')) AS saved, v.run_uid
  FROM v
  JOIN v n ON n.point = v.point AND n.ranks = v.ranks AND n.comparability_key = v.comparability_key AND n.protocol IS v.protocol
          AND n.implementation = v.implementation AND n.sharding = 'none' AND n.is_good
 WHERE v.is_good AND v.sharding <> 'none'
 ORDER BY v.model, v.batch, v.context, v."precision", v.ranks, v.row_order, v.sharding, v.updates, v.wire <> 'own', v.wire, v.bucket_mb;
