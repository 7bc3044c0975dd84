-- title: Latency and bandwidth that the times follow
-- caption: α and β of t = α + S / β over the sizes measured, by least squares of the relative error, no α below zero; `bus` is β times
--   the factor of bus bandwidth; `worst` is how far the law is from a measured time at most; – of two sizes, which a law with two numbers always meets.
-- experiment: distributed_communication_single_node
-- columns: operation?|1|s|left; ranks|1|d|right; implementation|1|code|left; series|1|s|left; sizes|1|d|right;
--   smallest|B|d|right; largest|B|d|right; alpha as α|µs|.3g|right; beta as β|GB/s|.3g|right; bus|GB/s|.3g|right; worst|%|.2g|right;
--   protocol?|1|s|left; device?|1|s|left
-- empty: Times of two sizes at least make a law; `syslab run distributed_communication_single_node` would tell.
-- note: A summary, no forecast: times between the sizes can be percents off, which is more than plans differ by.
SELECT operation, ranks, implementation, iif(series = 'time', 'one at a time', 'back to back') AS series, sizes, smallest,
       largest, 1e6 * alpha AS alpha, 1e-9 / per_byte AS beta,
       1e-9 / per_byte * CASE operation WHEN 'all_reduce' THEN 2.0 * (ranks - 1) / ranks WHEN 'broadcast' THEN 1
                                        ELSE 1.0 * (ranks - 1) / ranks END AS bus,
       iif(sizes > 2 OR alpha = 0, 100 * worst, '–') AS worst, protocol, device, run_uid
  FROM v_transfer_law
 WHERE ?1 = 'distributed_communication_single_node' AND ranks > 1
 ORDER BY operation <> 'all_reduce', operation, ranks, row_order, series DESC;
