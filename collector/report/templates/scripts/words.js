// Numbers and ratios in words, as collector/units.py and collector/ratio_verdicts.py write them.

const NOT_THERE = "–";
const NO_DIFFERENCE = "no difference shown";

// Three significant digits, thousands grouped: `0.870`, `35,100`, `1.00e+30`.
function formatSignificant(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return NOT_THERE;
  if (value === 0) return "0";
  const scientific = value.toExponential(2).replace(/e([+-])(\d)$/, "e$10$2");
  const exponent = Number(scientific.split("e")[1]);
  if (!(exponent >= -9 && exponent < 15)) return scientific;
  const digits = Math.max(0, 2 - exponent);
  const rounded = Number(scientific);
  return rounded.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function formatInterval(low, high, size = 1) {
  if (low === null || high === null || low === undefined || high === undefined) return NOT_THERE;
  return `${formatSignificant(low / size)} to ${formatSignificant(high / size)}`;
}

function formatMilliseconds(seconds) {
  return seconds === null ? NOT_THERE : `${formatSignificant(seconds / 1e-3)} ms`;
}

// How the subject compares, whose time over the other's is `ratio`.
function describeRatio(ratio, subject) {
  const interval = findInterval(ratio);
  if (interval === null) return "no verdict: one repeat counts, no interval";
  const [low, high] = interval;
  if (low <= 1 && high >= 1) return NO_DIFFERENCE;
  const factors = low > 1 ? [ratio.center, low, high] : [1 / ratio.center, 1 / high, 1 / low];
  const [factor, least, most] = factors.map(formatSignificant);
  return `${subject} is ${factor}x ${ratio.center > 1 ? "slower" : "faster"} (${least} to ${most})`;
}
