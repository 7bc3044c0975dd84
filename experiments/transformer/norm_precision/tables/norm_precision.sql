-- title: Layer norm and RMSNorm in half precision
-- caption: Relative error of the output, ‖y − exact‖ / ‖exact‖, worst of 16 rows, on data of standard deviation
--   2^exponent, every operation rounded to the statistics' format. Computed, not timed.
-- experiment: norm_precision
-- columns: norm|1|code|left; dtype|1|s|left; statistics|1|s|left; implementation|1|code|left; dim?|1|d|right;
--   offset?|1|d|right; e_10 as 2^-10|1|s|right; e0 as 2^0|1|s|right; e3 as 2^3|1|s|right; e6 as 2^6|1|s|right;
--   e8 as 2^8|1|s|right; e12 as 2^12|1|s|right; rstd as rstd at 2^0|1|.1e|right
-- note: "overflow": a square or a sum passed the largest number in every row; "… of 16" where it did in some.
-- note: With a mean of 16 standard deviations fp16 cannot represent data of 2^12 at all.
-- note: At 2^-10 the variance, 1e-6, is smaller than eps = 1e-5, which fp16 holds as a subnormal number.
WITH t AS (
  SELECT v.*, (SELECT value FROM metric m WHERE m.attempt_id = v.attempt_id AND m.name = 'error_out') AS error,
         (SELECT value FROM metric m WHERE m.attempt_id = v.attempt_id AND m.name = 'error_rstd') AS error_rstd,
         (SELECT value FROM metric m WHERE m.attempt_id = v.attempt_id AND m.name = 'finite_rows') AS finite
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure' AND v.status IN ('ok', 'check_failed')
),
said AS (
  SELECT *, CASE WHEN status <> 'ok' THEN 'wrong' WHEN finite = 0 THEN 'overflow'
                 ELSE printf('%.1e', error) || iif(finite < 16, printf(' (%d of 16)', finite), '') END AS says
    FROM t
)
SELECT params ->> '$.norm' AS norm, params ->> '$.dtype' AS dtype,
       iif(params ->> '$.statistics' = 'data', params ->> '$.dtype', params ->> '$.statistics') AS statistics,
       implementation,
       params ->> '$.dim' AS dim, params ->> '$.offset' AS offset,
       max(iif(params ->> '$.exponent' = -10, says, NULL)) AS e_10,
       max(iif(params ->> '$.exponent' = 0, says, NULL)) AS e0,
       max(iif(params ->> '$.exponent' = 3, says, NULL)) AS e3, max(iif(params ->> '$.exponent' = 6, says, NULL)) AS e6,
       max(iif(params ->> '$.exponent' = 8, says, NULL)) AS e8,
       max(iif(params ->> '$.exponent' = 12, says, NULL)) AS e12,
       max(iif(params ->> '$.exponent' = 0, error_rstd, NULL)) AS rstd, max(run_uid) AS run_uid
  FROM said
 GROUP BY 1, 2, params ->> '$.statistics', 4, 5, 6
 ORDER BY norm, dtype, statistics, dim, offset, implementation DESC;
