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

// A ratio of times that differs, in words: in percent between half and twice the time, in multiples beyond.
function describeTime(ratio) {
  if (ratio >= 2) return `${formatSignificant(ratio)}× as long`;
  if (ratio <= 0.5) return `${formatSignificant(1 / ratio)}× as fast`;
  return `${formatPercent(Math.abs(100 * (ratio - 1)))} ${ratio < 1 ? "less" : "longer"}`;
}

// A ratio of times of which no difference is known: a number alone.
function formatTimeRatio(ratio) {
  if (ratio >= 2 || ratio <= 0.5) return `×${formatSignificant(ratio)}`;
  const percent = 100 * (ratio - 1);
  return `${percent < 0 ? "−" : "+"}${formatPercent(Math.abs(percent))}`;
}

function formatPercent(percent) {
  return `${percent.toFixed(percent < 10 ? 1 : 0)} %`;
}

// How many digits after the point show the shorter arm of an interval, and tell its ends from `nothing`.
function chooseDecimals(center, low, high, nothing) {
  const arm = Math.min(center - low, high - center);
  return tellApart([low, high], arm > 0 ? Math.min(6, Math.max(0, -Math.floor(Math.log10(arm)))) : 6, nothing);
}

// As many digits, or as many more as it takes that no end which is not `nothing` reads as if it were.
function tellApart(ends, least, nothing) {
  let decimals = least;
  while (decimals < 6 && ends.some((end) => end !== nothing && Number(end.toFixed(decimals)) === nothing)) decimals += 1;
  return decimals;
}

// How much longer one side takes, and the ends of the interval: in percent below twice the time, else in multiples. The
// digits are those that `own`, the interval of the ratio alone, has to say: it reads alike wherever it stands.
function formatLonger(center, low, high, own = [low, high]) {
  const isPercent = center < 2, nothing = isPercent ? 0 : 1;
  const scale = (value) => (isPercent ? 100 * (value - 1) : value);
  const [amount, ...ends] = [center, low, high].map(scale);
  const rank = Math.floor(Math.log10(amount)), needed = chooseDecimals(amount, ...own.map(scale), nothing);
  const shown = isPercent ? Math.min(needed, Math.max(1, 1 - rank)) : Math.max(0, 2 - rank);
  const finer = tellApart(ends, isPercent ? needed : Math.max(needed, shown), nothing);
  const write = (value, digits) => (Math.abs(value) >= 1e5 ? formatSignificant(value)
    : value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })).replace(/^-/, "−");
  return [write(amount, shown), ...ends.map((end) => write(end, finer))];
}

// The time of one side over that of the other and the ends of its interval, with as many digits as tell them from 1.
function formatRatio(center, interval) {
  if (interval === null) return [formatSignificant(center), null];
  const [low, high] = interval;
  const least = 2 - Math.floor(Math.log10(low));
  const needed = Math.max(least, chooseDecimals(Math.sqrt(low * high), low, high, 1));
  const digits = { minimumFractionDigits: Math.min(needed, 6), maximumFractionDigits: Math.min(needed, 6) };
  const [middle, ...ends] = [center, low, high].map((value) =>
    (needed === least ? formatSignificant(value) : value.toLocaleString("en-US", digits)));
  return [middle, ends.join(" to ")];
}

// How the subject compares with the other one, over whose time its own is `ratio`. `isShown`: whether the difference
// remains after the adjustment of the ratio's table, which the interval, a stricter criterion, need not show.
function describeRatio(ratio, interval, isShown, subject, other) {
  if (interval === null) return "no verdict: one repeat counts, no interval";
  if (!isShown) return NO_DIFFERENCE;
  const isLonger = ratio.center > 1, center = isLonger ? ratio.center : 1 / ratio.center;
  const turn = (ends) => (isLonger ? ends : [1 / ends[1], 1 / ends[0]]);
  const ends = turn(interval);
  const [amount, least, most] = formatLonger(center, ...ends, turn(findInterval(ratio)));
  const words = ends[0] <= 1 ? ", which holds no difference" : "";
  return `${isLonger ? subject : other} takes ${amount} ${center < 2 ? "% longer" : "times as long"} (${least} to ${most}${words})`;
}
