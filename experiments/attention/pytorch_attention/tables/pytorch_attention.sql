-- title: PyTorch attention benchmark
-- caption: Unfused attention in C++, in place of PyTorch's. Median time of forward and backward with 95 % intervals;
--   memory kept by forward beside Q, K, V and O, in use before backward, and peak of each pass.
-- experiment: pytorch_attention
-- columns: batch?|1|d|right; heads?|1|d|right; heads_kv?|1|d|right; head_dim|1|d|right; seq|1|d|right;
--   seq_k?|1|d|right; dtype?|1|s|left; causal?|1|flag|left; align?|1|s|left; implementation|1|code|left;
--   forward|ms|ci(forward_low, forward_high)|right; backward|ms|ci(backward_low, backward_high)|right;
--   both?|ms|ci(both_low, both_high)|right; kept|B|d|right; before_backward as before backward|MiB|.4g|right;
--   forward_peak as forward peak|MiB|.4g|right; backward_peak as backward peak|MiB|.4g|right;
--   vs_literal|×|ci(vs_literal_low, vs_literal_high)|right; error_share as error of bound|%|.3g|right; n|1|d|right;
--   checked_percent as checked|%|.3g|right; noise?|1|s|left; protocol?|1|s|left; device?|1|s|left; status|1|status|left
-- note: Peaks include a pass's tensors and workspace, not the other input sets; MiB are 2^20 bytes.
-- note: vs literal: speed-up of forward + backward. Error: worst error of any output in percent of its bound; n: fewest
--   samples of a pass.
WITH m AS MATERIALIZED (
  SELECT v.*, params ->> '$.pass' AS pass, json_remove(params, '$.pass') AS point,
         CASE params ->> '$.pass' WHEN 'forward' THEN 1 WHEN 'backward' THEN 2 ELSE 3 END AS place,
         (SELECT value FROM metric k
           WHERE k.attempt_id = v.attempt_id AND v.status <> 'error' AND k.name = 'kept_bytes') AS kept,
         (SELECT value FROM metric k
           WHERE k.attempt_id = v.attempt_id AND v.status <> 'error' AND k.name = 'before_backward_bytes') AS before,
         (SELECT max(value) FROM metric k
           WHERE k.attempt_id = v.attempt_id AND v.status <> 'error' AND k.name = 'peak_bytes') AS peak
    FROM v_measured v
   WHERE experiment = ?1
),
-- A row an implementation at a point of the grid; the first pass that did not end well says how it ended.
joined AS (
  SELECT point, implementation, is_mine, world_size, comparability_key, protocol, device, row_order,
         max(iif(pass = 'forward', time_ms, NULL)) AS forward, max(iif(pass = 'forward', low_ms, NULL)) AS forward_low,
         max(iif(pass = 'forward', high_ms, NULL)) AS forward_high,
         max(iif(pass = 'backward', time_ms, NULL)) AS backward,
         max(iif(pass = 'backward', low_ms, NULL)) AS backward_low,
         max(iif(pass = 'backward', high_ms, NULL)) AS backward_high,
         max(iif(pass = 'both', time_ms, NULL)) AS both, max(iif(pass = 'both', low_ms, NULL)) AS both_low,
         max(iif(pass = 'both', high_ms, NULL)) AS both_high,
         max(iif(pass = 'forward' AND is_good, time_ms, NULL)) + max(iif(pass = 'backward' AND is_good, time_ms, NULL))
           AS good_sum,
         max(iif(pass = 'forward' AND is_good, low_ms, NULL))
           + max(iif(pass = 'backward' AND is_good, low_ms, NULL)) AS low_sum,
         max(iif(pass = 'forward' AND is_good, high_ms, NULL))
           + max(iif(pass = 'backward' AND is_good, high_ms, NULL)) AS high_sum,
         max(role IS 'literal' AND measured_here) AS is_literal, max(role) AS role,
         max(kept) AS kept, max(before) / 1048576 AS before_backward,
         max(iif(pass = 'forward', peak, NULL)) / 1048576 AS forward_peak,
         max(iif(pass = 'backward', peak, NULL)) / 1048576 AS backward_peak,
         100 * max(worst_error / nullif(bound, 0)) AS error_share, min(n) AS n,
         min(checked_percent) AS checked_percent, json_group_array(facts -> '$.noise') AS labels,
         coalesce(substr(min(iif(status <> 'ok', place || status, NULL)), 2), 'ok') AS status,
         substr(min(iif(status <> 'ok', place || message || '; ' || pass, NULL)), 2) AS message, max(run_uid) AS run_uid
    FROM m
   GROUP BY point, implementation, is_mine, world_size, comparability_key, protocol
)
SELECT point ->> '$.batch' AS batch, point ->> '$.heads' AS heads, point ->> '$.heads_kv' AS heads_kv,
       point ->> '$.seq' AS seq, point ->> '$.seq_k' AS seq_k, point ->> '$.head_dim' AS head_dim,
       point ->> '$.dtype' AS dtype, point ->> '$.causal' AS causal, point ->> '$.align' AS align, implementation,
       forward, forward_low, forward_high, backward, backward_low, backward_high, both, both_low, both_high, kept,
       before_backward, forward_peak, backward_peak,
       max(iif(is_literal, good_sum, NULL)) OVER same / good_sum AS vs_literal,
       iif(is_literal, NULL, max(iif(is_literal, low_sum, NULL)) OVER same / high_sum) AS vs_literal_low,
       iif(is_literal, NULL, max(iif(is_literal, high_sum, NULL)) OVER same / low_sum) AS vs_literal_high,
       error_share, n, checked_percent,
       coalesce((SELECT replace(group_concat(DISTINCT w.value), ',', ', ')
                   FROM json_each(labels) pass, json_each(iif(json_valid(pass.value), pass.value, '[]')) w),
                'none') AS noise, protocol, device, status, message, run_uid
  FROM joined
WINDOW same AS (PARTITION BY point, world_size, comparability_key, protocol)
 ORDER BY dtype <> 'fp32', dtype, head_dim, seq, seq_k, causal,
          align, batch, heads, heads_kv, device, protocol, is_mine,
          CASE role WHEN 'literal' THEN 0 WHEN 'intermediate' THEN 1 WHEN 'naive' THEN 2 ELSE 3 END, implementation;
