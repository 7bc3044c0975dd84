-- sentence: {lead} out of memory: {implementation}, {pass}, B = {rows}, T = {seq}, d = {head_dim}, {dtype} on {device}
--   ({why}). It needs {tensors} tensors of B·T·d ({tensor_mib} each) and {kept} kept and {work} temporary matrices of
--   B·T² floats ({matrix_gib} each): {total_gib}.
-- experiment: pytorch_attention
-- command: syslab run pytorch_attention -a seq=2048 -a head_dim=64 --impl literal --laws none --memory-limit 256Mi
-- columns: lead|1|s|left; implementation|1|code|left; pass|1|s|left; rows|1|d|right; seq|1|d|right; head_dim|1|d|right;
--   dtype|1|s|left; device|1|s|left; why|1|s|left; tensors|1|d|right; tensor_mib|MiB|.4b|right; kept|1|d|right;
--   work|1|d|right; matrix_gib|GiB|.4b|right; total_gib|GiB|.4b|right; share|%|.3g|right
WITH sizes AS (
  SELECT v.implementation, v.params ->> '$.pass' AS pass,
         v.params ->> '$.batch' * (v.params ->> '$.heads') AS rows, v.params ->> '$.seq' AS seq,
         v.params ->> '$.head_dim' AS head_dim, v.params ->> '$.dtype' AS dtype, v.device, v.comparability_key,
         coalesce(nullif(substr(v.message, instr(v.message, ' has ') + 5), substr(v.message, 5)), v.message) AS why,
         -- Of matrices what the rung's program counted, of tensors Q, K, V and O, backward their gradients as well.
         iif(v.params ->> '$.pass' = 'forward', 4, 8) AS tensors,
         CAST(r.facts ->> '$.kept_matrices' AS INTEGER) AS kept,
         CAST(r.facts ->> iif(v.params ->> '$.pass' = 'forward',
                              '$.forward_matrices', '$.backward_matrices') AS INTEGER) AS work,
         iif(v.params ->> '$.dtype' = 'fp32', 4, 2) AS element, v.run_uid
    FROM v_measured v
    JOIN v_rung r ON r.run_uid = v.run_uid AND r.experiment = v.experiment AND r.implementation = v.implementation
   WHERE v.experiment = ?1 AND v.status = 'oom' AND NOT v.is_mine
     AND v.params ->> '$.seq_k' IN (0, v.params ->> '$.seq')
     AND r.facts ->> '$.kept_matrices' IS NOT NULL
     AND (v.params ->> '$.dtype' = 'fp32' OR r.device <> 'cuda')  -- there weights in half precision are half as large
     AND v.params ->> '$.heads_kv' IN (0, v.params ->> '$.heads')
),
totals AS (
  SELECT *, 1.0 * rows * seq * head_dim * element AS tensor, 4.0 * rows * seq * seq AS matrix FROM sizes
)
SELECT iif((SELECT count(*) FROM v_measured o
             WHERE o.experiment = ?1 AND o.status = 'oom' AND o.comparability_key = s.comparability_key) = 1,
           'The case', 'The smallest case') AS lead, implementation, pass, rows, seq,
       head_dim, dtype, device, why, tensors, tensor / 1048576 AS tensor_mib, kept, work,
       matrix / 1073741824 AS matrix_gib, total / 1073741824 AS total_gib,
       100 * (kept + work) * matrix / total AS share, run_uid
  FROM (SELECT *, tensors * tensor + (kept + work) * matrix AS total,
               row_number() OVER (PARTITION BY comparability_key ORDER BY tensors * tensor + (kept + work) * matrix,
                                               implementation DESC, pass) AS place
          FROM totals) s
 WHERE place = 1
 ORDER BY device;
