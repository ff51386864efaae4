// The jobs: what a gang of some size gets, what is free in each domain, and where gangs run.
const MAX_NODES_SHOWN = 24;
const nodesOf = (seats) => listSome(seats.map(seatName), MAX_NODES_SHOWN);

function describeSpread(row) {
  const parts = Object.entries(row.spread).filter(([, count]) => count).map(([tier, count]) => showCount(count, tier));
  if (row.numOutside) parts.push(`${row.numOutside} outside of the tree`);
  return parts.join(", ");
}

// The free quantity of each domain of a tier, its free whole nodes, and how many gangs fit in it.
function countFree(jobs, tier, quantity) {
  const needed = Math.max(1, Math.ceil(quantity / Math.max(jobs.perNode, 1)));
  const free = sumHosts((seat) => jobs.free[seat]);
  const whole = sumHosts((seat) => Number(jobs.perNode > 0 && jobs.free[seat] >= jobs.perNode));
  return page.domains.filter((domain) => domain.tier === tier).map((domain) => ({ name: domain.name, free: free(domain), whole: whole(domain), fits: Math.floor(whole(domain) / needed) }));
}

function showWanted(jobs, quantity) {
  const row = jobs.wanted.find((one) => one.quantity >= quantity) ?? jobs.wanted.at(-1);
  if (!row) return [empty("The capacity of the nodes is unknown.")];
  const size = `${row.quantity} ${jobs.resource} (${row.count} whole nodes)`;
  const parts = [];
  if (quantity !== row.quantity) parts.push(make("p", { className: "soft" }, `The nearest size that was tried is ${size}.`));
  if (row.isFeasible) {
    const proof = row.isProved ? "No better placement exists" : "A better placement may exist";
    parts.push(make("p", null, `A gang of ${size} gets nodes within one ${row.tier}: ${describeSpread(row)}. ${proof}.`), make("p", null, `Nodes: ${nodesOf(row.nodes)}`));
  } else parts.push(make("p", null, badge("warning"), ` A gang of ${size} does not fit: ${row.reason}.`));
  if (row.verdicts.length) parts.push(make("details", { open: !row.isFeasible }, make("summary", null, "Why this place, and not another"),
    make("ul", null, row.verdicts.map(([name, verdict, needs]) => make("li", null, `${verdict}: ${needs.startsWith(`${name}:`) ? "" : `${name}: `}${needs}`)))));
  return parts;
}

// The ring of a gang: its nodes by rank in the color of their leaf, and in the order of the tree.
function makeRing(gang) {
  const leafOf = (seat) => fabric.domainOf[fabric.seats[seat]];
  const leaves = [...new Set(gang.nodes.map(leafOf))];
  const [now, fewest] = gang.crossings[0]?.slice(1) ?? [null, leaves.length > 1 ? leaves.length : 0];
  const rows = [...(gang.ring.length ? [["As ranked", gang.ring, now]] : []), ["Best order", gang.nodes, fewest]];
  const times = rows.map(([name, , count]) => `${name}: leaves a leaf ${showCount(count, "time")}`);
  const element = make("div", { className: "chart ring", role: "img", "aria-label": times.join("; ") });
  element.style.height = `${34 + 44 * rows.length}px`;
  const drawRing = () => {
    const chart = chartIn(element);
    const axis = { type: "category", axisLine: { show: false }, axisTick: { show: false } };
    const width = Math.max(...rows.map(([, order]) => order.length));
    chart.setOption({
      animation: false,
      grid: { left: 90, right: 4, top: 4, bottom: 28 },
      xAxis: { ...axis, data: Array.from({ length: width }, (_, rank) => String(rank)), name: "rank", nameLocation: "middle", nameGap: 16, nameTextStyle: fonts(), axisLabel: { show: width <= 64, ...fonts(), fontSize: 10 } },
      yAxis: { ...axis, inverse: true, data: rows.map(([name]) => name), axisLabel: fonts() },
      visualMap: { show: false, type: "piecewise", dimension: 2, pieces: leaves.map((_, value) => ({ value, color: color(`job-${value % NUM_JOB_COLORS}`) })) },
      series: [{ type: "heatmap", data: rows.flatMap(([, order], row) => order.map((seat, rank) => [rank, row, leaves.indexOf(leafOf(seat))])), itemStyle: { borderColor: color("card"), borderWidth: width < 200 ? 1 : 0 } }],
    }, { notMerge: true });
    tipOver(chart, (x, y) => {
      const [rank, row] = chart.convertFromPixel({ seriesIndex: 0 }, [x, y]) ?? [];
      const seat = rows[row]?.[1][rank];
      if (seat === undefined || x < 90) return "";
      const leaf = page.domains[leafOf(seat)];
      return `rank ${rank}: ${seatName(seat)}${leaf ? `\n${showDomainName(leaf)}` : ""}`;
    });
  };
  const tiers = gang.crossings.map(([tier, count, least]) => `a ${tier} ${showCount(count, "time")}${count > least ? ` (fewest ${least})` : ", which is the fewest"}`);
  const said = gang.ring.length
    ? `The ring over the ranks leaves ${tiers.join(", ")}. Trees and all-to-all have other best orders. toponaut ranks ${quoteWord(gang.name)} prints the best order for each launcher.`
    : `It is unknown which rank each pod has. A ring in the best order leaves a leaf ${showCount(fewest, "time")}.`;
  return { element: make("div", null, element, make("p", { className: "soft" }, said)), draw: drawRing };
}

function showGang(gang) {
  const ring = gang.nodes.length > 1 ? makeRing(gang) : null;
  const element = make("div", { className: "card", id: "gang" },
    make("h2", null, gang.name),
    make("p", null, gang.nodes.length ? `${showCount(gang.pods, "pod")} within one ${gang.tier}, on ${describeSpread(gang)}.` : `${showCount(gang.pods, "pod")}, on no node of the tree.`),
    ring ? [make("h3", null, "Its ring over ranks"), ring.element] : null,
    make("p", null, "Nodes: ", gang.nodes.slice(0, MAX_NODES_SHOWN).flatMap((seat, at) => [at ? ", " : "", link(seatName(seat), placeOf(fabric.seats[seat]))]), gang.nodes.length > MAX_NODES_SHOWN ? ` and ${gang.nodes.length - MAX_NODES_SHOWN} more` : ""));
  return { element, draw: ring?.draw };
}

function showJobs(address) {
  const room = byId("jobs");
  dropCharts(room);
  const jobs = page.jobs;
  if (!jobs) { fill(room, empty("The jobs are unknown: only a running server knows pods and free capacity.")); return; }
  const quantity = Math.max(1, Number(address.get("size")) || 8 * jobs.perNode || 1);
  const tier = Number(address.get("tier")) || 1;
  const size = make("input", { type: "number", min: "1", step: "1", value: String(quantity) });
  size.addEventListener("change", () => changeAddress({ size: size.value }));
  const gang = jobs.gangs.find((row) => row.name === address.get("gang"));
  const shown = gang ? showGang(gang) : null;
  const picture = make("div", { id: "job-partition", className: "chart", tabIndex: 0, role: "img", "aria-label": "Where gangs run. Arrow keys move among domains and hosts." });
  const [free, gangs] = [make("div", { id: "capacity" }), make("div", { id: "gangs" })];
  const rows = countFree(jobs, tier, quantity);
  const total = rows.reduce((sum, row) => sum + row.fits, 0);
  fill(room,
    make("div", { className: "card" }, make("div", { className: "bar" }, jobs.isKnown ? makeLegend(buildPaint("jobs").legend) : empty("It is unknown which gangs run.")), picture),
    shown?.element,
    make("div", { className: "columns even" },
      make("div", { className: "card" }, make("h2", null, "What a gang gets"),
        make("div", { className: "bar" }, makeField("size", "A gang of", size), jobs.resource), make("div", { id: "wanted" }, showWanted(jobs, quantity))),
      make("div", { className: "card" }, make("h2", null, "Room for more gangs"),
        make("div", { className: "bar" }, makeField("tier", "In each", choiceOf("tier", String(tier), page.tiers.map((name, index) => [String(index + 1), name])))),
        make("p", { id: "room" }, `${showCount(total, "gang")} of ${quantity} ${jobs.resource} still fit, each in one ${page.tiers[tier - 1] ?? "domain"} and on whole nodes.`), free)),
    make("div", { className: "card" }, make("h2", null, "Gangs that run"), make("p", { className: "soft" }, jobs.isKnown ? `${jobs.gangs.length} of ${showCount(jobs.numGangs, "gang")} shown` : "It is unknown which gangs run."), gangs));
  const map = new Partition(picture, { onOpen: ({ domain, device }) => { location.hash = new URLSearchParams(device === undefined ? { view: "fabric", domain: page.domains[domain].name } : placeOf(device)); } });
  map.marked = new Set(gang?.nodes ?? []);
  map.draw(buildPaint("jobs"));
  shown?.draw?.();
  makeTable(free, [
    { title: "Domain", field: "name", width: 140, grow: 2, priority: 0, format: asLink((row) => ({ view: "fabric", domain: row.name })) },
    { title: "Gangs", field: "fits", isNumber: true, width: 70, priority: 0 }, { title: "Whole nodes free", field: "whole", isNumber: true, width: 130 }, { title: "Free", field: "free", isNumber: true, width: 80 },
  ], rows, { height: rows.length > 8 ? 300 : undefined, sort: [{ column: "fits", dir: "desc" }], label: "Room in each domain" });
  makeTable(gangs, [
    { title: "Gang", field: "name", width: 160, grow: 2, priority: 0, format: (cell) => link(cell.getValue(), { view: "jobs", gang: cell.getValue() }) },
    { title: "Pods", field: "pods", isNumber: true, width: 70, priority: 0 }, { title: "Within one", field: "tier", width: 110, priority: 1 },
    { title: "Spread", field: "spreadText", width: 180, grow: 2, priority: 1, isWrapped: true }, { title: "Nodes", field: "nodeText", width: 200, grow: 3, priority: 2, isWrapped: true },
  ], jobs.gangs.map((row) => ({ ...row, tier: row.nodes.length ? row.tier : "no node of the tree", spreadText: describeSpread(row), nodeText: nodesOf(row.nodes) })), { height: jobs.gangs.length > 12 ? 380 : undefined, none: "No gang runs.", label: "Gangs that run" });
}
