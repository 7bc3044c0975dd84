-- title: Collectives on one machine
-- caption: Median time of single calls, each waited for, with its 95 % interval, and of a call among 20 back to back; of the
--   slowest rank at each. `algbw` is bytes over time, `busbw` that times 2(n−1)/n for all_reduce, (n−1)/n for reduce_scatter and
--   all_gather and 1 for broadcast, n being the ranks (nccl-tests): what a rank's link carries.
-- experiment: distributed_communication_single_node
-- fills: *
-- columns: operation?|1|s|left; ranks|1|d|right; bytes|B|d|right; implementation|1|code|left;
--   time_ms as time|ms|ci(low_ms, high_ms)|right; pipelined|ms|ci(pipelined_low, pipelined_high)|right;
--   algbw|GB/s|.3g|right; busbw|GB/s|.3g|right; busbw_pipelined as busbw, pipelined|GB/s|.3g|right; vs_peer as vs gloo?|×|ci(vs_peer_low, vs_peer_high)|right;
--   n|1|d|right; noise?|1|s|left; protocol?|1|s|left; device?|1|s|left; status|1|status|left
-- note: Every element of every rank's result is whole numbers' exact sum, or the row says so; in the timed samples chosen
--   by chance, too.
SELECT v.params ->> '$.operation' AS operation, v.world_size AS ranks, v.params ->> '$.bytes' AS bytes, v.implementation,
       v.time_ms, v.low_ms, v.high_ms, 1e3 * p.value AS pipelined, 1e3 * p.ci_low AS pipelined_low,
       1e3 * p.ci_high AS pipelined_high, b.value * 1e-6 / v.time_ms AS algbw,
       b.value * 1e-6 / v.time_ms * f.value AS busbw, b.value * 1e-9 / p.value * f.value AS busbw_pipelined, v.vs_peer, v.vs_peer_low, v.vs_peer_high, v.n,
       v.noise, v.protocol, v.device, v.status, v.message, v.run_uid
  FROM v_measured v
  LEFT JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'pipelined' AND v.status <> 'check_failed'
                    AND p.rank = (SELECT min(q.rank) FROM metric q WHERE q.attempt_id = v.attempt_id AND q.name = 'pipelined')
  LEFT JOIN metric b ON b.attempt_id = v.attempt_id AND b.name = 'payload_bytes' AND b.rank = 0
  LEFT JOIN metric f ON f.attempt_id = v.attempt_id AND f.name = 'bus_factor' AND f.rank = 0
 WHERE v.experiment = ?1
 ORDER BY operation <> 'all_reduce', operation, ranks, bytes, v.row_order;
