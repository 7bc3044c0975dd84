-- title: PyTorch attention benchmark: the grid
-- caption: Median times of forward / backward of unfused attention at batch 8, one head, by head dimension d, and what
--   forward keeps for backward beside Q, K, V and O, which depends on T alone. →: the same with a fused
--   softmax (`naive_cuda` on a GPU), where measured. OOM: what did not fit into this GPU's memory; –: not run. Protocol
--   cs336_100: 100 calls after 5 of warm-up.
-- experiment: pytorch_attention
-- fills: *
-- blank: –
-- columns: seq as T|1|d|right; d16 as d = 16|ms|s|right; d32 as d = 32|ms|s|right; d64 as d = 64|ms|s|right;
--   d128 as d = 128|ms|s|right; kept|MiB|.5g|right; protocol?|1|s|left; implementation as before →?|1|code|left;
--   device?|1|s|left
WITH m AS MATERIALIZED (
  SELECT v.*, params ->> '$.seq' AS seq, params ->> '$.head_dim' AS d,
         params ->> '$.pass' AS pass, json_remove(params, '$.pass') AS point,
         (SELECT value FROM metric k
           WHERE k.attempt_id = v.attempt_id AND v.status <> 'error' AND k.name = 'kept_bytes') AS kept,
         CASE WHEN status = 'oom' THEN 'OOM' WHEN is_good THEN printf('%.3g', time_ms) END AS told
    FROM v_measured v
   WHERE experiment = ?1 AND NOT is_mine AND measured_here AND role = 'literal'
     AND params ->> '$.dtype' = 'fp32' AND ending <> 'not_asked'
),
-- The same cases with a softmax in one kernel: what torch_compile asks for.
fused AS (
  SELECT v.case_id, v.comparability_key, v.protocol, v.implementation, printf('%.3g', v.time_ms) AS told
    FROM v_measured v
   WHERE v.experiment = ?1 AND NOT v.is_mine AND v.is_good AND v.implementation IN ('fused_softmax', 'naive_cuda')
),
both AS (
  SELECT m.*, f.told AS fused
    FROM m
    LEFT JOIN fused f ON f.case_id = m.case_id AND f.comparability_key = m.comparability_key AND f.protocol = m.protocol
                     AND f.implementation = CASE m.implementation WHEN 'literal' THEN 'fused_softmax'
                                                                  ELSE 'naive_cuda' END
),
cell AS (
  SELECT seq, d, implementation, comparability_key, protocol, device, max(kept) AS kept, max(run_uid) AS run_uid,
         coalesce(max(iif(pass = 'forward', told, NULL)), '–') || ' / '
           || coalesce(max(iif(pass = 'backward', told, NULL)), '–') ||
           coalesce(' → ' || max(iif(pass = 'forward', fused, NULL)) || ' / '
                    || max(iif(pass = 'backward', fused, NULL)), '') AS shown
    FROM both
   WHERE pass <> 'both'
   GROUP BY point, implementation, comparability_key, protocol
)
SELECT seq,
       max(iif(d = 16, shown, NULL)) AS d16,
       max(iif(d = 32, shown, NULL)) AS d32,
       max(iif(d = 64, shown, NULL)) AS d64,
       max(iif(d = 128, shown, NULL)) AS d128,
       max(kept) / 1048576 AS kept, protocol, implementation, device, max(run_uid) AS run_uid
  FROM cell
 GROUP BY implementation, comparability_key, protocol, seq
 ORDER BY device LIKE 'NVIDIA%' DESC, device, protocol, implementation, seq;
