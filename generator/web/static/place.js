// One place of the fabric: a domain with grids of its cables, and the panel of a device.
const MAX_GRID_CELLS = 6000;
const MAX_EXCHANGES = 6;
const MAX_CAUSES = 8;
const MAX_ALIKE = 12;

// A domain of an old address may have another name today, which often has a part in common.
function showUnknown(name) {
  const isAlike = (other) => other.toLowerCase().includes(name.toLowerCase());
  const alike = [
    ...page.domains.filter((domain) => isAlike(domain.name)).map((domain) => link(showDomainName(domain), { view: "fabric", domain: domain.name })),
    ...page.devices.name.flatMap((other, at) => (isAlike(other) ? [link(other, placeOf(at))] : [])),
  ];
  const shown = alike.slice(0, MAX_ALIKE);
  const more = alike.length - shown.length;
  return [
    empty(`There is no device or domain ${name} in this fabric.`),
    ...(shown.length ? [make("p", null, "Names that contain it: ", shown.flatMap((one, at) => (at ? [", ", one] : [one])), more ? ` and ${more.toLocaleString("en")} more` : "")] : []),
  ];
}

function showPlace(address) {
  const device = fabric.numberOf.get(address.get("device")) ?? -1;
  const wanted = address.get("domain") ?? (device < 0 ? address.get("device") : null);
  const named = page.domains.findIndex((domain) => domain.name === wanted);
  const domain = named >= 0 ? named : device >= 0 ? fabric.domainOf[device] : -1;
  const room = byId("place");
  dropCharts(room);
  fill(room, make("div", { className: "bar" }, showCrumbs(domain, device), choosePlane()));
  if (domain < 0 && device < 0) { room.append(...showUnknown(address.get("device") ?? address.get("domain"))); return; }
  const left = device >= 0 ? [showDevice(device, address.get("port"))] : [];
  const right = [];
  if (domain >= 0) {
    const { head, exchanges, hosts, uplinks, parts } = showDomain(domain);
    left.push(...(device >= 0 ? exchanges : [...head, ...hosts, ...parts]));
    right.push(...(device >= 0 ? [...head, ...hosts, ...parts, ...uplinks] : [...exchanges, ...uplinks]));
  }
  room.append(make("div", { className: right.length ? "columns even" : "" }, [left, right].filter((cards) => cards.length).map((cards) => make("div", { className: "stack" }, cards.map(({ element }) => element)))));
  for (const { draw } of [...left, ...right]) draw?.();
}

function showCrumbs(domain, device) {
  const crumbs = [link("Fabric", { view: "fabric" })];
  for (const number of domain >= 0 ? listChain(domain) : []) crumbs.push(link(showDomainName(page.domains[number]), { view: "fabric", domain: page.domains[number].name }));
  if (device >= 0) crumbs.push(make("span", { "aria-current": "page" }, page.devices.name[device]));
  return make("nav", { className: "crumbs", "aria-label": "Where this is" }, crumbs.flatMap((crumb, at) => (at ? [" › ", crumb] : [crumb])));
}

function showDomain(number) {
  const domain = page.domains[number];
  const hosts = page.hosts.slice(domain.start, domain.stop);
  const below = fabric.children[number];
  const heads = make("div", { className: "card" }, make("h2", null, showDomainName(domain)), make("p", null, describeDomain(domain)), showCauses(number));
  const crossed = listExchanges(number);
  const more = crossed.length - MAX_EXCHANGES;
  return {
    head: [{ element: heads }],
    exchanges: [
      ...crossed.slice(0, MAX_EXCHANGES).map((row) => ({ element: showExchange(row) })),
      ...(more > 0 ? [{ element: make("p", { className: "soft" }, `${MAX_EXCHANGES} of ${crossed.length} exchanges shown`) }] : []),
    ],
    hosts: below.length ? [] : [gridCard("Hosts and ports", "hosts by ports", buildHostGrid(hosts), STATE_LEGEND)],
    uplinks: showUplinks(number),
    parts: below.length ? [showChildren(below)] : [],
  };
}

// The ends of a cause, and only the devices inside of a domain if the cause is at others too.
function showEndsInside(finding, number) {
  const subjects = listSubjects(finding);
  const inside = subjects.filter((device) => listChain(fabric.domainOf[device]).includes(number));
  if (!finding.alike.length || inside.length === subjects.length) return showFindingEnds(finding);
  const names = inside.slice(0, MAX_ALIKE).map((device) => page.devices.name[device]).join(", ");
  const more = inside.length > MAX_ALIKE ? ` and ${inside.length - MAX_ALIKE} more` : "";
  return make("span", { className: "ends" }, `${names}${more}, of ${subjects.length} like this`);
}

// What is wrong inside of a domain, the costliest first.
function showCauses(number) {
  const causes = listCauses(number);
  const rows = causes.slice(0, MAX_CAUSES).map((finding) => make("li", null, badge(finding.severity), " ", link(finding.kind, { view: "findings", finding: String(finding.cause) }), " ", showEndsInside(finding, number), finding.causeCosts ? make("span", { className: "impact" }, ` ${finding.causeCosts}`) : null));
  if (!rows.length) return make("p", { className: "soft" }, "Nothing is wrong here.");
  return [make("h3", null, showCount(causes.length, "cause")), make("ul", { className: "causes" }, rows), causes.length > rows.length ? make("p", { className: "soft" }, `${rows.length} of ${showCount(causes.length, "cause")}`) : null];
}

// The ports of a device whose cable is absent. A lost switch has no device, and often a name.
function listAbsentPorts(device) {
  const row = (port, peer, peerPort, { kind, lostName }) => ({ port: port || "unknown", peer: peer >= 0 ? page.devices.name[peer] : kind === "lost-switch" ? lostName || "a lost switch" : "", peerNumber: peer, peerPort, state: kind === "down-port" ? "down" : "missing", rate: "", urgency: page.states.length });
  return page.absent.flatMap(([a, aPort, b, bPort, place]) => [
    ...(a === device ? [row(aPort, b, bPort, page.findings[place])] : []),
    ...(b === device ? [row(bPort, a, aPort, page.findings[place])] : []),
  ]);
}

function describeDomain(domain) {
  const parts = [showCount(domain.stop - domain.start, "node"), domain.switches.length ? showCount(domain.switches.length, "switch") : "no switch of its own"];
  if (page.jobs) parts.push(`${page.jobs.free.slice(domain.start, domain.stop).reduce((sum, free) => sum + free, 0)} ${page.jobs.resource} free`);
  return `${parts.join(", ")}.`;
}

function gridCard(title, label, grid, legend) {
  if (!grid.cells.length) return { element: make("div", { className: "card" }, make("h3", null, title), empty("No cables are known here.")) };
  if (grid.cells.length > MAX_GRID_CELLS) return { element: make("div", { className: "card" }, make("h3", null, title), empty(`${grid.cells.length.toLocaleString("en")} cells are too many for one picture: open one of its parts.`)) };
  const { element, draw } = makeGrid({ ...grid, label: `${title}: ${label}` });
  return { element: make("div", { className: "card" }, make("h3", null, title), legend ? makeLegend(legend) : null, make("div", { className: "sideways", tabIndex: -1 }, element)), draw };
}

// The switches of a domain against those above it, or its parts against its own switches.
function showUplinks(number) {
  const domain = page.domains[number];
  const asGroup = (device) => ({ name: page.devices.name[device], devices: [device], open: () => { location.hash = new URLSearchParams(placeOf(device)); } });
  if (fabric.children[number].length) {
    if (!domain.switches.length) return [];
    const parts = fabric.children[number].map((child) => ({ name: fabric.labels[child], devices: page.domains[child].switches, open: () => { location.hash = new URLSearchParams({ view: "fabric", domain: page.domains[child].name }); } }));
    return [gridCard("Cables between its parts and its switches", "domains by switches", buildSwitchGrid(parts, domain.switches.map(asGroup)))];
  }
  const above = new Set(domain.switches.flatMap((device) => fabric.linksOf(device).map((row) => peerOf(row, device)).filter((peer) => fabric.isSwitch[peer] && !domain.switches.includes(peer))));
  if (!above.size) return [];
  return [gridCard("Cables to the switches above", "switches by switches", buildSwitchGrid(domain.switches.map(asGroup), [...above].sort((one, other) => bySense(page.devices.name[one], page.devices.name[other])).map(asGroup)))];
}

function showChildren(numbers) {
  const { counts } = countFaults();
  const free = page.jobs ? sumHosts((seat) => page.jobs.free[seat]) : null;
  const rows = numbers.map((number) => ({ name: page.domains[number].name, label: fabric.labels[number], nodes: page.domains[number].stop - page.domains[number].start, faults: counts[number], free: free?.(page.domains[number]) }));
  const table = make("div");
  const columns = [
    { title: "Domain", field: "name", width: 130, grow: 2, priority: 0, format: asLink((row) => ({ view: "fabric", domain: row.name })) },
    { title: "Nodes", field: "nodes", isNumber: true, width: 80 }, { title: "Causes", field: "faults", isNumber: true, width: 80, priority: 0 },
    ...(free ? [{ title: "Free", field: "free", isNumber: true, width: 80 }] : []),
  ];
  return { element: make("div", { className: "card" }, make("h3", null, `Its ${showCount(numbers.length, "part")}`), table), draw: () => makeTable(table, columns, rows, { height: rows.length > 12 ? 360 : undefined, label: "Parts of the domain" }) };
}

// A device: its ports with the bad ones first, its findings, and what silences each.
function showDevice(device, port) {
  const { name, kind, ids } = page.devices;
  const out = page.unplaced.find(([unplaced]) => unplaced === device);
  const rows = fabric.linksOf(device).map((cable) => ({ port: portAt(cable, device), peer: name[peerOf(cable, device)], peerPort: portAt(cable, peerOf(cable, device)), peerNumber: peerOf(cable, device), state: stateOf(cable), rate: showRate(page.links.gbps[page.links.rate[cable]]), urgency: page.links.state[cable] }));
  const numCables = rows.length;
  rows.push(...listAbsentPorts(device));
  rows.sort((one, other) => other.urgency - one.urgency || bySense(one.port, other.port));
  const table = make("div");
  const findings = fabric.findingsOf[device].map((place) => showFindingCard(page.findings[place], place));
  const element = make("div", { className: "card", id: "device" },
    make("h2", null, `${kind[device]} ${name[device]}`),
    make("p", { className: "soft" }, listSome(ids[device], 4)),
    out ? make("p", null, badge("warning"), ` No place in the tree: ${out[1]}`) : null,
    findings.length ? make("h3", null, "What is wrong") : null, findings,
    make("h3", null, `${showCount(numCables, "cable")}${rows.length > numCables ? `, ${rows.length - numCables} absent` : ""}`),
    rows.length ? table : empty("No cable of this device is known."));
  const columns = [
    { title: "Port", field: "port", width: 90, priority: 0 },
    { title: "State", field: "state", width: 90, priority: 0, format: (cell) => make("span", { className: `state ${cell.getValue()}` }, `${STATE_STYLES[cell.getValue()]?.glyph ?? ""} ${cell.getValue()}`) },
    { title: "To", field: "peer", width: 120, grow: 1, priority: 0, format: (cell) => (cell.getData().peerNumber >= 0 ? link(cell.getValue(), placeOf(cell.getData().peerNumber)) : asText(cell)) },
    { title: "Port there", field: "peerPort", width: 100 }, { title: "Rate", field: "rate", width: 100, priority: 2 },
  ];
  return {
    element,
    draw: () => {
      if (!rows.length) return;
      const made = makeTable(table, columns, rows, { height: rows.length > 16 ? 420 : undefined, label: "Cables of the device" });
      if (port) made.on("tableBuilt", () => made.getRows().find((row) => row.getData().port === port)?.getElement().classList.add("chosen"));
    },
  };
}

// The exchanges with a device in this domain, as rows of the document.
function listExchanges(number) {
  const isInside = (device) => listChain(fabric.domainOf[device]).includes(number);
  return page.exchanges.filter(([one, other]) => [one, other].some((cable) => [page.links.a[cable], page.links.b[cable]].some(isInside)));
}

const SVG = "http://www.w3.org/2000/svg";
function draw(tag, properties, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
  if (text) element.textContent = text;
  return element;
}

// Two cables that cross: their four ports in two panels, and dashed the cables as they should be.
function showExchange([one, other, place]) {
  const ends = [one, other].map((row) => {
    const { a, b } = page.links;
    const isTurned = !fabric.isSwitch[b[row]] || (fabric.isSwitch[a[row]] && bySense(page.devices.name[a[row]], page.devices.name[b[row]]) > 0);
    const [low, high] = isTurned ? [b[row], a[row]] : [a[row], b[row]];
    return [[low, portAt(row, low)], [high, portAt(row, high)]];
  });
  const picture = draw("svg", { viewBox: "0 0 560 132", class: "exchange", role: "img", "aria-label": `The cables at ${ends.map(([low]) => showPort(...low)).join(" and ")} are exchanged` });
  const heights = [44, 100];
  // The upper panel's right side lists the ports where the cables belong, so that today's cables cross.
  const right = [ends[1][1], ends[0][1]];
  ends.forEach(([low], at) => picture.append(...drawPort(low, 8, heights[at])));
  right.forEach((high, at) => picture.append(...drawPort(high, 352, heights[at])));
  heights.forEach((y, at) => {
    picture.append(draw("line", { x1: 208, y1: y, x2: 352, y2: heights[1 - at], class: "today" }));
    picture.append(draw("line", { x1: 208, y1: y, x2: 352, y2: y, class: "mended" }));
  });
  picture.append(draw("text", { x: 280, y: 16, class: "note" }, "— as cabled    - - as they belong"));
  return make("div", { className: "card" }, make("h3", null, "Exchanged cables"), picture,
    make("p", null, showSwap(page.findings[place]).join(" "), " ", link("Finding", { view: "findings", finding: String(place) })));
}

function drawPort([device, port], x, y) {
  const name = page.devices.name[device];
  return [
    draw("rect", { x, y: y - 22, width: 200, height: 44, rx: 5, class: "panel" }),
    draw("text", { x: x + 10, y: y - 4 }, name.length > 26 ? `…${name.slice(-25)}` : name),
    draw("text", { x: x + 10, y: y + 13, class: "soft" }, `port ${port}`),
  ];
}
