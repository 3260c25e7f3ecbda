// Ratios of cells, as collector/statistics.py computes them: Student's t on logs, Welch and Satterthwaite's degrees of
// freedom, Holm's adjustment. An estimate is {center, error, freedom}: error is the standard error of log(center).

const CONFIDENCE = 0.95;
const ROUNDING_SECONDS = 1e-9 / Math.sqrt(12);
const LANCZOS = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
];

// The logarithm of the gamma function of a positive number (C. Lanczos, SIAM J. Numer. Anal. B 1, 1964; g = 7, n = 9).
function logGamma(x) {
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
  const sum = LANCZOS.slice(1).reduce((total, part, index) => total + part / (x + index), LANCZOS[0]);
  const t = x + 6.5;
  return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
}

// The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method.
function betaFraction(x, a, b) {
  const tiny = 1e-300;
  const keep = (value) => (Math.abs(value) < tiny ? tiny : value);
  let c = 1, d = 1 / keep(1 - ((a + b) * x) / (a + 1)), result = d;
  for (let m = 1; m <= 500; m += 1) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / keep(1 + even * d);
    c = keep(1 + even / c);
    result *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / keep(1 + odd * d);
    c = keep(1 + odd / c);
    result *= d * c;
    if (Math.abs(d * c - 1) < 1e-15) break;
  }
  return result;
}

// The regularized incomplete beta function; y is 1 - x, which would lose its digits near 1.
function betaShare(x, y, a, b) {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  const log = logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(y);
  if (x < (a + 1) / (a + b + 2)) return (Math.exp(log) * betaFraction(x, a, b)) / a;
  return 1 - (Math.exp(log) * betaFraction(y, b, a)) / b;
}

// The two-sided p-value of Student's t.
function tailShare(t, freedom) {
  const square = t * t;
  if (!Number.isFinite(square)) return 0;
  return betaShare(freedom / (freedom + square), square / (freedom + square), freedom / 2, 0.5);
}

const QUANTILES = new Map();

// The t that leaves 2.5 % over the number of intervals on each side, by bisection of its logarithm.
function findQuantile(freedom, numIntervals) {
  const key = `${freedom},${numIntervals}`;
  if (!QUANTILES.has(key)) {
    let low = 0, high = Math.log(1e12);
    for (let step = 0; step < 80; step += 1) {
      const middle = (low + high) / 2;
      if (tailShare(Math.exp(middle), freedom) > (1 - CONFIDENCE) / numIntervals) low = middle;
      else high = middle;
    }
    QUANTILES.set(key, Math.exp((low + high) / 2));
  }
  return QUANTILES.get(key);
}

// The interval that holds the truth together with those of the other ones of `numIntervals` in 95 % of cases.
function findInterval(estimate, numIntervals = 1) {
  if (estimate.error === null || estimate.freedom === null) return null;
  const factor = Math.exp(findQuantile(estimate.freedom, numIntervals) * estimate.error);
  return [estimate.center / factor, estimate.center * factor];
}

function findPValue(estimate) {
  if (estimate.error === null || estimate.freedom === null) return null;
  return tailShare(Math.abs(Math.log(estimate.center)) / estimate.error, estimate.freedom);
}

// The squared standard error of two means of different numbers of values that vary alike; 0 where they have as many, or
// where an estimate is not of single values: its degrees of freedom are a fraction then.
function poolVariances(squares, freedoms) {
  if (freedoms[0] === freedoms[1] || !freedoms.every(Number.isInteger)) return 0;
  const single = (squares[0] * (freedoms[0] + 1) * freedoms[0] + squares[1] * (freedoms[1] + 1) * freedoms[1]) / (freedoms[0] + freedoms[1]);
  return single * (1 / (freedoms[0] + 1) + 1 / (freedoms[1] + 1));
}

// One over the other, of two independent estimates.
function estimateRatio(numerator, denominator) {
  const center = numerator.center / denominator.center;
  if (numerator.error === null || denominator.error === null) return { center, error: null, freedom: null };
  const squares = [numerator.error ** 2, denominator.error ** 2];
  const variance = squares[0] + squares[1];
  const freedom = 1 / ((squares[0] / variance) ** 2 / numerator.freedom + (squares[1] / variance) ** 2 / denominator.freedom);
  const least = poolVariances(squares, [numerator.freedom, denominator.freedom]);
  return { center, error: Math.sqrt(Math.max(variance, least)), freedom };
}

// One over the other, machine by machine: what a machine does to both cancels.
function estimatePairedRatio(numerators, denominators) {
  const machines = Object.keys(numerators);
  const logs = machines.map((machine) => Math.log(numerators[machine] / denominators[machine]));
  const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length;
  const square = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / (logs.length - 1);
  const center = Math.exp(mean);
  const deviation = Math.max(Math.sqrt(square), ROUNDING_SECONDS / center);
  const rounding = machines.map((machine) =>
    Math.hypot(ROUNDING_SECONDS / numerators[machine], ROUNDING_SECONDS / denominators[machine]));
  const error = Math.max(deviation, ...rounding) / Math.sqrt(logs.length);
  return { center, error, freedom: logs.length - 1 };
}

// The p-values of one family after Holm's adjustment, in their order; null stays null.
function adjustPValues(pValues) {
  const adjusted = pValues.map(() => null);
  const tested = pValues.map((_, index) => index).filter((index) => pValues[index] !== null);
  tested.sort((one, other) => pValues[one] - pValues[other]);
  let largest = 0;
  tested.forEach((index, rank) => {
    largest = Math.max(largest, Math.min(1, (tested.length - rank) * pValues[index]));
    adjusted[index] = largest;
  });
  return adjusted;
}
