-- title: All-reduce by ring: parts and whole tensors
-- caption: Median time with its 95 % interval, slowest rank.
-- about sent: `sent` per rank: 2(n−1)/n · S in parts, (n−1) · S as whole tensors.
-- about rate: `rate` is sent over time, the W of T = sent / W.
-- about sent, expected: `shm` is no ring and has no formula (`sent` is what a ring would send).
-- experiment: alternate_ring_all_reduce
-- columns: ranks|1|d|right; bytes|B|d|right; @timed; sent|B|d|right; rate|GB/s|.3g|right;
--   vs_parts as time over parts|×|ci(vs_parts_low, vs_parts_high)|right; expected as by the formula|×|.3g|right;
--   n|1|d|right; noise?|1|s|left; protocol?|1|s|left; device?|1|s|left; status|1|status|left
-- note: With fewer cores than ranks, ranks take turns and W falls for both rings.
WITH v AS (
  SELECT *, params ->> '$.bytes' AS bytes,
         CASE implementation WHEN 'whole' THEN (world_size - 1) * (params ->> '$.bytes')
                             ELSE 2 * (world_size - 1) * (params ->> '$.bytes') / world_size END AS sent
    FROM v_measured
   WHERE experiment = ?1
)
SELECT v.world_size AS ranks, v.bytes, v.implementation, v.time_ms, v.low_ms, v.high_ms, v.sent,
       v.sent * 1e-6 / v.time_ms AS rate, iif(v.is_good, v.time_ms / b.time_ms, NULL) AS vs_parts,
       iif(v.is_good AND v.attempt_id <> b.attempt_id, v.low_ms / b.high_ms, NULL) AS vs_parts_low,
       iif(v.is_good AND v.attempt_id <> b.attempt_id, v.high_ms / b.low_ms, NULL) AS vs_parts_high,
       CASE WHEN v.world_size = 1 THEN '–' WHEN v.implementation = 'whole' THEN v.world_size / 2.0
            WHEN v.implementation = 'parts' THEN 1.0 ELSE '–' END AS expected, v.n, v.noise,
       v.protocol, v.device, v.status, v.message, v.facts -> '$.needs' AS needs, v.run_uid
  FROM v
  LEFT JOIN v b ON b.case_id = v.case_id AND b.world_size = v.world_size AND b.comparability_key = v.comparability_key
               AND b.protocol IS v.protocol AND b.implementation = 'parts' AND b.is_good
 ORDER BY ranks, v.bytes, v.row_order;
