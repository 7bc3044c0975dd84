-- sentence: What {implementation} keeps for backward (d = {head_dim}, {dtype}, {device}) grows {growth}× from
--   T = {low_seq} to {high_seq}, to {high_kept}.
-- experiment: pytorch_attention
-- columns: implementation|1|code|left; head_dim|1|d|right; dtype|1|s|left; low_seq|1|d|right;
--   high_seq|1|d|right; growth|×|.3g|right; low_kept|MiB|.4b|right; high_kept|GiB|.3b|right; device|1|s|left
WITH kept AS (
  SELECT DISTINCT json_remove(v.params, '$.pass', '$.seq') AS point, v.params ->> '$.seq' AS seq, v.implementation,
         v.is_mine, v.comparability_key, v.device, k.value AS bytes, v.run_uid
    FROM v_measured v
    JOIN metric k ON k.attempt_id = v.attempt_id AND k.name = 'kept_bytes' AND k.value > 0
   WHERE v.experiment = ?1 AND v.is_good AND v.params ->> '$.seq_k' = 0
),
-- The longest sequence and the next shorter one.
steps AS (
  SELECT *, lead(seq) OVER longest AS low_seq, lead(bytes) OVER longest AS low_bytes, row_number() OVER longest AS place
    FROM (SELECT point, seq, implementation, is_mine, comparability_key, device, max(bytes) AS bytes,
                 max(run_uid) AS run_uid
            FROM kept GROUP BY point, seq, implementation, is_mine, comparability_key)
  WINDOW longest AS (PARTITION BY point, implementation, is_mine, comparability_key ORDER BY seq DESC)
)
SELECT implementation, head_dim, dtype, length, low_seq, high_seq, growth, low_kept, high_kept, device, run_uid
  -- a sentence an implementation: the longest sequence of any width
  FROM (SELECT implementation, point ->> '$.head_dim' AS head_dim,
               point ->> '$.dtype' AS dtype, 1.0 * seq / low_seq AS length,
               low_seq, seq AS high_seq, bytes / low_bytes AS growth, low_bytes / 1048576 AS low_kept,
               bytes / 1073741824.0 AS high_kept, device, run_uid,
               row_number() OVER (PARTITION BY implementation, is_mine, comparability_key
                                      ORDER BY seq DESC, point ->> '$.dtype' <> 'fp32', point) AS one
          FROM steps
         WHERE place = 1 AND low_seq IS NOT NULL)
 WHERE one = 1
 ORDER BY device, high_kept DESC, implementation;
