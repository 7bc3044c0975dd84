-- title: Matrix product ceiling
-- caption: Median time of one square matrix product with its 95 % interval.
-- about of_ceiling: `of ceiling` is relative to the best rate measured on this kind of machine in that dtype (size
--   ≥ 1024).
-- experiment: ceiling_gemm
-- columns: size|1|d|right; dtype|1|s|left; @timed; tflops as rate|TFLOP/s|.3g|right;
--   of_ceiling as of ceiling|%|.3g|right; vs_peer as vs baseline|×|ci(vs_peer_low, vs_peer_high)|right;
--   peer as baseline|1|code|left; vs_from as speed-up from?|1|s|left; @checked
-- note: The rate counts 2·size³ operations. Half precision is read as it is stored and multiplied in fp32.
SELECT m.params ->> '$.size' AS size, m.params ->> '$.dtype' AS dtype,
       m.implementation, time_ms, low_ms, high_ms, tflops,
       100 * tflops / c.value AS of_ceiling, vs_peer, vs_peer_low, vs_peer_high, vs_from, coalesce(peer, '–') AS peer,
       worst_error, bound, scratch, n, checked_percent, noise, m.protocol, device, status, message, m.run_uid
  FROM v_measured m
  LEFT JOIN v_ceiling c ON c.comparability_key = m.comparability_key AND c.metric = 'tflops'
                       AND c.dtype = m.params ->> '$.dtype'
 WHERE m.experiment = ?1
 ORDER BY size, m.params ->> '$.dtype' <> 'fp32', dtype, row_order;
