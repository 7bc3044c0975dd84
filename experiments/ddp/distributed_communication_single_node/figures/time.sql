-- figure: lines
-- title: Time over size
-- caption: Median time of single calls with its 95 % interval, of the slowest rank at each; checked results only.
-- experiment: distributed_communication_single_node
-- fills: *
-- x: bytes|B|log2
-- y: time|ms|log10
-- interval: low, high
-- series: implementation
-- panel: operation, protocol, device
SELECT params ->> '$.bytes' AS bytes, iif(is_good, time_ms, NULL) AS time, low_ms AS low, high_ms AS high,
       implementation || ', ' || world_size || ' ranks' AS implementation, params ->> '$.operation' AS operation, protocol,
       device, status, run_uid
  FROM v_measured
 WHERE experiment = ?1 AND ending <> 'not_asked'
 ORDER BY operation <> 'all_reduce', operation, protocol, device, row_order, world_size, bytes;
