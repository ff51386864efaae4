// The list of findings: filters, CSV and the work order. Names reach the page as text only.
const MAX_ROWS = 500;

// Whether a finding is new, lasting or gone since a time in seconds; empty if that is unknown.
function ageOf(finding, since) {
  if (finding.endedS) return finding.beganS <= since && finding.endedS > since ? "gone" : null;
  if (!since || !finding.beganS) return "";
  return finding.beganS > since ? "new" : "lasting";
}

// A finding that another one in the list explains needs no row of its own, unless rows are findings.
function matchFindings(filters) {
  const device = filters.device.toLowerCase();
  const since = filters.since ? Date.parse(`${filters.since}T00:00:00Z`) / 1000 : 0;
  const gone = since ? page.changes?.gone ?? [] : [];
  const aged = [...page.findings, ...gone].map((finding) => ({ ...finding, age: ageOf(finding, since) }));
  const matches = aged.map((finding) =>
    finding.age !== null &&
    (!filters.kind || finding.kind === filters.kind) &&
    (!filters.severity || finding.severity === filters.severity) &&
    (!filters.age || finding.age === filters.age) &&
    (!device || [finding.device, ...finding.ports].some((name) => name.toLowerCase().includes(device))));
  const found = aged.filter((_, place) => matches[place]);
  if (filters.rows === "finding") return { found, rows: found };
  const isOwnRow = ({ cause }, place) => cause === undefined || cause === place || !matches[cause];
  return { found, rows: aged.filter((finding, place) => matches[place] && isOwnRow(finding, place)) };
}

// The order of a walk: along the hosts and leaves from the left, then the devices that have no place.
function sortForWalk(findings, layout) {
  const place = (finding) => (finding.number < 0 ? Infinity : layout.x[finding.number]);
  return [...findings].sort((one, other) => (place(one) === place(other) ? 0 : place(one) - place(other)));
}

function addCell(row, text) {
  const cell = row.insertCell();
  cell.textContent = text;
  return cell;
}

function showRows(body, findings, limit, withEvidence) {
  body.replaceChildren();
  for (const finding of findings.slice(0, limit)) {
    const row = body.insertRow();
    addCell(row, finding.severity);
    addCell(row, finding.kind);
    const cell = addCell(row, "");
    const place = document.createElement(finding.number < 0 ? "span" : "a");
    if (finding.number >= 0) place.href = `#view=fabric&device=${encodeURIComponent(finding.device)}`;
    place.textContent = finding.port ? `${finding.device} port ${finding.port}` : finding.device;
    cell.append(place);
    const swaps = finding.swap.map(([one, other]) => `\nExchange the plugs at ${one} and ${other}.`);
    const evidence = withEvidence ? finding.evidence ?? "" : "";
    addCell(row, finding.message + evidence + swaps.join("")).style.whiteSpace = "pre-line";
    addCell(row, finding.age || (finding.beganS ? showTime(finding.beganS) : ""));
    addCell(row, "☐");
  }
}

// A spreadsheet runs a cell that starts with one of these characters as a formula.
function quoteCell(text) {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}

function renderCsv(findings) {
  const rows = findings.map((finding) => [finding.severity, finding.kind, finding.device, finding.port, finding.message, finding.ports.join("; "), finding.since || showTime(finding.beganS), finding.age]);
  return [["severity", "kind", "device", "port", "message", "ports", "since", "age"], ...rows].map((row) => row.map(quoteCell).join(",")).join("\r\n");
}

function saveFile(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
