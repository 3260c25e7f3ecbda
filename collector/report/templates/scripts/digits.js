// With how many digits ratios, their intervals and amounts of time are written, as collector/ratio_words.py decides it.

const MAX_DECIMALS = 6;

// A ratio has three digits after the point between half and twice, and else three significant ones.
function countRatioDecimals(ratio) {
  return ratio > 0.5 && ratio < 2 ? 3 : countSignificantDecimals(ratio);
}

function countSignificantDecimals(ratio) {
  if (ratio === 0 || !Number.isFinite(ratio)) return 3;
  return Math.max(0, 2 - Math.floor(Math.log10(Math.abs(Number(ratio.toPrecision(3))))));
}

// A percentage has one digit after the point below a hundred.
function countPercentDecimals(percent) {
  return Math.abs(percent) < 100 ? 1 : 0;
}

function writeDecimals(value, decimals) {
  const size = Math.abs(value);
  const text = size >= 1e5 || (size > 0 && size < 1e-5) ? formatSignificant(value)
    : value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  return text.replace(/^-/, "−");
}

// Values with their digits after the point, or with some more: where one that is not `nothing` would read as if it were,
// where several would read alike, or one as `apartFrom`.
function writeNumbers(values, decimals, nothing, apartFrom = "") {
  const write = (more) => values.map((value, index) => writeDecimals(value, decimals[index] + more));
  for (let more = 0; more < MAX_DECIMALS; more += 1) {
    const texts = write(more);
    const readsAsNothing = values.some((value, index) => value !== nothing && Number(value.toFixed(decimals[index] + more)) === nothing);
    if (new Set([apartFrom, ...texts]).size === texts.length + 1 && !readsAsNothing) return texts;
  }
  return write(0);
}

function formatPercent(percent) {
  return `${writeNumbers([percent], [countPercentDecimals(percent)], 0)[0]} %`;
}

// The ends of an interval of a ratio: three significant digits each, unless both lie between half and twice.
function writeRatios(low, high, apartFrom = "") {
  const isNear = low > 0.5 && high < 2;
  return writeNumbers([low, high], [low, high].map((end) => (isNear ? 3 : countSignificantDecimals(end))), 1, apartFrom);
}

// How much longer one side takes, and the ends of the interval: in percent below twice the time, else in multiples.
function formatLonger(center, low, high) {
  if (center >= 2) {
    const [amount] = writeNumbers([center], [countRatioDecimals(center)], 1);
    return [amount, ...writeRatios(low, high, amount)];
  }
  const [percent, ...ends] = [center, low, high].map((value) => 100 * (value - 1));
  const [amount] = writeNumbers([percent], [countPercentDecimals(percent)], 0);
  return [amount, ...writeNumbers(ends, ends.map(countPercentDecimals), 0, amount)];
}

// The time of one side over that of the other, and the ends of its interval.
function formatRatio(center, interval) {
  const [middle] = writeNumbers([center], [countRatioDecimals(center)], 1);
  return [middle, interval === null ? null : writeRatios(...interval).join(" to ")];
}
