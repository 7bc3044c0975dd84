-- figure: lines
-- title: Collectives: time over size
-- caption: Median time of single calls of fp32 with its 95 % interval, slowest rank. Protocol cs336: 5 calls of
--   warm-up, 10 measured. Sizes whose samples have two modes are left out.
-- experiment: distributed_communication_single_node
-- fills: *
-- x: bytes|B|log2
-- y: time|ms|log10
-- interval: low, high
-- series: implementation
-- panel: operation, protocol, device
SELECT params ->> '$.bytes' AS bytes, iif(is_good AND NOT two_modes, time_ms, NULL) AS time,
       low_ms AS low, high_ms AS high,
       implementation || ', ' || world_size || ' ranks' AS implementation,
       params ->> '$.operation' AS operation, protocol,
       device, iif(is_good AND two_modes, 'two modes', status) AS status, run_uid
  FROM (SELECT v.*, EXISTS (SELECT 1 FROM json_each(v.facts, '$.noise') j WHERE j.value = 'bimodal') AS two_modes
          FROM v_measured v)
 WHERE experiment = ?1 AND ending <> 'not_asked'
 ORDER BY operation <> 'all_reduce', operation, protocol, device, row_order, world_size, bytes;
