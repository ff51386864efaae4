// Grids of cells: hosts by ports, or switches by switches. Each state has a color and a glyph.
const CELL = { width: 26, most: 72, height: 20, label: 150, head: 86 };
const STATE_STYLES = {
  good: { token: "good", glyph: "" },
  "one-sided": { token: "info", glyph: "‹" },
  slow: { token: "warning", glyph: "~" },
  flapping: { token: "warning", glyph: "≈" },
  down: { token: "error", glyph: "×" },
  swapped: { token: "swapped", glyph: "⤫" },
  missing: { token: "error", glyph: "?" },
  none: { token: "outside", glyph: "" },
};
const STATE_LEGEND = Object.entries(STATE_STYLES).map(([text, style]) => ({ ...style, text: text === "none" ? "no cable known" : text }));

// Draws cells `{row, column, token, glyph, tip, open}`; arrow keys move among them, Enter opens one.
function makeGrid({ rows, columns, cells, label }) {
  const labelWidth = Math.min(CELL.label, 16 + 7 * Math.max(...rows.map((row) => row.length)));
  const headHeight = Math.min(CELL.head, 16 + 6 * Math.max(...columns.map((column) => column.length)));
  const element = make("div", { className: "chart grid-chart", tabIndex: 0, role: "img", "aria-label": `${label}. Arrow keys move among the cells, Enter opens one.` });
  element.style.height = `${headHeight + rows.length * CELL.height + 4}px`;
  const at = new Map(cells.map((cell, number) => [`${cell.row} ${cell.column}`, number]));
  const tokens = [...new Set(cells.map(({ token }) => token))];
  const draw = () => {
    const room = (element.parentElement.clientWidth - labelWidth - 2) / columns.length;
    element.style.width = `${labelWidth + 2 + columns.length * Math.max(CELL.width, Math.min(CELL.most, room))}px`;
    if (room < CELL.width) element.parentElement.after(make("p", { className: "soft" }, `All ${columns.length} columns: scroll sideways.`));
    const chart = chartIn(element);
    const axis = { type: "category", axisLine: { show: false }, axisTick: { show: false }, splitLine: { show: false } };
    chart.setOption({
      animation: false,
      grid: { left: labelWidth, right: 2, top: headHeight, bottom: 2 },
      xAxis: { ...axis, data: columns, position: "top", axisLabel: { ...fonts(), fontSize: 11, rotate: headHeight > 30 ? 60 : 0, interval: 0, width: CELL.head, overflow: "truncate" } },
      yAxis: { ...axis, data: rows, inverse: true, axisLabel: { ...fonts(), fontSize: 11, interval: 0, width: labelWidth - 10, overflow: "truncate" } },
      visualMap: { show: false, type: "piecewise", dimension: 2, pieces: tokens.map((token, value) => ({ value, color: color(token) })) },
      series: [{
        type: "heatmap",
        data: cells.map((cell) => ({ value: [cell.column, cell.row, tokens.indexOf(cell.token)], label: { color: color(cell.token === "good" || cell.token === "outside" ? "text" : "on-mark") } })),
        label: { show: true, formatter: ({ dataIndex }) => cells[dataIndex].glyph ?? "", fontSize: 12 },
        itemStyle: { borderColor: color("card"), borderWidth: 1, borderRadius: 3 },
        emphasis: { itemStyle: { borderColor: color("accent"), borderWidth: 2 } },
      }],
    }, { notMerge: true });
    tipOver(chart, (x, y) => {
      const [column, row] = chart.convertFromPixel({ seriesIndex: 0 }, [x, y]) ?? [];
      return x < labelWidth || y < headHeight ? "" : cells[at.get(`${row} ${column}`)]?.tip ?? "";
    });
    chart.on("click", ({ dataIndex }) => { showTip(""); cells[dataIndex]?.open?.(); });
  };
  let cursor = 0;
  element.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (event.key === "Enter") { cells[cursor]?.open?.(); return; }
    const step = steps[event.key];
    if (!step || !cells[cursor]) return;
    event.preventDefault();
    const next = at.get(`${cells[cursor].row + step[0]} ${cells[cursor].column + step[1]}`);
    if (next === undefined) return;
    chartIn(element).dispatchAction({ type: "downplay", seriesIndex: 0, dataIndex: cursor });
    cursor = next;
    chartIn(element).dispatchAction({ type: "highlight", seriesIndex: 0, dataIndex: cursor });
    announce(cells[cursor].tip);
  });
  return { element, draw };
}

// The cables of hosts: a row per host, a column per port. A rail that is dead shows as a column.
function buildHostGrid(devices) {
  const ports = new Set();
  const linkAt = new Map();
  for (const device of devices) for (const row of fabric.linksOf(device)) { ports.add(portAt(row, device)); linkAt.set(`${device} ${portAt(row, device)}`, row); }
  const faultAt = new Map();
  for (const device of devices) for (const place of fabric.findingsOf[device]) {
    const finding = page.findings[place];
    for (const [end, port] of finding.ends) if (end === device && port) { ports.add(port); if (!faultAt.has(`${device} ${port}`)) faultAt.set(`${device} ${port}`, finding); }
  }
  const columns = [...ports].sort(bySense);
  const cells = devices.flatMap((device, row) => columns.map((port, column) => {
    const cable = linkAt.get(`${device} ${port}`);
    const fault = faultAt.get(`${device} ${port}`);
    const state = cable !== undefined ? stateOf(cable) : fault ? (fault.kind === "down-port" ? "down" : "missing") : "none";
    const ends = cable === undefined ? `${showPort(device, port)}: ${state === "none" ? "no cable known" : state}` : `${showEnds(cable, device).join(" ↔ ")}\n${[state, showRate(page.links.gbps[page.links.rate[cable]])].filter(Boolean).join(", ")}`;
    const tip = fault ? `${ends}\n${fault.severity} ${fault.kind}` : ends;
    return { row, column, ...STATE_STYLES[state], tip, open: () => { location.hash = new URLSearchParams({ ...placeOf(device), port }); } };
  }));
  return { rows: devices.map((device) => page.devices.name[device]), columns, cells };
}

// The cables between two groups of switches: how many, how fast, and how many of them are bad.
function buildSwitchGrid(lower, upper) {
  const columnOf = new Map(upper.flatMap(({ devices }, column) => devices.map((device) => [device, column])));
  const sums = lower.map(({ devices }) => {
    const row = upper.map(() => ({ count: 0, gbps: 0, bad: 0 }));
    for (const device of devices) for (const cable of fabric.linksOf(device)) {
      const sum = row[columnOf.get(peerOf(cable, device))];
      if (!sum) continue;
      sum.count += 1;
      sum.gbps += page.links.gbps[page.links.rate[cable]];
      sum.bad += Number(page.links.state[cable] > 0);
    }
    return row;
  });
  // A pair has as many cables as most pairs of its row and of its column.
  const ofRow = sums.map((row) => findMode(row.map(({ count }) => count)));
  const ofColumn = upper.map((_, column) => findMode(sums.map((row) => row[column].count)));
  const cells = sums.flatMap((sumsOfRow, row) => sumsOfRow.map(({ count, gbps, bad }, column) => {
    const usual = Math.min(ofRow[row], ofColumn[column]);
    const token = count < usual ? (count ? "warning" : "error") : bad ? "warning" : count ? "good" : "outside";
    const speed = gbps ? `, ${showRate(gbps)}` : "";
    const tip = `${lower[row].name} ↔ ${upper[column].name}\n${showCount(count, "cable")}${speed}${bad ? `, ${bad} bad` : ""}${count < usual ? `\nmost pairs have ${usual}` : ""}`;
    return { row, column, token, glyph: count || usual ? String(count) : "", tip, open: lower[row].open };
  }));
  return { rows: lower.map(({ name }) => name), columns: upper.map(({ name }) => name), cells };
}

// The most frequent value, of several the largest: what is missing is more often seen than too much.
function findMode(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1] || other[0] - one[0])[0]?.[0] ?? 0;
}
