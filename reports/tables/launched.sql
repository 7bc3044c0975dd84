-- title: Kernels that files of yours ran on a GPU
-- caption: Of one call, which was not timed, by name and how often it was launched, as the file's own process told: a
--   hint for whoever reads, no proof.
-- experiment: *
-- empty: No file of somebody's ran a kernel on a GPU.
-- columns: implementation|1|code|left; kernel|1|s|left; launches|1|d|right; device?|1|s|left
SELECT v.implementation, k.value ->> '$.name' AS kernel,
       max(k.value ->> '$.launches') AS launches, v.device, max(v.run_uid) AS run_uid
  FROM v_measured v, json_each(v.facts, '$.code.kernels') k
 WHERE v.experiment = ?1 AND v.is_good AND v.facts ->> '$.code.told_by' IS NOT NULL
 GROUP BY v.device, v.implementation, k.value ->> '$.name'
 ORDER BY v.device, v.implementation, min(k.key), kernel;
