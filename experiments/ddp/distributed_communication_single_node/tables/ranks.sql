-- title: Collectives by number of ranks
-- caption: Median time of single calls, slowest rank, and bus bandwidth on 2, 4, 6 and 8 ranks.
-- experiment: distributed_communication_single_node
-- fills: *
-- columns: operation?|1|s|left; bytes|B|d|right; implementation|1|code|left; r2 as 2 ranks|ms|.4g|right;
--   r4 as 4|ms|.4g|right; r6 as 6|ms|.4g|right; r8 as 8|ms|.4g|right; bus2 as bus, 2 ranks|GB/s|.3g|right;
--   bus4 as 4|GB/s|.3g|right; bus6 as 6|GB/s|.3g|right; bus8 as 8|GB/s|.3g|right; protocol?|1|s|left; device?|1|s|left
-- note: `missing`: not measured, see the next table for the command. `two modes`: the samples have a fast and a slow
--   mode and no one median.
WITH one AS (
  SELECT *, params ->> '$.operation' AS operation, params ->> '$.bytes' AS bytes,
         iif(is_good, iif(two_modes, 'two modes', time_ms),
             iif(ending = 'not_asked', coalesce(message, status), replace(status, '_', ' '))) AS cell,
         iif(is_good AND NOT two_modes,
             (metrics ->> '$.payload_bytes') * 1e-6 / time_ms * (metrics ->> '$.bus_factor'), '–') AS bus
    FROM (SELECT v.*, EXISTS (SELECT 1 FROM json_each(v.facts, '$.noise') j WHERE j.value = 'bimodal') AS two_modes
            FROM v_measured v)
   WHERE experiment = ?1 AND world_size > 1
)
SELECT operation, bytes, implementation,
       coalesce(max(cell) FILTER (WHERE world_size = 2), 'missing') AS r2,
       coalesce(max(cell) FILTER (WHERE world_size = 4), 'missing') AS r4,
       coalesce(max(cell) FILTER (WHERE world_size = 6), 'missing') AS r6,
       coalesce(max(cell) FILTER (WHERE world_size = 8), 'missing') AS r8,
       coalesce(max(bus) FILTER (WHERE world_size = 2), '–') AS bus2,
       coalesce(max(bus) FILTER (WHERE world_size = 4), '–') AS bus4,
       coalesce(max(bus) FILTER (WHERE world_size = 6), '–') AS bus6,
       coalesce(max(bus) FILTER (WHERE world_size = 8), '–') AS bus8, protocol, device, max(run_uid) AS run_uid
  FROM one
 GROUP BY operation, bytes, implementation, protocol, device, comparability_key
HAVING sum(is_good) > 0
 ORDER BY operation <> 'all_reduce', operation, bytes, min(row_order);
