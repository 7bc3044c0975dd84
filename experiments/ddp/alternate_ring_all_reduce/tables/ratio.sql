-- sentence: Forwarding whole tensors takes T = (n−1) · S / W, the standard ring 2(n−1)/n · S / W: a factor of n/2. On
--   {ranks} ranks with {size} that predicts {expected}×. Measured ({device}, protocol {protocol}): {ratio}{verdict}.
-- experiment: alternate_ring_all_reduce
-- fills: *
-- columns: ranks|1|d|right; size|1|s|left; bytes|B|d|right; expected|×|.3g|right; ratio|1|s|left; verdict|1|s|left;
--   whole|ms|.3g|right; parts|ms|.3g|right; device|1|s|left; protocol|1|s|left
WITH pair AS (
  SELECT w.world_size AS ranks, w.params ->> '$.bytes' AS bytes,
         w.world_size / 2.0 AS expected, w.time_ms / p.time_ms AS ratio,
         w.low_ms / p.high_ms AS ratio_low, w.high_ms / p.low_ms AS ratio_high,
         w.time_ms AS whole, p.time_ms AS parts, w.device, w.protocol, w.run_uid,
         row_number() OVER (PARTITION BY w.world_size, w.device, w.protocol
                                ORDER BY w.params ->> '$.bytes' DESC) AS place
    FROM v_measured w
    JOIN v_measured p ON p.experiment = ?1 AND p.case_id = w.case_id AND p.world_size = w.world_size
                     AND p.comparability_key = w.comparability_key
                     AND p.protocol IS w.protocol AND p.implementation = 'parts'
                     AND p.is_good
   WHERE w.experiment = ?1 AND w.implementation = 'whole' AND w.is_good AND w.world_size > 1
)
SELECT ranks, bytes, iif(bytes % 1048576 = 0, printf('%d MiB', bytes / 1048576), bytes || ' bytes') AS size, expected,
       iif(ratio_low IS NULL, printf('%.3g×', ratio), printf('%.2f to %.2f×', ratio_low, ratio_high)) AS ratio,
       CASE WHEN ratio_low IS NULL THEN ''
            WHEN expected BETWEEN ratio_low AND ratio_high AND ratio_high > 1.2 * ratio_low
              THEN ', an interval too wide to confirm it'
            WHEN expected BETWEEN ratio_low AND ratio_high THEN ', as predicted'
            WHEN ratio_low > expected THEN ', more than that'
            ELSE ', less than that' END AS verdict, whole, parts, device, protocol, run_uid
  FROM pair
 WHERE place = 1
 -- On two ranks both are the same; of more, the surest.
 ORDER BY device, ranks = 2, ratio_high / ratio_low, protocol;
