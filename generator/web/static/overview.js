// The overview: tiles of health, what to fix first, and the whole fabric as a partition.
const MAX_FIRST = 5;
const MAX_LOOSE = 40;
const MARKS = { error: "■", warning: "▬", info: "·" };
let partition = null;

// Draws the mark of a severity in a cell: a square for an error, a bar below for a warning.
function shapeOfMark(mark, x, y, width, height) {
  const side = Math.min(9, Math.max(2, Math.min(width, height) / 3));
  // In the corner, where it leaves room for a name.
  if (mark === "error") return [x + width - side - 2, y + 2, side, side];
  const bar = Math.min(4, Math.max(1.5, height / 8));
  return [x, y + height - bar, width, bar];
}

// Sums numbers of hosts over each domain.
function sumHosts(values) {
  const sums = new Float64Array(page.hosts.length + 1);
  for (let seat = 0; seat < page.hosts.length; seat++) sums[seat + 1] = sums[seat] + values(seat);
  return (domain) => sums[domain.stop] - sums[domain.start];
}

// How many causes there are in each domain, and the most severe of them.
function countFaults() {
  const counts = new Int32Array(page.domains.length);
  const worst = new Uint8Array(page.domains.length).fill(SEVERITIES.length);
  for (const finding of fabric.causes) {
    const around = new Set(listSubjects(finding).flatMap((device) => listChain(fabric.domainOf[device])));
    for (const domain of around) {
      counts[domain] += 1;
      worst[domain] = Math.min(worst[domain], SEVERITIES.indexOf(finding.severity));
    }
  }
  return { counts, worst };
}

function nameOfFound({ domain, seat }) {
  if (seat !== undefined) return `${seatName(seat)}${domain < 0 ? ", not in the tree" : `, in ${page.domains[domain].name}`}`;
  const row = page.domains[domain];
  return `${showDomainName(row)}: ${showCount(row.stop - row.start, "node")}`;
}

function paintFaults() {
  const { counts, worst } = countFaults();
  const severity = (device) => SEVERITIES[fabric.worst[device]];
  return {
    seat: (seat) => { const token = severity(fabric.seats[seat]); return token ? { token, mark: token } : { token: "good" }; },
    domain: (number) => {
      const own = Math.min(SEVERITIES.length, ...page.domains[number].switches.map((device) => fabric.worst[device]));
      const inside = SEVERITIES[worst[number]];
      const note = counts[number] ? showCount(counts[number], "cause") : "";
      if (own < SEVERITIES.length && own <= worst[number]) return { token: SEVERITIES[own], note, isStrong: true };
      return { token: inside ? `tint-${inside}` : "good", note };
    },
    describe: (found) => {
      const causes = found.seat === undefined ? [] : fabric.findingsOf[fabric.seats[found.seat]].map((place) => page.findings[place]);
      const lines = causes.map((finding) => `${finding.severity} ${finding.kind}`);
      const sum = found.seat === undefined && found.domain >= 0 ? [counts[found.domain] ? showCount(counts[found.domain], "cause") : "no findings"] : lines.length ? lines : ["no findings"];
      return [nameOfFound(found), ...sum].join("\n");
    },
    legend: [
      { token: "good", text: "no finding" }, { token: "info", text: "info" },
      { token: "warning", glyph: MARKS.warning, text: "warning" }, { token: "error", glyph: MARKS.error, text: "error" },
      { token: "tint-warning", text: "a finding inside" },
    ],
  };
}

function paintFree() {
  const { free, perNode, resource } = page.jobs;
  const level = (share) => `free-${Math.round(Math.max(0, Math.min(1, share)) * 4)}`;
  const sum = sumHosts((seat) => free[seat]);
  const whole = sumHosts((seat) => Number(perNode > 0 && free[seat] >= perNode));
  return {
    seat: (seat) => ({ token: seat < page.hosts.length ? level(free[seat] / Math.max(perNode, 1)) : "outside" }),
    domain: (number) => {
      const domain = page.domains[number];
      const share = sum(domain) / Math.max(1, perNode * (domain.stop - domain.start));
      return { token: level(share), note: `${sum(domain)} free` };
    },
    describe: (found) => {
      const { domain, seat } = found;
      if (seat !== undefined) return `${nameOfFound(found)}\n${seat < page.hosts.length ? `${free[seat]} of ${perNode} ${resource} free` : ""}`;
      return `${nameOfFound(found)}\n${sum(page.domains[domain])} ${resource} free\n${showCount(whole(page.domains[domain]), "whole node")} free`;
    },
    legend: [["nothing free", 0], ["half", 2], ["all free", 4]].map(([text, step]) => ({ token: `free-${step}`, text })),
  };
}

function paintJobs() {
  const gangsAt = fabric.seats.map(() => []);
  page.jobs.gangs.forEach((gang, number) => { for (const seat of gang.nodes) gangsAt[seat].push(number); });
  const busy = sumHosts((seat) => Number(gangsAt[seat].length > 0));
  return {
    seat: (seat) => {
      const [first, ...more] = gangsAt[seat];
      return first === undefined ? { token: "good" } : { token: `job-${first % NUM_JOB_COLORS}`, mark: more.length ? "warning" : undefined };
    },
    domain: (number) => {
      const count = busy(page.domains[number]);
      return { token: "good", note: count ? `${count} busy` : "idle" };
    },
    describe: (found) => {
      const gangs = found.seat === undefined ? [] : gangsAt[found.seat].map((number) => page.jobs.gangs[number].name);
      return [nameOfFound(found), ...(found.seat === undefined ? [] : gangs.length ? gangs : ["no gang"])].join("\n");
    },
    legend: [
      { token: "good", text: "no gang" },
      ...page.jobs.gangs.slice(0, 6).map(({ name }, number) => ({ token: `job-${number % NUM_JOB_COLORS}`, text: name })),
      ...(page.jobs.gangs.length > 6 ? [{ token: "outside", text: `6 of ${page.jobs.gangs.length} gangs shown here` }] : []),
    ],
  };
}

function paintLinks() {
  const count = (device) => {
    const rows = fabric.linksOf(device);
    const missing = fabric.missing[device];
    return [rows.filter((row) => page.links.state[row]).length + missing, rows.length + missing];
  };
  const level = ([bad, all]) => (!all ? "outside" : bad ? `link-${Math.min(3, Math.ceil((6 * bad) / all))}` : "good");
  const ofDomain = ({ switches }) => switches.map(count).reduce(([bad, all], [moreBad, more]) => [bad + moreBad, all + more], [0, 0]);
  return {
    seat: (seat) => ({ token: level(count(fabric.seats[seat])) }),
    domain: (number) => {
      const found = ofDomain(page.domains[number]);
      return { token: level(found), note: found[0] ? `${found[0]} bad` : "", isStrong: level(found) === "link-3" };
    },
    describe: (found) => {
      const [bad, all] = found.seat === undefined ? ofDomain(page.domains[found.domain]) : count(fabric.seats[found.seat]);
      return `${nameOfFound(found)}\n${all - bad} of ${showCount(all, "cable")} good`;
    },
    legend: [
      { token: "good", text: "all cables good" }, { token: "link-1", text: "up to 1 in 6 bad" },
      { token: "link-2", text: "up to 1 in 3" }, { token: "link-3", text: "more" }, { token: "outside", text: "no cable known" },
    ],
  };
}

// How the partition may be colored: a name, its paint, and why it cannot be chosen.
const PAINTS = {
  faults: { text: "Faults", build: paintFaults },
  links: { text: "Cables", build: paintLinks, lacks: () => (page.links.a.length ? "" : "no cables are known") },
  free: { text: "Free", build: paintFree, lacks: () => lackOfJobs() },
  jobs: { text: "Jobs", build: paintJobs, lacks: () => lackOfJobs() || (page.jobs.isKnown ? "" : "it is unknown which gangs run") },
};
// Which of several networks is shown.
function choosePlane() {
  if (page.planes.length < 2) return [];
  return makeField("plane", "Network", choiceOf("plane", fabric.plane ?? "", [["", "all"], ...page.planes.map((name) => [name, name])]));
}

const lackOfJobs = () => (page.jobs ? "" : "only a running server knows jobs");
const buildPaint = (name) => ({ shape: shapeOfMark, ...PAINTS[name].build() });

function makeTile(title, value, note, address, severity) {
  const body = [make("span", { className: "tile-title" }, title), make("strong", { className: severity ?? "" }, value), make("span", { className: "tile-note" }, note)];
  return address ? make("a", { className: "tile", href: `#${new URLSearchParams(address)}` }, body) : make("div", { className: "tile" }, body);
}

function showTiles() {
  const { jobs, changes } = page;
  const bad = fabric.cables.filter((row) => page.links.state[row]).length;
  const missing = page.absent.length;
  const all = fabric.cables.length + missing;
  const of = (severity) => page.findings.filter((finding) => finding.severity === severity).length;
  const [errors, warnings] = [of("error"), of("warning")];
  const out = fabric.seats.length - page.hosts.length;
  const silent = page.findings.filter(({ kind }) => kind === "silent-node").length;
  const places = [out ? `${out} without a place` : "every node has a place", ...(silent ? [`${silent.toLocaleString("en")} silent`] : [])];
  const last = changes?.steps?.[0];
  const tiles = [
    makeTile("Nodes placed", `${page.hosts.length.toLocaleString("en")} of ${fabric.seats.length.toLocaleString("en")}`, places.join(", "), null, out || silent ? "warning" : ""),
    makeTile("Cables good", fabric.cables.length ? showShare(all - bad - missing, all) : "unknown", fabric.cables.length ? `of ${all.toLocaleString("en")}: ${missing.toLocaleString("en")} missing, ${bad.toLocaleString("en")} bad` : "no cables in these sources", null, bad + missing ? "warning" : ""),
    makeTile("Findings", page.findings.length.toLocaleString("en"), `of ${showCount(fabric.causes.length, "cause")}: ${showCount(errors, "error")}, ${showCount(warnings, "warning")}`, { view: "findings" }, errors ? "error" : warnings ? "warning" : ""),
  ];
  if (jobs) {
    const free = jobs.free.reduce((sum, value) => sum + value, 0);
    const best = jobs.wanted.findLast((row) => row.isFeasible);
    tiles.push(makeTile(`Free ${jobs.resource}`, jobs.perNode ? `${free.toLocaleString("en")} of ${(jobs.perNode * page.hosts.length).toLocaleString("en")}` : "unknown", best ? `largest gang: ${best.quantity}` : "no whole node is free", { view: "jobs" }));
  }
  if (changes) {
    tiles.push(makeTile("Last change", last ? showTime(last.atS).slice(0, 10) : "unknown", last ? `${showTime(last.atS).slice(11, 16)}, ${last.isFirst ? `generation ${last.generation}` : showCount(last.numChanges, "change")}` : "the page was made without a history", { view: "changes" }));
    tiles.push(makeTile("Held", changes.held ? showCount(changes.held.movedNodes, "node") : "nothing", changes.held ? "a plan waits for approval" : "every plan was written", { view: "changes" }, changes.held ? "warning" : ""));
  }
  fill(byId("tiles"), tiles);
}

// The ports of a lost switch are those of its neighbors, each of which waits for a cable.
const isCable = ({ kind, cables }) => (cables > 0 && kind !== "lost-switch") || kind === "one-sided-link";

// Both ends of a finding's cable, or the first ports that it names; a name is never broken.
function showFindingEnds(finding) {
  const ends = finding.ports.length ? finding.ports.slice(0, 2) : [finding.port ? `${finding.device} port ${finding.port}` : finding.device];
  const alike = finding.alike?.length ? `, and ${showCount(finding.alike.length, "other")} like this` : null;
  return make("span", { className: "ends" }, ends.map((end, at) => [at ? (isCable(finding) ? " ↔ " : ", ") : "", make("span", { className: "name" }, end)]), isCable(finding) || finding.ports.length <= ends.length ? null : ` and ${finding.ports.length - ends.length} more`, alike);
}

function showFirst() {
  const rows = fabric.causes.slice(0, MAX_FIRST).map((finding) => make("li", null,
    make("a", { href: `#${new URLSearchParams({ view: "findings", finding: String(finding.cause) })}` },
      badge(finding.severity), make("span", { className: "kind" }, finding.kind)),
    make("div", null, showFindingEnds(finding)),
    finding.causeCosts ? make("div", { className: "impact" }, `costs ${finding.causeCosts}`) : null));
  const more = fabric.causes.length - rows.length;
  fill(byId("first"), make("h2", null, "Fix these first"),
    rows.length ? make("p", { className: "soft" }, "What each costs: a share of the bandwidth of so many nodes.") : null,
    rows.length ? make("ol", null, rows) : empty("Nothing is wrong in these sources."),
    more > 0 ? make("p", null, link(`${rows.length} of ${showCount(fabric.causes.length, "cause")}: all findings`, { view: "findings" })) : null);
}

function showOverview(address) {
  const asked = address.get("color") ?? "faults";
  const mode = PAINTS[asked] && !PAINTS[asked].lacks?.() ? asked : "faults";
  showTiles();
  showFirst();
  const choices = Object.entries(PAINTS).map(([name, { text }]) => [name, text]);
  const chooser = makeSwitch("Color by", choices, mode, (name) => changeAddress({ color: name === "faults" ? null : name }));
  for (const button of chooser.children) {
    const lack = PAINTS[button.dataset.value].lacks?.();
    if (lack) Object.assign(button, { disabled: true, title: lack });
  }
  const paint = buildPaint(mode);
  const loose = fabric.loose.slice(0, MAX_LOOSE).map((device) => link(page.devices.name[device], placeOf(device)));
  fill(byId("loose"), loose.length ? make("details", null, make("summary", null, `${showCount(fabric.loose.length, "switch")} outside of the tree`), make("p", null, loose.flatMap((one, at) => (at ? [", ", one] : [one])), fabric.loose.length > loose.length ? ` and ${fabric.loose.length - loose.length} more` : "")) : null);
  const whole = make("button", { type: "button", className: "quiet" }, "Whole fabric");
  whole.addEventListener("click", () => partition.zoom(0, partition.width));
  fill(byId("partition-bar"), chooser, choosePlane(), makeLegend(paint.legend), whole);
  const [start, stop] = (address.get("at") ?? "").split(",").map(Number);
  const range = stop > start ? [start, Math.min(stop, fabric.seats.length)] : undefined;
  dropCharts(byId("fabric"));
  const element = make("div", { id: "partition", className: "chart", tabIndex: 0, role: "img", "aria-label": "The fabric as a partition. Arrow keys move among domains and hosts, Enter goes in, Escape goes out, 0 shows the whole fabric." });
  fill(byId("partition-room"), element);
  partition = new Partition(element, {
    onOpen: ({ domain, device }) => { location.hash = new URLSearchParams(device === undefined ? { view: "fabric", domain: page.domains[domain].name } : placeOf(device)); },
    onMove: ([from, to]) => changeAddress({ at: to - from < partition.width - 0.01 ? `${from.toFixed(2)},${to.toFixed(2)}` : null }, { isQuiet: true }),
  });
  partition.draw(paint, range);
}
