-- title: Profiling (nsys_profile)
-- caption: Phases by the clock (synchronised) and by the sum of kernels, medians; kernels and matrix products a step;
--   profiling overhead.
-- experiment: nsys_profile
-- fills: a
-- columns: model|1|s|left; batch?|1|d|right; context|1|d|right; precision|1|s|left; mode?|1|s|left;
--   implementation|1|code|left; forward|ms|.4g|right; forward_busy as kernels of forward|ms|.4g|right;
--   step|ms|.4g|right; step_busy as kernels of step|ms|.4g|right; forward_launches as launches forward|1|d|right;
--   step_launches as launches step|1|d|right; forward_products as products forward|1|d|right;
--   forward_expected as 9L + 1|1|d|right; step_products as products step|1|d|right; step_expected as 27L + 3|1|d|right;
--   overhead as profiling overhead|%|ci(overhead_low, overhead_high)|right; source as recorded by|1|s|left;
--   why?|1|s|left; device?|1|s|left; status|1|status|left
-- note: Matrix products as the program calls them: `host_eager` and `eager` as the baseline does; `host` and `fused`
--   join Q, K, V and W1, W3 and have fused attention: 4L + 1 in forward.
-- note: Profiling overhead: median of six recorded steps over seven unrecorded ones between them, less one, with its
--   95 % interval.
-- note: On the CPU, and on a GPU without CUPTI, a kernel is an operator call, timed by its range or by events.
WITH t AS MATERIALIZED (
  SELECT v.*, metrics AS found,
         o.value AS overhead, o.ci_low AS overhead_low, o.ci_high AS overhead_high
    FROM v_measured v
    LEFT JOIN metric o ON o.attempt_id = v.attempt_id AND o.name = 'recording_overhead' AND v.ending IS NOT 'failed'
   WHERE v.experiment = ?1
)
SELECT params ->> '$.model' AS model, params ->> '$.batch' AS batch,
       params ->> '$.context' AS context, params ->> '$.precision' AS precision,
       params ->> '$.mode' AS mode, implementation, 1e3 * (found ->> '$.forward') AS forward,
       1e3 * (found ->> '$.forward_busy') AS forward_busy, 1e3 * (found ->> '$.step_plain') AS step,
       1e3 * (found ->> '$.step_busy') AS step_busy,
       CAST(round(found ->> '$.forward_launches') AS INTEGER) AS forward_launches,
       CAST(round(found ->> '$.step_launches') AS INTEGER) AS step_launches,
       CAST(round(found ->> '$.forward_products') AS INTEGER) AS forward_products,
       CAST(found ->> '$.forward_products_expected' AS INTEGER) AS forward_expected,
       CAST(round(found ->> '$.step_products') AS INTEGER) AS step_products,
       CAST(found ->> '$.step_products_expected' AS INTEGER) AS step_expected,
       100 * overhead AS overhead, 100 * overhead_low AS overhead_low, 100 * overhead_high AS overhead_high,
       facts ->> '$.trace.source' AS source, facts ->> '$.trace.why' AS why, device, status, message, run_uid
  FROM t
 ORDER BY found ->> '$.parameters', model, context, precision, mode, device, protocol, implementation;
