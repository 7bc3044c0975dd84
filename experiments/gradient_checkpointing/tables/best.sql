-- sentence: {implementation}, {model}, context {context}, {precision} on {device}: segments of {best} blocks hold least, {peak} GiB; the next
--   smaller size tried ({smaller}) holds {smaller_peak}, the next larger one ({larger}) {larger_peak} GiB. The step takes {slower} times as
--   long as with all activations kept ({kept_peak} GiB), for {forwards} forward passes of a block instead of {layers}.
-- experiment: gradient_checkpointing
-- fills: b
-- columns: implementation|1|code|left; model|1|s|left; context|1|d|right; precision|1|code|left; device|1|s|left; best|1|s|right;
--   peak|GiB|.4g|right; smaller|1|s|right; smaller_peak|1|s|right; larger|1|s|right; larger_peak|1|s|right; slower|×|s|right;
--   kept_peak|1|s|right; forwards|1|s|right; layers|1|s|right
WITH t AS MATERIALIZED (
  SELECT v.*, json_remove(v.params, '$.segment') AS point, v.params ->> '$.segment' AS segment, p.value AS bytes, f.value AS forwards
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'peak_bytes'
    JOIN metric f ON f.attempt_id = v.attempt_id AND f.name = 'block_forwards'
   WHERE v.experiment = ?1 AND v.is_good
),
sizes AS (
  SELECT *, row_number() OVER (PARTITION BY point, implementation, comparability_key, protocol ORDER BY bytes, segment DESC) AS place,
         lag(segment) OVER up AS smaller, lag(bytes) OVER up AS smaller_bytes, lead(segment) OVER up AS larger,
         lead(bytes) OVER up AS larger_bytes
    FROM t
   WHERE segment > 0
  WINDOW up AS (PARTITION BY point, implementation, comparability_key, protocol ORDER BY segment)
)
SELECT b.implementation, b.params ->> '$.model' AS model, b.params ->> '$.context' AS context, b.params ->> '$.precision' AS precision,
       b.device, printf('%g', b.segment) AS best, b.bytes / 1073741824 AS peak, coalesce(printf('%g', b.smaller), 'none') AS smaller,
       coalesce(printf('%.4g GiB', b.smaller_bytes / 1073741824), 'nothing') AS smaller_peak,
       coalesce(printf('%g', b.larger), 'none') AS larger, coalesce(printf('%.4g', b.larger_bytes / 1073741824), 'no') AS larger_peak,
       coalesce(printf('%.3g', b.time_ms / k.time_ms), '?') AS slower,
       coalesce(printf('%.4g', k.bytes / 1073741824), 'more than there is') AS kept_peak, printf('%g', b.forwards) AS forwards,
       coalesce(printf('%g', k.forwards), '?') AS layers, max(b.run_uid, coalesce(k.run_uid, '')) AS run_uid
  FROM sizes b
  LEFT JOIN t k ON k.point = b.point AND k.implementation = b.implementation AND k.comparability_key = b.comparability_key
               AND k.protocol = b.protocol AND k.segment = 0
 WHERE b.place = 1
 ORDER BY model, context, b.device, b.implementation;
