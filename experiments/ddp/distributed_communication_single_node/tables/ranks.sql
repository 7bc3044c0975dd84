-- title: Times by number of ranks
-- caption: Median time of single calls, of the slowest rank at each, and the bus bandwidth that it makes, on 2, 4, 6 and 8 ranks side by side.
-- experiment: distributed_communication_single_node
-- fills: *
-- columns: operation?|1|s|left; bytes|B|d|right; implementation|1|code|left; r2 as 2 ranks|ms|.4g|right; r4 as 4|ms|.4g|right;
--   r6 as 6|ms|.4g|right; r8 as 8|ms|.4g|right; bus2 as bus, 2 ranks|GB/s|.3g|right; bus4 as 4|GB/s|.3g|right; bus6 as 6|GB/s|.3g|right;
--   bus8 as 8|GB/s|.3g|right; protocol?|1|s|left; device?|1|s|left
-- note: `missing`: nobody has measured it; which command would, the next table says.
WITH one AS (
  SELECT *, params ->> '$.operation' AS operation, params ->> '$.bytes' AS bytes,
         iif(is_good, time_ms, iif(ending = 'not_asked', coalesce(message, status), replace(status, '_', ' '))) AS cell,
         iif(is_good, (metrics ->> '$.payload_bytes') * 1e-6 / time_ms * (metrics ->> '$.bus_factor'), '–') AS bus
    FROM v_measured
   WHERE experiment = ?1 AND world_size > 1
)
SELECT operation, bytes, implementation,
       coalesce(max(cell) FILTER (WHERE world_size = 2), 'missing') AS r2, coalesce(max(cell) FILTER (WHERE world_size = 4), 'missing') AS r4,
       coalesce(max(cell) FILTER (WHERE world_size = 6), 'missing') AS r6, coalesce(max(cell) FILTER (WHERE world_size = 8), 'missing') AS r8,
       coalesce(max(bus) FILTER (WHERE world_size = 2), '–') AS bus2, coalesce(max(bus) FILTER (WHERE world_size = 4), '–') AS bus4,
       coalesce(max(bus) FILTER (WHERE world_size = 6), '–') AS bus6, coalesce(max(bus) FILTER (WHERE world_size = 8), '–') AS bus8,
       protocol, device, max(run_uid) AS run_uid
  FROM one
 GROUP BY operation, bytes, implementation, protocol, device, comparability_key
HAVING sum(is_good) > 0
 ORDER BY operation <> 'all_reduce', operation, bytes, min(row_order);
