-- sentence: {ranks}-rank training with sharding {sharding} gives bit-identical weights to single-process training: {toys}.
--   After the measured steps of {model} in {precision} ({batch} × {context} tokens, {backend}, gradients {travelling}, {device}, protocol
--   {protocol}, {implementation}; updates {turn}, buckets of {bucket_mb} MiB) all ranks hold identical weights and have communicated the bytes the
--   formulas give. A rank holds {held_moments} bytes of moments; its share is {formula_moments}.
-- experiment: optimizer_state_sharding
-- fills: *
-- columns: model|1|s|left; precision|1|s|left; batch|1|d|right; context|1|d|right; ranks|1|d|right; backend|1|code|left; travelling|1|s|left; device|1|s|left;
--   protocol|1|s|left; implementation|1|code|left; sharding|1|code|left; turn|1|s|left; bucket_mb|MiB|d|right; toys|1|s|left; held_moments|B|d|right; formula_moments|B|d|right
WITH v AS MATERIALIZED (
  SELECT * FROM v_sharded_state WHERE experiment = ?1
)
SELECT v.model, v."precision", v.batch, v.context, v.ranks, v.backend, iif(v.wire = 'own', 'uncompressed', 'in ' || v.wire) AS travelling, v.device, v.protocol, v.implementation, v.sharding, v.turn, coalesce(v.bucket_mb, 25) AS bucket_mb,
       CAST(v.metrics ->> '$.held_moments' AS INTEGER) AS held_moments, CAST(round(v.metrics ->> '$.formula_moments') AS INTEGER) AS formula_moments,
       (SELECT substr(k.message, instr(k.message, '; ') + 2) FROM check_result k
         WHERE k.attempt_id = v.attempt_id AND k.name LIKE 'reference:certificate%' LIMIT 1) AS toys, v.run_uid
  FROM v
 WHERE v.is_good AND v.ranks > 1
   AND v.ranks = (SELECT count(*) FROM check_result k
                   WHERE k.attempt_id = v.attempt_id AND k.name LIKE 'reference:certificate%' AND k.outcome = 'passed')
 ORDER BY model, batch, context, "precision", ranks, row_order, sharding <> 'none', sharding, updates, wire <> 'own', wire, bucket_mb;
