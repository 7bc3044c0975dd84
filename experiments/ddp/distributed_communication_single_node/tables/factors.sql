-- sentence: {implementation} on {ranks} ranks ({device}, protocol {protocol}): a single all-reduce of {small_mb} MB takes {small_ms} ms, one of
--   {large_mb} MB {large_ms} ms, {ratio} times as long; bus bandwidth {goes} from {small_bus} to {large_bus} GB/s. {fit}.
-- experiment: distributed_communication_single_node
-- fills: *
-- columns: implementation|1|code|left; ranks|1|d|right; device|1|s|left; protocol|1|s|left; small_mb|1|s|right; small_ms|ms|.3g|right;
--   large_mb|1|s|right; large_ms|ms|.3g|right; ratio|×|ratio(ratio_low, ratio_high)|right; more|×|.4g|right; small_bus|GB/s|.3g|right; large_bus|GB/s|.3g|right;
--   goes|1|s|left; fit|1|s|left
WITH point AS (
  SELECT v.*, v.params ->> '$.bytes' AS bytes,
         (v.params ->> '$.bytes') * 1e-6 / v.time_ms * 2.0 * (v.world_size - 1) / v.world_size AS bus,
         row_number() OVER (PARTITION BY v.implementation, v.world_size, v.device, v.protocol
                                ORDER BY v.params ->> '$.bytes', v.attempt_uid) AS up,
         row_number() OVER (PARTITION BY v.implementation, v.world_size, v.device, v.protocol
                                ORDER BY v.params ->> '$.bytes' DESC, v.attempt_uid) AS down
    FROM v_measured v
   WHERE v.experiment = ?1 AND v.is_good AND v.world_size > 1 AND v.params ->> '$.operation' = 'all_reduce'
     AND NOT EXISTS (SELECT 1 FROM json_each(v.facts, '$.noise') j WHERE j.value = 'bimodal')
)
SELECT a.implementation, a.world_size AS ranks, a.device, a.protocol, printf('%.4g', a.bytes * 1e-6) AS small_mb, a.time_ms AS small_ms, printf('%.4g', b.bytes * 1e-6) AS large_mb,
       b.time_ms AS large_ms, b.time_ms / a.time_ms AS ratio, b.low_ms / a.high_ms AS ratio_low, b.high_ms / a.low_ms AS ratio_high,
       1.0 * b.bytes / a.bytes AS more, a.bus AS small_bus,
       b.bus AS large_bus, iif(b.bus > a.bus, 'rises', 'falls') AS goes,
       CASE WHEN l.alpha IS NULL THEN 'There are too few sizes for a fit'
            WHEN NOT l.fits
              THEN printf('α + S/β does not fit the back-to-back times (off by up to %.2g %%), so neither is given', 100 * l.worst)
            ELSE printf('%sA line through %d sizes queued back to back has %.3g µs a call and %.3g GB/s: by it latency is %.2g %% of the smallest and %.2g %% of the largest (%s)',
                        iif(l.alpha > a.bytes * l.per_byte AND l.alpha < b.bytes * l.per_byte,
                            'The smallest message is bound by latency, the largest by bandwidth. ', ''),
                        l.sizes, 1e6 * l.alpha, 1e-9 / l.per_byte, 100 * l.alpha / (l.alpha + a.bytes * l.per_byte),
                        100 * l.alpha / (l.alpha + b.bytes * l.per_byte),
                        iif(l.sizes > 2 OR l.alpha = 0, printf('off by up to %.2g %%%s', 100 * l.worst,
                               coalesce((SELECT printf('; the largest alone runs at %.3g GB/s', 1e-9 * b.bytes * 2.0 * (b.world_size - 1) / b.world_size / q.value) FROM metric q
                                          WHERE q.attempt_id = b.attempt_id AND q.name = 'pipelined' ORDER BY q.rank LIMIT 1), '')), 'two sizes leave no error to judge it by')) END AS fit,
       b.run_uid
  FROM point a
  JOIN point b ON b.implementation = a.implementation AND b.world_size = a.world_size AND b.device = a.device
              AND b.protocol = a.protocol AND b.down = 1
  LEFT JOIN v_transfer_law l ON l.operation = 'all_reduce' AND l.series = 'pipelined' AND l.implementation = a.implementation
                       AND l.ranks = a.world_size AND l.comparability_key = a.comparability_key AND l.protocol IS a.protocol
 WHERE a.up = 1 AND b.bytes > a.bytes
 ORDER BY a.device, a.protocol, a.world_size, a.implementation;
