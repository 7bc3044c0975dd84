-- figure: lines
-- title: Communicating over computing
-- caption: Median time of the collective alone over that of the products alone, each of the slowest rank, with the interval that
--   their 95 % intervals leave; by the formula with C and W fitted to all rows of the same layout and number of ranks. Where a line meets 1
--   the two take as long. Tokens grow where weights are gathered, hidden numbers where sums are; the other is the largest measured.
-- experiment: layer_crossover
-- x: size|tokens, or hidden numbers|log2
-- y: ratio|×|log10
-- interval: low, high
-- series: series
-- panel: layout, elements, protocol, device
-- ceiling: one|as long|syslab run layer_crossover
WITH one AS MATERIALIZED (
  SELECT params ->> '$.layout' AS layout, world_size AS ranks, device, implementation, protocol, comparability_key, run_uid,
         params ->> '$.d_model' AS d_model, iif(params ->> '$.layout' = 'fsdp', params ->> '$.tokens', params ->> '$.d_ff') AS x,
         iif(params ->> '$.layout' = 'fsdp', params ->> '$.d_ff', params ->> '$.tokens') AS other,
         p.value AS compute, c.value AS communicate, c.ci_low / p.ci_high AS low, c.ci_high / p.ci_low AS high,
         metrics ->> '$.flops' AS flops, metrics ->> '$.sent_bytes' AS sent,
         iif(metrics ->> '$.element_bytes' = 2, 'bf16', 'fp32') AS elements
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'compute' AND p.rank = -1 AND p.value > 0
    JOIN metric c ON c.attempt_id = v.attempt_id AND c.name = 'communicate' AND c.rank = -1 AND c.value > 0
   WHERE experiment = ?1 AND world_size > 1 AND is_good
),
placed AS (
  SELECT *, max(other) OVER (PARTITION BY layout, ranks, comparability_key, implementation, protocol, d_model) AS most,
         sum(flops / compute * flops / compute) OVER same / sum(flops / compute) OVER same AS c,
         sum(sent / communicate * sent / communicate) OVER same / sum(sent / communicate) OVER same AS w
    FROM one
  WINDOW same AS (PARTITION BY layout, ranks, comparability_key, implementation, protocol)
),
drawn AS (
  SELECT *, communicate / compute AS ratio, '' AS how FROM placed WHERE other = most
  UNION ALL
  SELECT *, sent / w / (flops / c), ', by the formula' FROM placed WHERE other = most
)
SELECT layout, elements, protocol, device, x AS size, ratio, iif(how = '', low, NULL) AS low, iif(how = '', high, NULL) AS high,
       ranks || ' ranks, D = ' || d_model || how AS series, 1 AS one, run_uid
  FROM drawn
 ORDER BY elements DESC, layout, protocol, device, ranks, d_model, how, x;
