-- Which algorithm ran how often in each program, and how long? (--db DIR)
SELECT r.program, e.collective, e.variant, sum(e.calls) AS calls, sum(e.seconds) AS seconds
FROM evidence e JOIN runs r ON r.job = e.job
WHERE e.manner = 'blocking'
GROUP BY r.program, e.collective, e.variant
ORDER BY r.program, e.collective, calls DESC, e.variant;

-- Where does tuning pay today? (--db DIR)
SELECT library, collective, bytes_lo, bytes_hi, nodes_lo, ppn_lo, best, gain, gain_lo, gain_hi, time_share
FROM cells
WHERE in_force = 1 AND source = 'measured'
ORDER BY time_share * (gain - 1) DESC, collective, bytes_lo, nodes_lo, ppn_lo;

-- How much of each program's time goes into collectives, and what could be gained at most? (--db DIR)
SELECT program, nodes, ppn, mode, count(*) AS runs, median(wall_s) AS wall_s,
       sum(collectives_s) / sum(wall_s) AS in_collectives, median(waiting_share) AS waiting_share,
       median(best_possible_gain) AS best_possible_gain
FROM runs
WHERE exit = 'finalized'
GROUP BY program, nodes, ppn, mode
ORDER BY program, nodes, ppn, mode;

-- How long do calls take by variant, and how do their times spread? (--db DIR)
SELECT collective, message_bytes, nodes, ppn, variant, count(*) AS calls, median(time_ns) / 1000 AS median_us,
       quantile(time_ns, 0.99) / 1000 AS q99_us, mad(time_ns) / 1000 AS mad_us, geomean(time_ns) / 1000 AS geomean_us
FROM calls
GROUP BY collective, message_bytes, nodes, ppn, variant
ORDER BY collective, message_bytes, nodes, ppn, median_us, variant;

-- Which calls took over three times their median? (--db DIR)
WITH usual AS (
  SELECT collective, message_bytes, n_ranks, variant, median(time_ns) AS median_ns
  FROM calls GROUP BY collective, message_bytes, n_ranks, variant)
SELECT c.job, c.comm, c.call, c.collective, c.message_bytes, c.variant, c.time_ns / u.median_ns AS times_median
FROM calls c JOIN usual u
  ON u.collective = c.collective AND u.message_bytes = c.message_bytes AND u.n_ranks = c.n_ranks
     AND u.variant = c.variant
WHERE c.time_ns > 3 * u.median_ns
ORDER BY times_median DESC, c.job, c.comm, c.call;

-- How did drawing move from generation to generation? (--db DIR)
SELECT v.library, v.collective, v.bytes_lo, v.nodes_lo, v.ppn_lo, v.variant, v.generation, v.probability, v.samples
FROM variants v
WHERE v.samples > 0
ORDER BY v.library, v.collective, v.bytes_lo, v.nodes_lo, v.ppn_lo, v.variant, v.generation;

-- What does each rank spend each step with? (--telemetry DIR)
SELECT step, rank, phase, sum(time_ns) / 1e6 AS ms
FROM phases
GROUP BY step, rank, phase
ORDER BY step, rank, phase;

-- Which ranks take longer than others to compute, over all steps? (--telemetry DIR)
WITH work AS (SELECT step, rank, sum(time_ns) AS ns FROM phases WHERE phase = 'compute' GROUP BY step, rank),
     usual AS (SELECT step, median(ns) AS ns FROM work GROUP BY step)
SELECT w.rank, median(w.ns / u.ns) AS inflation, mad(w.ns / u.ns) AS mad, count(*) AS steps
FROM work w JOIN usual u ON u.step = w.step
WHERE u.ns > 0
GROUP BY w.rank
ORDER BY inflation DESC, w.rank;

-- Do ranks wait longer that send more? A correlation in each step (--telemetry DIR)
WITH sent AS (SELECT step, rank, sum(messages) AS messages, sum(bytes) AS bytes FROM messages
              WHERE kind <> 'local' GROUP BY step, rank),
     waited AS (SELECT step, rank, sum(time_ns) AS ns FROM phases WHERE phase = 'wait' GROUP BY step, rank)
SELECT s.step, corr(s.messages, w.ns) AS by_messages, corr(s.bytes, w.ns) AS by_bytes, sum(w.ns) / 1e6 AS wait_ms
FROM sent s JOIN waited w ON w.step = s.step AND w.rank = s.rank
GROUP BY s.step
ORDER BY s.step;

-- How unevenly is each phase spread over the ranks? (--telemetry DIR)
WITH per_step AS (
  SELECT phase, step, max(time_ns) AS longest, avg(time_ns) AS mean, stddev(time_ns) AS spread
  FROM phases GROUP BY phase, step)
SELECT phase, sum(longest) / 1e6 AS longest_ms, sum(mean) / 1e6 AS mean_ms, sum(longest) / sum(mean) AS imbalance,
       avg(spread) / 1e6 AS stddev_ms
FROM per_step
GROUP BY phase
HAVING sum(mean) > 0
ORDER BY longest_ms DESC, phase;
