-- title: Latency and bandwidth
-- caption: Least-squares fit (relative error, α ≥ 0) of t = α + S / β.
-- about bus: `bus` is β times the bus bandwidth factor.
-- about worst: `worst` is the largest relative error at a measured size, – where two sizes leave none.
-- experiment: distributed_communication_single_node
-- columns: operation?|1|s|left; ranks|1|d|right; implementation|1|code|left; series|1|s|left; sizes|1|d|right;
--   smallest|B|d|right; largest|B|d|right; alpha as α|µs|.3g|right; beta as β|GB/s|.3g|right; bus|GB/s|.3g|right;
--   worst|%|.2g|right; fit|1|s|left; protocol?|1|s|left; device?|1|s|left
-- empty: A fit needs two sizes whose samples have one mode: `syslab run distributed_communication_single_node`.
-- note: A fit that is off by more than 25 % at a measured size is marked and should not be used between the sizes.
-- note: A size whose samples have two modes is in no fit; `fit` names it.
SELECT operation, ranks, implementation, iif(series = 'time', 'one at a time', 'back to back') AS series,
       sizes, smallest, largest, 1e6 * alpha AS alpha, 1e-9 / per_byte AS beta,
       1e-9 / per_byte * CASE operation WHEN 'all_reduce' THEN 2.0 * (ranks - 1) / ranks WHEN 'broadcast' THEN 1
                                        ELSE 1.0 * (ranks - 1) / ranks END AS bus,
       iif(sizes > 2 OR alpha = 0, 100 * worst, '–') AS worst,
       CASE WHEN NOT fits THEN 'does not fit' WHEN sizes = 2 AND alpha > 0 THEN 'two sizes only' ELSE 'fits' END
       || coalesce('; without ' || left_out || ' B (two modes)', '') AS fit, protocol, device, run_uid
  FROM v_transfer_law
 WHERE ?1 = 'distributed_communication_single_node' AND ranks > 1
 ORDER BY operation <> 'all_reduce', operation, ranks, row_order, series DESC;
