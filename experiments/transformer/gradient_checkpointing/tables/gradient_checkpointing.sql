-- title: Gradient checkpointing by segment size
-- caption: Each segment of k blocks keeps only its input and is recomputed in backward; the last segment is not
--   recomputed. Step times are medians.
-- about peak, predicted, kept: `peak` includes parameters, gradients and moments, `kept` is what blocks hold from
--   forward to backward, `predicted` the calculated peak.
-- experiment: gradient_checkpointing
-- fills: b
-- columns: model|1|s|left; layers?|1|d|right; batch?|1|d|right; context|1|d|right; precision?|1|s|left;
--   implementation|1|code|left; segment as k|1|s|right; peak|GiB|.4g|right; predicted|GiB|.4g|right;
--   vs_kept as peak vs kept|×|.3g|right; kept|MiB|.4g|right; step|ms|ci(low_ms, high_ms)|right;
--   slower as step vs kept|×|ci(slower_low, slower_high)|right; backward|ms|.3g|right;
--   forwards as block forwards|1|s|right; formula|1|s|right; n|1|d|right; protocol?|1|s|left; device?|1|s|left;
--   status|1|status|left
-- note: k = 0.5: attention and feed-forward are segments of their own. Block forwards: L + (L − k'), with k' blocks in
--   the last segment. k = L recomputes nothing.
WITH t AS MATERIALIZED (
  SELECT v.*, json_remove(v.params, '$.segment') AS point, v.params ->> '$.segment' AS segment,
         metrics AS found
    FROM v_measured v
   WHERE v.experiment = ?1 AND v.status <> 'skipped'
)
SELECT t.params ->> '$.model' AS model, t.params ->> '$.layers' AS layers, t.params ->> '$.batch' AS batch,
       t.params ->> '$.context' AS context, t.params ->> '$.precision' AS precision, t.implementation,
       CASE t.segment WHEN 0 THEN 'all kept' ELSE printf('%g', t.segment) END AS segment,
       (t.found ->> '$.peak_bytes') / 1073741824 AS peak, (t.found ->> '$.predicted_bytes') / 1073741824 AS predicted,
       iif(t.is_good, (t.found ->> '$.peak_bytes') / (k.found ->> '$.peak_bytes'), NULL) AS vs_kept,
       (t.found ->> '$.kept_bytes') / 1048576 AS kept, t.time_ms AS step, t.low_ms, t.high_ms,
       iif(t.is_good, t.time_ms / k.time_ms, NULL) AS slower,
       iif(t.is_good AND t.segment > 0, t.low_ms / k.high_ms, NULL) AS slower_low,
       iif(t.is_good AND t.segment > 0, t.high_ms / k.low_ms, NULL) AS slower_high,
       1e3 * (t.found ->> '$.backward') AS backward,
       printf('%g', t.found ->> '$.block_forwards') AS forwards,
       printf('%g', t.found ->> '$.block_forwards_formula') AS formula, t.n, t.protocol,
       t.device, t.status, t.message, t.run_uid
  FROM t
  LEFT JOIN t k ON k.point = t.point AND k.implementation = t.implementation
               AND k.comparability_key = t.comparability_key
               AND k.protocol = t.protocol AND k.segment = 0 AND k.is_good
 ORDER BY model, context, precision, t.device, t.protocol, t.implementation, t.segment = 0, t.segment;
