-- sentence: {lead}With statistics in {format} {norm} overflows at a standard deviation of {scale}{finite}, since {dim}
--   squares add up to more than {largest} from √({largest} / {dim}) = {limit} on. With fp32 statistics (mean 0) it did
--   not.
-- experiment: benchmarking_mixed_precision
-- command: syslab run norm_precision
-- fills: b
-- columns: lead|1|s|left; norm|1|code|left; format|1|s|left; finite|1|s|left; scale|1|.3g|right; dim|1|d|right;
--   largest|1|d|right; limit|1|.3g|right
WITH t AS (
  SELECT v.params ->> '$.norm' AS norm, v.params ->> '$.dtype' AS format, v.params ->> '$.dim' AS dim,
         v.params ->> '$.exponent' AS exponent, m.value AS finite, v.run_uid
    FROM v_newest v
    JOIN metric m ON m.attempt_id = v.attempt_id AND m.name = 'finite_rows'
   WHERE v.experiment = 'norm_precision' AND v.task = 'measure'
     AND v.status = 'ok' AND v.params ->> '$.statistics' = 'data'
     AND v.params ->> '$.offset' = 0 AND v.implementation = 'pairwise'
)
SELECT iif(norm = 'layer_norm' AND dim = (SELECT min(x.dim) FROM t x
                                           WHERE x.norm = t.norm AND x.format = t.format AND x.finite = 0),
           'Mean, variance and 1/√variance are the sensitive operations. ', '') AS lead,
       norm, format, pow(2, min(exponent)) AS scale, dim, 65504 AS largest, sqrt(65504.0 / dim) AS "limit",
       coalesce((SELECT printf(' but not at %.4g', pow(2, max(x.exponent))) FROM t x
                  WHERE x.norm = t.norm AND x.format = t.format AND x.dim = t.dim AND x.finite = 16
                    AND x.exponent < min(t.exponent)), '') AS finite, max(run_uid) AS run_uid
  FROM t
 WHERE finite = 0 AND format = 'fp16'
   -- Of fp32 statistics there are rows, all of them finite.
   AND (SELECT min(f.value) >= 16
          FROM v_newest w JOIN metric f ON f.attempt_id = w.attempt_id AND f.name = 'finite_rows'
         WHERE w.experiment = 'norm_precision' AND w.params ->> '$.statistics' = 'fp32' AND w.params ->> '$.offset' = 0)
 GROUP BY norm, format, dim
 ORDER BY norm, dim;
