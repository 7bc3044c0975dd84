-- title: Profiling: kernels by cumulative time
-- caption: The top four kernels of each phase, of the model and context below: calls and time of one step, mean time of
--   a call, share of the phase. (c) to (e) add up all kernels of an operation; here each is alone. AdamW of `eager`
--   runs on pieces of at most 4,194,304 elements: 223 for the 219 tensors of medium.
-- experiment: nsys_profile
-- fills: b
-- columns: model?|1|s|left; context?|1|d|right; precision?|1|s|left; implementation|1|code|left; phase|1|s|left;
--   operation|1|code|left; name as kernel|1|code|left; calls|1|s|right; total|ms|.4g|right; mean|ms|.3g|right;
--   least as min|ms|.3g|right; most as max|ms|.3g|right; share|%|.3g|right; device?|1|s|left
-- note: `operation`: the operator a kernel belongs to, e.g. `attention.scores.gemm`.
WITH chosen AS (
  SELECT attempt_id, row_number() OVER (PARTITION BY comparability_key, implementation
                                            ORDER BY parameters DESC, context DESC,
                                                     precision <> 'fp32', attempt_uid DESC) AS place
    FROM (SELECT v.attempt_id, v.attempt_uid, v.comparability_key,
                 v.implementation, v.params ->> '$.context' AS context,
                 v.params ->> '$.precision' AS precision, p.value AS parameters
            FROM v_measured v
            JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
           WHERE v.experiment = ?1 AND v.is_good)
),
ranked AS (
  SELECT k.*, row_number() OVER (PARTITION BY k.attempt_id, k.phase ORDER BY k.ms DESC, k.kernel) AS place
    FROM v_kernel k
    JOIN chosen c ON c.attempt_id = k.attempt_id AND c.place = 1
   WHERE k.phase IN ('forward', 'backward', 'optimizer')
)
SELECT params ->> '$.model' AS model, params ->> '$.context' AS context,
       params ->> '$.precision' AS precision, implementation, phase,
       operation, name, printf('%.4g', calls_a_step) AS calls, ms AS total,
       mean_ms AS mean, least_ms AS least, most_ms AS most, share, device, run_uid
  FROM ranked
 WHERE place <= 4
 ORDER BY device, implementation, CASE phase WHEN 'forward' THEN 0 WHEN 'backward' THEN 1 ELSE 2 END, place;
