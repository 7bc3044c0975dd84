-- sentence: The matrices need not be kept: from the log-sum-exp L of each row, {lse_mib} MiB at seq {seq} where {implementation} keeps
--   {kept_mib} MiB, the backward pass makes the weights again, P = exp(scale·Q·Kᵀ − L), a tile at a time. So does
--   FlashAttention-2 (`flash_tiled`): what it keeps grows with S and not with S², for one product of S·S·D more.
-- experiment: pytorch_attention
-- columns: implementation|1|code|left; seq|1|d|right; kept_mib|1|.4g|right; lse_mib|1|.3g|right
SELECT implementation, seq, kept / 1048576 AS kept_mib,
       -- one fp32 number a row, whatever the dtype
       4.0 * (params ->> '$.batch') * (params ->> '$.heads') * seq / 1048576 AS lse_mib, run_uid
  FROM (SELECT v.implementation, v.params, v.params ->> '$.seq' AS seq, k.value AS kept, v.run_uid,
               row_number() OVER (ORDER BY v.params ->> '$.seq' DESC, k.value DESC, v.run_uid DESC) AS place
          FROM v_measured v
          JOIN metric k ON k.attempt_id = v.attempt_id AND k.name = 'kept_bytes' AND k.value IS NOT NULL
         WHERE v.experiment = ?1 AND v.is_good AND v.implementation = 'literal' AND NOT v.is_mine)
 WHERE place = 1;
