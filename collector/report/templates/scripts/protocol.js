// Says how a cell was to be measured. A field that the run's plan lacks is of a pass that the version of the tool which
// made it did not have: that is said, and never the default with which the plan is read.

const NOT_RECORDED = "not recorded by this version of the tool";
const PASSES = [
  ["sampling_seconds", "clocks, power and memory", (value) => `sampled for ${value} s`],
  ["pipelined_seconds", "pipelined steps", (value) => `for ${value} s`],
  ["num_profiled_steps", "kernel times", (value) => `of ${value} profiled steps`],
  ["sustain_seconds", "speed that lasts", (value) => `followed for up to ${value} s`],
];

// The terms of the plan of a cell; none where its plan is not in the page.
function describeProtocol(plan) {
  if (!plan.num_steps) return [];
  return [
    ["warm-up", `${countThings(plan.num_warmup_steps, "step")} at least, until steady or ${plan.max_warmup_seconds} s`],
    ["timed window", `${countThings(plan.num_steps, "step")} and ${plan.min_seconds} s at least`],
    // A CPU and a cell with tenants have none of these passes.
    ...(plan.device === "gpu" && !(plan.tenants > 1) ? [["passes after it", describePasses(plan)]] : []),
  ];
}

function describePasses(plan) {
  const isAbsent = ([name]) => plan.not_recorded.includes(name);
  const list = (passes) => passes.map(([, what]) => what).join(", ");
  const [absent, known] = [PASSES.filter(isAbsent), PASSES.filter((pass) => !isAbsent(pass))];
  const done = known.filter(([name]) => plan[name]), none = known.filter(([name]) => !plan[name]);
  return [
    ...done.map(([name, what, describe]) => `${what} ${describe(plan[name])}`),
    ...(none.length ? [`not asked for: ${list(none)}`] : []),
    ...(absent.length ? [`${NOT_RECORDED}: ${list(absent)}`] : []),
  ].join("; ");
}
