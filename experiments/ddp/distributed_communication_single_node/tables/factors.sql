-- sentence: {implementation} on {ranks} ranks ({device}, protocol {protocol}): an all-reduce of {small} bytes takes {small_ms} ms, one of
--   {large} bytes {large_ms} ms, {ratio} times as long for {more} times as much; bus bandwidth goes from {small_bus} to {large_bus}
--   GB/s. By the law of back-to-back calls over {sizes} sizes, {alpha} µs a call and {beta} GB/s, latency is {small_share} % of the
--   smallest message and {large_share} % of the largest; {worst}.
-- experiment: distributed_communication_single_node
-- fills: *
-- columns: implementation|1|code|left; ranks|1|d|right; device|1|s|left; protocol|1|s|left; small|B|d|right; small_ms|ms|.3g|right;
--   large|B|d|right; large_ms|ms|.3g|right; ratio|×|ratio(ratio_low, ratio_high)|right; more|×|.4g|right; small_bus|GB/s|.3g|right; large_bus|GB/s|.3g|right;
--   sizes|1|d|right; alpha|µs|.3g|right; beta|GB/s|.3g|right; small_share|%|.2g|right; large_share|%|.2g|right; worst|1|s|left
WITH point AS (
  SELECT v.*, v.params ->> '$.bytes' AS bytes,
         (v.params ->> '$.bytes') * 1e-6 / v.time_ms * 2.0 * (v.world_size - 1) / v.world_size AS bus,
         row_number() OVER (PARTITION BY v.implementation, v.world_size, v.device, v.protocol
                                ORDER BY v.params ->> '$.bytes', v.attempt_uid) AS up,
         row_number() OVER (PARTITION BY v.implementation, v.world_size, v.device, v.protocol
                                ORDER BY v.params ->> '$.bytes' DESC, v.attempt_uid) AS down
    FROM v_measured v
   WHERE v.experiment = ?1 AND v.is_good AND v.world_size > 1 AND v.params ->> '$.operation' = 'all_reduce'
)
SELECT a.implementation, a.world_size AS ranks, a.device, a.protocol, a.bytes AS small, a.time_ms AS small_ms, b.bytes AS large,
       b.time_ms AS large_ms, b.time_ms / a.time_ms AS ratio, b.low_ms / a.high_ms AS ratio_low, b.high_ms / a.low_ms AS ratio_high,
       1.0 * b.bytes / a.bytes AS more, a.bus AS small_bus,
       b.bus AS large_bus, l.sizes,
       1e6 * l.alpha AS alpha, 1e-9 / l.per_byte AS beta, 100 * l.alpha / (l.alpha + a.bytes * l.per_byte) AS small_share,
       100 * l.alpha / (l.alpha + b.bytes * l.per_byte) AS large_share, 
       iif(l.sizes > 2 OR l.alpha = 0, printf('the law is %.2g %% off at most', 100 * l.worst), 'of two sizes nothing says how far a law is off') AS worst, b.run_uid
  FROM point a
  JOIN point b ON b.implementation = a.implementation AND b.world_size = a.world_size AND b.device = a.device
              AND b.protocol = a.protocol AND b.down = 1
  JOIN v_transfer_law l ON l.operation = 'all_reduce' AND l.series = 'pipelined' AND l.implementation = a.implementation
                       AND l.ranks = a.world_size AND l.comparability_key = a.comparability_key AND l.protocol IS a.protocol
 WHERE a.up = 1 AND b.bytes > a.bytes
 ORDER BY a.device, a.protocol, a.world_size, a.implementation;
