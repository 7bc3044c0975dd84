-- sentence: The score matrices need not be kept: from the log-sum-exp L of each row ({lse_mib}, not {kept_gib}, at
--   T = {seq}) backward recomputes P = exp(scale·Q·Kᵀ − L) tile by tile, as FlashAttention-2 does: memory grows with T
--   instead of T², at the cost of one more T·T·d product.
-- experiment: pytorch_attention
-- columns: seq|1|d|right; kept_gib|GiB|.3b|right; lse_mib|MiB|.3b|right
SELECT implementation, seq, kept / 1073741824.0 AS kept_gib,
       -- one fp32 number a row, whatever the dtype
       4.0 * (params ->> '$.batch') * (params ->> '$.heads') * seq / 1048576 AS lse_mib, run_uid
  FROM (SELECT v.implementation, v.params, v.params ->> '$.seq' AS seq, k.value AS kept, v.run_uid,
               row_number() OVER (ORDER BY v.params ->> '$.seq' DESC, k.value DESC, v.run_uid DESC) AS place
          FROM v_measured v
          JOIN metric k ON k.attempt_id = v.attempt_id AND k.name = 'kept_bytes' AND k.value IS NOT NULL
         WHERE v.experiment = ?1 AND v.is_good AND v.role = 'literal' AND NOT v.is_mine AND v.measured_here)
 WHERE place = 1;
