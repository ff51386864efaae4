// The findings: filters by chips, a table, and its print. One row is one cause.
// Whether a finding is new, lasting or gone since a time in seconds; empty if that is unknown.
function ageOf(finding, since) {
  if (finding.endedS) return finding.beganS <= since && finding.endedS > since ? "gone" : null;
  if (!since || !finding.beganS) return "";
  return finding.beganS > since ? "new" : "lasting";
}

// A finding that another one in the list explains needs no row of its own, unless rows are findings.
function matchFindings({ kind, severity, device, since, age, by }) {
  const text = (device ?? "").toLowerCase();
  const from = since ? Date.parse(`${since}T00:00:00Z`) / 1000 : 0;
  const gone = from ? page.changes?.gone ?? [] : [];
  const aged = [...page.findings, ...gone].map((finding, place) => ({ ...finding, place, age: ageOf(finding, from) }));
  const matches = aged.map((finding) =>
    finding.age !== null &&
    (!kind || finding.kind === kind) &&
    (!severity || finding.severity === severity) &&
    (!age || finding.age === age) &&
    (!text || [finding.device, ...finding.ports].some((name) => name.toLowerCase().includes(text))));
  const found = aged.filter((_, place) => matches[place]);
  const isOwnRow = ({ cause }, place) => cause === undefined || cause === place || !matches[cause];
  if (by === "finding") return { found, rows: found.map((finding) => ({ ...finding, alike: [] })) };
  return { found, rows: aged.filter((finding, place) => matches[place] && isOwnRow(finding, place)).map((finding) => ({ ...finding, costs: finding.causeCosts || finding.costs })) };
}

const showSwap = (finding) => finding.swap.map(([one, other]) => `Exchange the plugs at ${one} and ${other}.`);
const sinceOf = (finding) => finding.age || showTime(finding.beganS).slice(0, 16) || finding.since;

// A finding in full: what it says, both ends, how to go there, and how to set it aside.
function showFindingCard(finding, place) {
  const silence = `- {kind: ${finding.kind}, device: ${JSON.stringify(finding.device)}, ${finding.port ? `port: ${JSON.stringify(finding.port)}, ` : ""}reason: "…", until: "…"}`;
  return make("div", { className: "finding" },
    make("p", null, badge(finding.severity), " ", link(finding.kind, { view: "findings", finding: String(finding.cause ?? place) }), finding.costs ? make("span", { className: "impact" }, ` costs ${finding.costs}`) : null),
    make("p", null, `${finding.message}${finding.evidence ?? ""}`),
    /exchange the plugs/i.test(finding.message) ? null : showSwap(finding).map((text) => make("p", null, text)),
    make("details", null, make("summary", null, "Set aside"),
      make("p", null, "Add a line to a file, and name it with --silence:"), command(silence),
      command("toponaut findings --silence silences.yaml")));
}

const filtersOf = (address) => Object.fromEntries(["kind", "severity", "device", "since", "age", "by"].map((name) => [name, address.get(name) ?? ""]));

function makeChips(name, values, chosen) {
  return make("div", { className: "chips", role: "group", "aria-label": name }, values.map(([value, count]) => {
    const chip = make("button", { type: "button", className: `chip ${value}`, "aria-pressed": String(chosen === value) }, `${value} ${count}`);
    chip.dataset.value = value;
    chip.addEventListener("click", () => changeAddress({ [name]: chosen === value ? null : value }));
    return chip;
  }));
}

function countBy(rows, name) {
  const counts = new Map();
  for (const row of rows) counts.set(row[name], (counts.get(row[name]) ?? 0) + 1);
  return [...counts];
}

function makeField(id, text, field) {
  field.id = id;
  return make("span", { className: "field" }, make("label", { htmlFor: id }, text), field);
}

function choiceOf(id, chosen, choices) {
  const list = make("select", null, choices.map(([value, text]) => new Option(text, value, false, value === chosen)));
  list.addEventListener("change", () => changeAddress({ [id]: list.value || null }));
  return list;
}

function showFindings(address) {
  const filters = filtersOf(address);
  const { found, rows } = matchFindings(filters);
  const all = matchFindings({ ...filters, kind: "", severity: "" }).found;
  const device = make("input", { type: "search", autocomplete: "off", value: filters.device });
  device.addEventListener("change", () => changeAddress({ device: device.value || null }));
  const since = make("input", { type: "date", value: filters.since });
  since.addEventListener("change", () => changeAddress({ since: since.value || null }));
  const csv = make("button", { type: "button", id: "csv" }, "Save as CSV");
  csv.addEventListener("click", () => saveFile("findings.csv", renderCsv([["severity", "kind", "device", "port", "message", "ports", "costs", "since", "age"], ...found.map((row) => [row.severity, row.kind, row.device, row.port, row.message, row.ports.join("; "), row.costs ?? "", row.since || showTime(row.beganS), row.age])])));
  const printed = make("button", { type: "button", id: "print-list" }, "Print this list");
  printed.addEventListener("click", () => { fillPrint(rows, count); print(); });
  const chosen = found.length < page.findings.length ? ` of ${page.findings.length.toLocaleString("en")}` : "";
  const causes = rows.length < found.length ? ` of ${showCount(rows.length, "cause")}` : "";
  const count = `${found.length.toLocaleString("en")}${chosen} ${page.findings.length === 1 ? "finding" : "findings"}${causes}`;
  const table = make("div", { id: "findings-table" });
  fill(byId("findings"),
    make("div", { className: "bar" },
      makeChips("severity", SEVERITIES.flatMap((name) => countBy(all, "severity").filter(([value]) => value === name)), filters.severity),
      makeChips("kind", countBy(all, "kind"), filters.kind)),
    make("div", { className: "bar" },
      makeField("device", "Device", device), makeField("since", "Since", since),
      makeField("age", "Age", choiceOf("age", filters.age, [["", "all"], ["new", "new"], ["lasting", "lasting"], ["gone", "gone"]])),
      makeField("by", "Rows", choiceOf("by", filters.by, [["", "causes"], ["finding", "findings"]])), csv, printed),
    make("p", { id: "count", className: "soft" }, count),
    make("div", { id: "chosen-finding", "aria-live": "polite" }), table, make("div", { id: "printed-list" }));
  fillFindingsTable(table, rows, address);
}

function fillFindingsTable(table, rows, address) {
  const openFinding = (row) => {
    changeAddress({ finding: String(row.place) }, { isQuiet: true });
    fill(byId("chosen-finding"), make("div", { className: "card" }, showFindingCard(row, row.place), row.number >= 0 ? make("p", null, link(`Show ${row.device}`, placeOf(row.number))) : null));
  };
  const columns = [
    isNarrow() ? { title: "", field: "severity", width: 34, isFixed: true, priority: 0, format: (cell) => make("span", { className: `badge dot ${cell.getValue()}`, role: "img", "aria-label": cell.getValue() }) } : { title: "Severity", field: "severity", width: 100, priority: 0, format: (cell) => badge(cell.getValue()) },
    { title: "Kind", field: "kind", width: 110, priority: 0, isWrapped: true },
    { title: "Device", field: "device", width: 120, grow: 1, priority: isNarrow() ? 1 : 0, isWrapped: true, format: (cell) => (cell.getData().number >= 0 ? link(cell.getValue(), placeOf(cell.getData().number)) : asText(cell)) },
    { title: "Both ends", field: "ends", width: isNarrow() ? 160 : 220, grow: 2, priority: isNarrow() ? 0 : 2, isWrapped: true, format: (cell) => showFindingEnds(cell.getData()) },
    { title: "Costs", field: "place", width: 130, grow: 1, priority: 1, isWrapped: true, isNumber: true, format: (cell) => document.createTextNode(cell.getData().costs ?? "") },
    { title: "What to do", field: "message", width: 240, grow: 3, priority: 1, isWrapped: true, format: (cell) => document.createTextNode(cell.getData().message) },
    ...(rows.some(sinceOf) ? [{ title: "Since (UTC)", field: "began", width: 130, priority: 3 }] : []),
  ];
  const shown = rows.map((row) => ({ ...row, ends: row.ports.join(" "), began: sinceOf(row) }));
  table.dataset.rows = rows.length;
  makeTable(table, columns, shown, { height: Math.max(240, innerHeight - 260), onRow: openFinding, none: page.findings.length ? "No finding matches." : "Nothing is wrong in these sources.", label: "Findings" });
  const chosen = shown.find((row) => String(row.place) === address.get("finding"));
  if (chosen) openFinding(chosen);
}

// The order of a walk: along the hosts and leaves from the left, then the devices that have no place.
function sortForWalk(findings) {
  const place = ({ number }) => {
    if (number < 0) return Infinity;
    if (fabric.seatOf[number] >= 0) return fabric.seatOf[number];
    return fabric.domainOf[number] >= 0 ? page.domains[fabric.domainOf[number]].start : Infinity;
  };
  return [...findings].sort((one, other) => (place(one) === place(other) ? 0 : place(one) - place(other)));
}

// Every row, with both ends and a box to tick. The steps by rack are in the work order of the command.
function fillPrint(rows, count) {
  const names = ["Done", "Severity", "Kind", "Ends", "What to do", "Costs"];
  const head = names.map((text) => make("th", { scope: "col" }, text));
  const body = sortForWalk(rows).map((row) => make("tr", { "data-device": row.device }, ["☐", row.severity, row.kind, showFindingEnds(row), [row.message, row.evidence ?? ""].join(" "), row.costs ?? ""].map((part) => make("td", null, part))));
  fill(byId("printed-list"), make("h2", null, `${count}, printed ${showTime(Math.floor(Date.now() / 1000)).slice(0, 16)} UTC`), make("table", null, make("thead", null, make("tr", null, head)), make("tbody", null, body)), make("p", null, "Each plug to move, by rack: toponaut findings -o work-order-html"));
}
