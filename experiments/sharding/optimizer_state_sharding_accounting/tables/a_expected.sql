-- sentence: {model} in {precision} on {ranks} ranks ({backend}, gradients {travelling}, {device}, {implementation}),
--   sharding {sharding}{turn}: a rank holds {held_state} of weights (4 bytes a parameter), gradients (4) and moments
--   (8/{ranks}), {expected}, and {saved} % less than the {none_state} (16 bytes a parameter) without sharding. Here
--   gradients and moments exist before the first step; PyTorch would hold 4 bytes a parameter then, and 8 before its
--   first update.
-- experiment: optimizer_state_sharding_accounting
-- fills: a
-- columns: model|1|s|left; precision|1|s|left; ranks|1|d|right; backend|1|code|left; travelling|1|s|left;
--   device|1|s|left; implementation|1|code|left; sharding|1|code|left; turn|1|s|left; held_state|GiB|.4b|right;
--   expected|1|s|left; none_state|GiB|.4b|right; saved|%|.3g|right
WITH v AS MATERIALIZED (
  SELECT * FROM v_sharded_state WHERE experiment = ?1
)
SELECT v.model, v."precision", v.ranks, v.backend,
       iif(v.wire = 'own', 'uncompressed', 'in ' || v.wire) AS travelling, v.device, v.implementation, v.sharding,
       iif(v.updates = 'at_end', '', printf(' (updates %s)', v.turn)) AS turn, coalesce(v.bucket_mb, 25) AS bucket_mb,
       (v.metrics ->> '$.held_state') / 1073741824.0 AS held_state,
       CASE WHEN abs((v.metrics ->> '$.held_state') / (v.metrics ->> '$.formula_state') - 1) < 0.001 THEN 'as expected'
            ELSE printf('%.2g %% more than the %.4g GiB expected, because gradients pass through buckets',
                        100 * ((v.metrics ->> '$.held_state') / (v.metrics ->> '$.formula_state') - 1),
                        (v.metrics ->> '$.formula_state') / 1073741824.0) END AS expected,
       (n.metrics ->> '$.held_state') / 1073741824.0 AS none_state,
       100 * (1 - (v.metrics ->> '$.held_state') / (n.metrics ->> '$.held_state')) AS saved, v.run_uid
  FROM v
  JOIN v n ON n.point = v.point AND n.ranks = v.ranks
          AND n.comparability_key = v.comparability_key AND n.protocol IS v.protocol
          AND n.implementation = v.implementation AND n.sharding = 'none' AND n.is_good
 WHERE v.is_good AND v.sharding <> 'none'
 ORDER BY v.model, v.batch, v.context, v."precision", v.ranks, v.row_order,
          v.sharding, v.updates, v.wire <> 'own', v.wire, v.bucket_mb;
