-- title: FlashAttention-2 benchmark
-- caption: Median times of forward, backward and both with their 95 % intervals.
-- about vs_literal: `vs literal` is the speed-up of both over unfused attention with materialised matrices, on
--   the same inputs.
-- experiment: flash_benchmarking
-- columns: batch?|1|d|right; heads?|1|d|right; heads_kv?|1|d|right; seq|1|d|right; seq_k?|1|d|right;
--   head_dim|1|d|right; dtype|1|s|left; causal?|1|flag|left; align?|1|s|left; implementation|1|code|left;
--   forward|ms|ci(forward_low, forward_high)|right; backward|ms|ci(backward_low, backward_high)|right;
--   both|ms|ci(both_low, both_high)|right; rate|TFLOP/s|.3g|right;
--   vs_literal|×|ci(vs_literal_low, vs_literal_high)|right; vs_from as speed-up from?|1|s|left;
--   error_share as error of bound|%|.3g|right; scratch|B|d|right; n|1|d|right; checked_percent as checked|%|.3g|right;
--   noise?|1|s|left; protocol?|1|s|left; device?|1|s|left; status|1|status|left
-- note: The rate is of forward and backward: 14·B·H·pairs·D FLOPs, recomputation not counted.
-- note: Error: worst error of any output in percent of its bound; n: fewest samples of a pass; scratch: peak workspace
--   of a pass, without what forward leaves for backward.
WITH m AS MATERIALIZED (
  SELECT *, params ->> '$.pass' AS pass, json_remove(params, '$.pass') AS point,
         CASE params ->> '$.pass' WHEN 'forward' THEN 1 WHEN 'backward' THEN 2 ELSE 3 END AS place
    FROM v_measured
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
         max(iif(pass = 'both', high_ms, NULL)) AS both_high, max(iif(pass = 'both', tflops, NULL)) AS rate,
         max(iif(pass = 'both' AND is_good, time_ms, NULL)) AS good_both,
         max(iif(pass = 'both' AND is_good, run_uid, NULL)) AS good_run,
         max(iif(pass = 'both' AND is_good, low_ms, NULL)) AS good_low,
         max(iif(pass = 'both' AND is_good, high_ms, NULL)) AS good_high,
         max(role IS 'literal' AND measured_here) AS is_literal, max(role) AS role,
         100 * max(worst_error / nullif(bound, 0)) AS error_share, max(scratch) AS scratch, min(n) AS n,
         min(checked_percent) AS checked_percent, json_group_array(facts -> '$.noise') AS labels,
         coalesce(substr(min(iif(status <> 'ok', place || status, NULL)), 2), 'ok') AS status,
         substr(min(iif(status <> 'ok', place || message || '; ' || pass, NULL)), 2) AS message, max(run_uid) AS run_uid
    FROM m
   GROUP BY point, implementation, is_mine, world_size, comparability_key, protocol
)
SELECT point ->> '$.batch' AS batch, point ->> '$.heads' AS heads, point ->> '$.heads_kv' AS heads_kv,
       point ->> '$.seq' AS seq, point ->> '$.seq_k' AS seq_k, point ->> '$.head_dim' AS head_dim,
       point ->> '$.dtype' AS dtype, point ->> '$.causal' AS causal, point ->> '$.align' AS align, implementation,
       forward, forward_low, forward_high, backward, backward_low, backward_high, both, both_low, both_high, rate,
       max(iif(is_literal, good_both, NULL)) OVER same / good_both AS vs_literal,
       iif(is_literal, NULL, max(iif(is_literal, good_low, NULL)) OVER same / good_high) AS vs_literal_low,
       iif(is_literal, NULL, max(iif(is_literal, good_high, NULL)) OVER same / good_low) AS vs_literal_high,
       iif(coalesce(max(iif(is_literal, good_run, NULL)) OVER same, good_run) <> good_run,
           'different runs', 'one run') AS vs_from, error_share, scratch, n, checked_percent,
       coalesce((SELECT replace(group_concat(DISTINCT w.value), ',', ', ')
                   FROM json_each(labels) pass, json_each(iif(json_valid(pass.value), pass.value, '[]')) w),
                'none') AS noise, protocol, device, status, message, run_uid
  FROM joined
WINDOW same AS (PARTITION BY point, world_size, comparability_key, protocol)
 ORDER BY dtype <> 'bf16', dtype, head_dim, seq, seq_k, causal,
          align, batch, heads, heads_kv, device, protocol, is_mine,
          CASE role WHEN 'literal' THEN 0 WHEN 'intermediate' THEN 1 WHEN 'naive' THEN 2 ELSE 3 END, implementation;
