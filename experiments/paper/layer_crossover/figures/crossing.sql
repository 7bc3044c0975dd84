-- figure: lines
-- title: Communication over compute
-- caption: Median time of the collective over that of the matrix products, each alone, slowest rank, with the 95 %
--   interval; and by the formula with C and W fitted to all rows of the same layout and rank count. At 1 both take
--   equally long.
-- experiment: layer_crossover
-- x: size|tokens, or hidden numbers|log2
-- y: ratio|×|log10
-- interval: low, high
-- series: series
-- panel: layout, elements, protocol, device
-- ceiling: one|equal|syslab run layer_crossover
WITH drawn AS (
  SELECT *, ratio AS shown, '' AS how FROM v_layer_crossover WHERE ratio IS NOT NULL AND other = most
  UNION ALL
  SELECT *, formula, ', by the formula' FROM v_layer_crossover WHERE ratio IS NOT NULL AND other = most
)
SELECT layout, elements, protocol, device, x AS size, shown AS ratio,
       iif(how = '', ratio_low, NULL) AS low, iif(how = '', ratio_high, NULL) AS high,
       ranks || ' ranks, D = ' || d_model || how AS series, 1 AS one, run_uid
  FROM drawn
 ORDER BY elements DESC, layout, protocol, device, ranks, d_model, how, x;
