// Decides whether two cells can be compared, says why not, and computes the ratio of their step times.
// The rules are those of collector/comparisons.py: tests hold both against each other.

const MACHINES_DIFFER = "no verdict: the machines differ, by how much is not known";

class Cells {
  constructor(document) {
    Object.assign(this, document);
    this.ids = Array.from({ length: this.size }, (_, row) => this.get("cell_id", row));
    // What the search looks in: the label, the precision even where all cells have the same, and how the cell ended.
    this.names = Array.from({ length: this.size }, (_, row) =>
      ["label", "precision", "state", "ending"].map((name) => this.get(name, row)).join(", ").toLowerCase());
    // A cell that ran in several environments has several rows: this is its first one.
    this.rowsById = new Map(this.ids.map((id, row) => [id, row]).reverse());
    this.tables = new Map(this.tables.flatMap(({ caption, size, tested, alone }) => [
      ...tested.map((rows) => [rows.join(), { caption, size }]), ...alone.map((rows) => [rows.join(), { caption, size: 1 }]),
    ]));
  }

  // The table that has the ratio of two cells, and with how many ratios it was tested there; null where none has it.
  findTable(one, other) {
    return this.tables.get([one, other].join()) ?? this.tables.get([other, one].join()) ?? null;
  }

  get(name, row) {
    return readValue(this.columns[name], row);
  }

  // What tells a row apart in the address of the page.
  nameRow(row) {
    const id = this.ids[row];
    return this.rowsById.get(id) === row ? id : `${id}@${this.get("environment_id", row)}`;
  }

  findRow(name) {
    if (!name) return null;
    const [id, environment] = name.split("@");
    if (environment === undefined) return this.rowsById.get(id) ?? null;
    const row = this.ids.findIndex((own, index) => own === id && this.get("environment_id", index) === environment);
    return row < 0 ? null : row;
  }

  describeField(field, row) {
    return field.texts[field.codes[row]];
  }

  listDiffering(one, other) {
    return this.fields.filter((field) => field.codes[one] !== field.codes[other]);
  }

  readEstimate(row) {
    return {
      center: this.get("center_step_seconds", row),
      error: this.get("log_standard_error", row),
      freedom: this.get("degrees_of_freedom", row),
    };
  }

  // A name for each of two cells: what tells it from the other one.
  nameSides(one, other) {
    const fields = this.listDiffering(one, other).filter((field) => !field.is_protocol);
    const name = (row) => fields.map((field) => this.describeField(field, row)).join(" ") || this.get("label", row);
    return [name(one), name(other)];
  }

  // Why the step times of two cells have no ratio; null where they have one.
  explainNotComparable(one, other) {
    const names = this.nameSides(one, other);
    const work = this.listDiffering(one, other).filter((field) => field.is_work);
    if (work.length) return `not compared: they do different work (${work.map((field) => field.title).join(", ")})`;
    const rows = [one, other];
    const empty = rows.map((row, side) => (this.get("num_ok", row) ? null : names[side])).filter((name) => name !== null);
    if (empty.length) return `not compared: no ok repeat of ${empty.join(" and ")}`;
    const differing = new Set(this.listDiffering(one, other).map((field) => field.name));
    const isSame = (name) => this.get(name, one) === this.get(name, other);
    if (!differing.has("device") && !differing.has("num_gpus") && !isSame("hardware_id"))
      return "not compared: the hardware differs";
    if (!differing.has("framework") && !isSame("version"))
      return `not compared: the framework's versions differ, ${this.get("version", one)} and ${this.get("version", other)}`;
    return this.include_invalid ? null : this.explainUnsound(one, other, names);
  }

  explainUnsound(one, other, names) {
    const unsound = [one, other].map((row, side) => ({ row, name: names[side] })).filter(({ row }) => !this.get("num_sound", row));
    if (!unsound.length) return null;
    const whose = unsound.map(({ name }) => name).join(" and of ");
    const faults = unsound.map(({ row, name }) => `${name}: ${this.get("faults", row)}`).join("; ");
    return `left out: no repeat of ${whose} was measured under sound conditions (${faults})`;
  }

  // The time of one cell over that of the other: per sample where their batches differ, else per step.
  estimateTimeRatio(one, other) {
    const machines = [this.get("machines", one), this.get("machines", other)];
    const isPaired = this.get("num_machines", one) > 1 && machines[0] === machines[1];
    const means = isPaired ? [one, other].map((row) => JSON.parse(this.get("machine_means", row))) : null;
    const ratio = means ? estimatePairedRatio(...means) : estimateRatio(this.readEstimate(one), this.readEstimate(other));
    const samples = this.get("batch_size", other) / this.get("batch_size", one);
    return { ...ratio, center: ratio.center * samples };
  }

  // Whether a ratio holds a difference of machines of which no interval says how large it is.
  isConfounded(one, other) {
    if (this.listDiffering(one, other).some((field) => field.name === "device" || field.name === "num_gpus")) return false;
    const isSame = this.get("machines", one) === this.get("machines", other);
    return !isSame && Math.min(this.get("num_machines", one), this.get("num_machines", other)) < 2;
  }

  // What a reader must know beside the ratio of two cells.
  listNotes(one, other) {
    const differing = this.listDiffering(one, other);
    const isSame = (name) => this.get(name, one) === this.get(name, other);
    const titles = differing.filter((field) => field.is_protocol).map((field) => field.title);
    const free = differing.filter((field) => !field.is_protocol && field.name !== "environment_id");
    const notes = [];
    if (!isSame("batch_size")) notes.push("the batches differ: time is that of a sample, not of a step");
    if (free.length > 1) notes.push(`the cells differ in ${free.map((field) => field.title).join(", ")}: the ratio is of all of them together`);
    if (titles.length) notes.push(`measured for another time: they differ in ${titles.join(", ")}`);
    if (differing.some((field) => field.name === "tenants")) notes.push("of a cell with tenants, the steps are those of its first one");
    const isOneEach = this.get("num_machines", one) === 1 && this.get("num_machines", other) === 1;
    const isAcross = !differing.some((field) => field.name === "device") && !isSame("machines");
    if (isAcross && isOneEach) notes.push("on different machines: their difference is in the ratio and not in the interval");
    else if (isAcross) notes.push("on different machines: their difference is in the ratio");
    else if (isOneEach) notes.push(isSame("machines") ? "on one machine: on another one the ratio can differ" : "one device a side: on others the ratio can differ");
    return notes;
  }

  compare(one, other) {
    const reason = this.explainNotComparable(one, other);
    if (reason !== null) return { reason };
    const ratio = this.estimateTimeRatio(one, other);
    const table = this.findTable(one, other);
    const isConfounded = this.isConfounded(one, other), interval = findInterval(ratio, table?.size);
    const pValue = isConfounded ? null : findPValue(ratio);
    const isJudged = !isConfounded || interval === null;
    const verdict = isJudged ? describeRatio(ratio, interval, ...this.nameSides(one, other)) : MACHINES_DIFFER;
    return { ratio, interval, table, pValue, verdict, isConfounded, notes: this.listNotes(one, other) };
  }
}
