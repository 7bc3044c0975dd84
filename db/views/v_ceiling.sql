-- What each kind of machine was measured to reach: the denominators of "% of ceiling". A row a kind of machine
-- (comparability_key) and quantity: `metric` 'gbps' (no dtype: a copy moves bytes), and 'tflops' for each dtype. From
-- the newest ok and checked result of each case of ceiling_copy and ceiling_gemm, our own implementations and peers
-- alike, the best one. A copy counts where one side is at least four times the last-level cache (STREAM's rule), a
-- product from size 1024 on: smaller ones say what a call costs, not what the machine can do. Protocol `quick` takes
-- too few samples, and inputs of zeros are easier than others. What came by merge or import does not count.
CREATE VIEW v_ceiling AS
SELECT comparability_key, gpu_name, cpu_model, metric, dtype, value, ci_low, ci_high, unit, experiment, implementation,
       params, protocol, run_uid, run_started_at
  FROM (SELECT r.*,
               row_number() OVER (PARTITION BY comparability_key, metric, dtype
                                      ORDER BY value DESC, run_order DESC) AS place
          FROM (SELECT v.*, iif(metric = 'tflops', params ->> '$.dtype', NULL) AS dtype
                  FROM v_latest v
                 WHERE measured_here AND checked AND NOT is_mine AND value > 0
                   AND protocol NOT LIKE 'quick%' AND protocol NOT LIKE '% inputs'
                   AND ((experiment = 'ceiling_copy' AND metric = 'gbps'
                         AND params ->> '$.bytes' >= 4 * (facts ->> '$.last_level_cache_bytes'))
                     OR (experiment = 'ceiling_gemm' AND metric = 'tflops' AND params ->> '$.size' >= 1024))) r)
 WHERE place = 1;
