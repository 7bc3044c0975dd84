-- sentence: {model} in {precision}, {batch} rows of {context} tokens over {ranks} ranks ({backend}, gradients {travelling}, {device}, protocol {protocol}, {implementation}), sharding {sharding} (updates {turn}), in buckets of {bucket_mb} MiB: a
--   network whose numbers are all exact, trained on these ranks, ends with the bits of one process on all rows, on every rank; behind
--   the steps measured all ranks hold the same weights, bit for bit, and have moved the bytes that the formulas make; and a rank holds {held_moments} bytes
--   of moments where {formula_moments} are its share.
-- experiment: optimizer_state_sharding
-- fills: *
-- columns: model|1|s|left; precision|1|s|left; batch|1|d|right; context|1|d|right; ranks|1|d|right; backend|1|code|left; travelling|1|s|left; device|1|s|left;
--   protocol|1|s|left; implementation|1|code|left; sharding|1|code|left; turn|1|s|left; bucket_mb|MiB|d|right; held_moments|B|d|right; formula_moments|B|d|right
WITH v AS MATERIALIZED (
  SELECT * FROM v_sharded_state WHERE experiment = ?1
)
SELECT v.model, v."precision", v.batch, v.context, v.ranks, v.backend, v.travelling, v.device, v.protocol, v.implementation, v.sharding, v.turn, coalesce(v.bucket_mb, 25) AS bucket_mb,
       CAST(v.metrics ->> '$.held_moments' AS INTEGER) AS held_moments, CAST(round(v.metrics ->> '$.formula_moments') AS INTEGER) AS formula_moments, v.run_uid
  FROM v
 WHERE v.is_good AND v.ranks > 1
   AND v.ranks = (SELECT count(*) FROM check_result k
                   WHERE k.attempt_id = v.attempt_id AND k.name LIKE 'reference:certificate%' AND k.outcome = 'passed')
 ORDER BY model, batch, context, "precision", ranks, row_order, sharding <> 'none', sharding, updates, wire <> 'own', wire, bucket_mb;
