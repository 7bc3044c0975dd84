-- sentence: The standard deviation of a step is {middle} % of its mean (median of {cases} configurations), at most
--   {most} % ({worst}, {implementation}, context {context}, {precision}, protocol {protocol}, {device}){phase}.
-- experiment: benchmarking_script
-- fills: b
-- columns: middle|%|.2g|right; cases|1|d|right; most|%|.2g|right; worst|1|s|left; context|1|d|right;
--   precision|1|s|left; implementation|1|code|left; phase|1|s|left; protocol|1|s|left; device|1|s|left
WITH t AS MATERIALIZED (
  SELECT v.*, v.params ->> '$.model' AS name, 1e3 * m.value AS mean,
         1e3 * d.value AS sd, 100 * d.value / m.value AS share,
         count(*) OVER (PARTITION BY v.comparability_key, v.protocol) AS many
    FROM v_measured v
    JOIN metric m ON m.attempt_id = v.attempt_id AND m.name = 'time_mean'
    JOIN metric d ON d.attempt_id = v.attempt_id AND d.name = 'time_stddev'
   WHERE v.experiment = ?1 AND v.is_good AND v.params ->> '$.warmup' >= 5
),
-- The machine with most configurations, a GPU before a CPU, and of others the models that it has not: what the table of
-- phases shows.
main AS (
  SELECT *, first_value(comparability_key) OVER best AS main_key, first_value(protocol) OVER best AS main_protocol,
         first_value(device) OVER best AS main_device
    FROM t
  WINDOW best AS (ORDER BY gpu_name IS NULL, many DESC, comparability_key, protocol)
),
shown AS (
  SELECT * FROM main m
   WHERE (comparability_key = main_key AND protocol = main_protocol)
      OR (gpu_name IS NOT NULL AND name NOT IN (SELECT name FROM main x WHERE x.comparability_key = x.main_key
                                                                          AND x.protocol = x.main_protocol))
),
-- One hand-out asks for 10B, the other for xl25: a row for each, named by its own, which the other's write-up leaves
-- out.
asked AS (SELECT column1 AS model, column2 AS other FROM (VALUES ('10B', 'xl25'), ('xl25', '10B'))),
spread AS (
  SELECT a.model, s.*, row_number() OVER (PARTITION BY a.model ORDER BY share, attempt_uid) AS place,
         count(*) OVER (PARTITION BY a.model) AS cases
    FROM asked a
    JOIN shown s ON s.name <> a.other
),
phases AS (
  SELECT s.model, printf('; of a phase alone up to %.2g %% (%s of %s, `%s`: %.3g ± %.2g ms%s)', 100 * d.value / m.value,
                         substr(d.name, 1, length(d.name) - 7), s.name, s.implementation, 1e3 * m.value, 1e3 * d.value,
                         -- What the profile has of its kernels tells how much of it waits for launches.
                         coalesce((SELECT printf(' with %d launches of %.3g ms of work', round(l.value), 1e3 * k.value)
                                     FROM v_measured p
                                     JOIN metric k ON k.attempt_id = p.attempt_id
                                                  AND k.name = substr(d.name, 1, length(d.name) - 7) || '_busy'
                                     JOIN metric l ON l.attempt_id = p.attempt_id
                                                  AND l.name = substr(d.name, 1, length(d.name) - 7) || '_launches'
                                    WHERE p.experiment = 'nsys_profile' AND p.is_good
                                      AND p.implementation = s.implementation
                                      AND p.comparability_key = s.comparability_key
                                      AND p.params = json_remove(s.params, '$.warmup')
                                      AND k.value < 0.8 * m.value), '')) AS said,
         row_number() OVER (PARTITION BY s.model ORDER BY d.value / m.value DESC, d.name) AS place
    FROM spread s
    JOIN metric d ON d.attempt_id = s.attempt_id AND d.name IN ('forward_stddev', 'backward_stddev', 'optimizer_stddev')
    JOIN metric m ON m.attempt_id = s.attempt_id AND m.name = substr(d.name, 1, length(d.name) - 6) || 'mean'
)
SELECT max(iif(place = (cases + 1) / 2, share, NULL)) AS middle, cases, max(iif(place = cases, share, NULL)) AS most,
       max(iif(place = cases,
               name || iif(device = main_device, '', ', ' || replace(replace(device, 'NVIDIA ', ''), ' 80GB HBM3', '')),
               NULL)) AS worst, max(iif(place = cases, params ->> '$.context', NULL)) AS context,
       max(iif(place = cases, params ->> '$.precision', NULL)) AS precision,
       max(iif(place = cases, implementation, NULL)) AS implementation,
       coalesce((SELECT p.said FROM phases p WHERE p.model = s.model AND p.place = 1), '') AS phase,
       max(iif(place = cases, protocol, NULL)) AS protocol, max(main_device) AS device, model, max(run_uid) AS run_uid
  FROM spread s
 WHERE cases > 1 AND (model = 'xl25' OR EXISTS (SELECT 1 FROM shown x WHERE x.name IN ('10B', 'xl25')))
 GROUP BY model
 ORDER BY model;
