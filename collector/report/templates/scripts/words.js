// Numbers and ratios in words, as collector/units.py and collector/ratio_words.py write them.

const NOT_THERE = "–";
const NUM_TIME_DIGITS = 4; // of step times, as in the tables
const NO_DIFFERENCE = "no difference shown";

// Three significant digits, thousands grouped: `0.870`, `35,100`, `1.00e+30`.
function formatSignificant(value, numDigits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return NOT_THERE;
  if (value === 0) return "0";
  const scientific = value.toExponential(numDigits - 1).replace(/e([+-])(\d)$/, "e$10$2");
  const exponent = Number(scientific.split("e")[1]);
  if (!(exponent >= -9 && exponent < 15)) return scientific;
  const digits = Math.max(0, numDigits - 1 - exponent);
  const rounded = Number(scientific);
  return rounded.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function formatInterval(low, high, size = 1, numDigits = 3) {
  if (low === null || high === null || low === undefined || high === undefined) return NOT_THERE;
  return `${formatSignificant(low / size, numDigits)} to ${formatSignificant(high / size, numDigits)}`;
}

function formatMilliseconds(seconds, numDigits = 3) {
  return seconds === null ? NOT_THERE : `${formatSignificant(seconds / 1e-3, numDigits)} ms`;
}

// How many digits two times need so that their ratio is found in them: to a thousandth, and a tenth of a percent.
function chooseTimeDigits(one, other) {
  const isFine = (digits) => {
    const shown = Number(one?.toPrecision(digits)) / Number(other?.toPrecision(digits));
    return !(Math.abs(shown - one / other) > 0.0005 * Math.min(1, one / other));
  };
  return [NUM_TIME_DIGITS, 5, 6].find(isFine) ?? 7;
}

// A ratio of times that differs, in words: in percent between half and twice the time, in multiples beyond. What is faster
// is so by as much as the other takes longer, which is the number that the answers and tables have of the pair.
function describeTime(ratio) {
  if (ratio >= 2) return `${formatSignificant(ratio)}× as long`;
  if (ratio <= 0.5) return `${formatSignificant(1 / ratio)}× as fast`;
  return ratio < 1 ? `${formatPercent(100 * (1 / ratio - 1))} faster` : `${formatPercent(100 * (ratio - 1))} longer`;
}

// A ratio of times of which no difference is known: a number alone.
function formatTimeRatio(ratio) {
  if (ratio >= 2 || ratio <= 0.5) return `×${formatSignificant(ratio)}`;
  const percent = 100 * (ratio - 1);
  return `${percent < 0 ? "−" : "+"}${formatPercent(Math.abs(percent))}`;
}

// How the subject compares with the other one, over whose time its own is `ratio`: they differ where `interval`, that of
// the ratio's table, excludes 1.
function describeRatio(ratio, interval, subject, other) {
  if (interval === null) return "no verdict: one repeat counts, no interval";
  const [low, high] = interval;
  if (low <= 1 && high >= 1) return NO_DIFFERENCE;
  const factors = low > 1 ? [ratio.center, low, high] : [1 / ratio.center, 1 / high, 1 / low];
  const [amount, least, most] = formatLonger(...factors);
  return `${low > 1 ? subject : other} takes ${amount} ${factors[0] < 2 ? "% longer" : "times as long"} (${least} to ${most})`;
}
