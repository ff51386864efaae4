// The list of findings: filters, CSV and the work order. Names reach the page as text only.
const MAX_ROWS = 500;

function matchFindings(filters) {
  const device = filters.device.toLowerCase();
  return page.findings.filter((finding) =>
    (!filters.kind || finding.kind === filters.kind) &&
    (!filters.severity || finding.severity === filters.severity) &&
    (!device || [finding.device, ...finding.ports].some((name) => name.toLowerCase().includes(device))));
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

function showRows(body, findings, limit) {
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
    addCell(row, finding.message + swaps.join("")).style.whiteSpace = "pre-line";
    addCell(row, "☐");
  }
}

// A spreadsheet runs a cell that starts with one of these characters as a formula.
function quoteCell(text) {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}

function renderCsv(findings) {
  const rows = findings.map((finding) => [finding.severity, finding.kind, finding.device, finding.port, finding.message, finding.ports.join("; "), finding.since]);
  return [["severity", "kind", "device", "port", "message", "ports", "since"], ...rows].map((row) => row.map(quoteCell).join(",")).join("\r\n");
}

function saveFile(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
