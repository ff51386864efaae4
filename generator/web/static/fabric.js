// The fabric as every view needs it, derived once from a document and the network that is shown.
// A *seat* is a place from left to right: the hosts in the order of the tree, then those outside of it.
const SEVERITIES = ["error", "warning", "info"];
const collator = new Intl.Collator("en", { numeric: true });
const bySense = (one, other) => collator.compare(one, other);
let fabric = null;

// `plane` is the name of a network; any other text stands for all of them.
function buildFabric(plane) {
  const { devices, domains, hosts, links, unplaced } = page;
  const count = devices.name.length;
  const placed = new Set([...hosts, ...unplaced.map(([device]) => device)]);
  const others = devices.kind.flatMap((kind, device) => (kind === "host" && !placed.has(device) ? [device] : []));
  const seats = [...hosts, ...unplaced.map(([device]) => device), ...others];
  const seatOf = new Int32Array(count).fill(-1);
  seats.forEach((device, seat) => { seatOf[device] = seat; });
  const domainOf = new Int32Array(count).fill(-1);
  const children = domains.map(() => []);
  domains.forEach((domain, number) => {
    if (domain.parent >= 0) children[domain.parent].push(number);
    for (const device of domain.switches) domainOf[device] = number;
    if (domain.tier === 1) for (let seat = domain.start; seat < domain.stop; seat++) domainOf[hosts[seat]] = number;
  });
  const cables = chooseCables(plane);
  const linksOf = groupCables(cables, count);
  const findingsOf = Array.from({ length: count }, () => []);
  const numberOf = new Map(devices.name.map((name, number) => [name, number]));
  page.findings.forEach((finding, place) => {
    const named = new Set([finding.number, ...finding.ends.map(([device]) => device)]);
    for (const device of named) if (device >= 0) findingsOf[device].push(place);
  });
  const isSwitch = devices.kind.map((kind) => kind !== "host");
  const { labels, short } = labelDomains(domains);
  const causes = page.findings.filter(({ cause }, place) => cause === place);
  const worst = rankFindings(count, causes);
  const missing = countMissing(count);
  const loose = devices.kind.flatMap((_, device) => (isSwitch[device] && domainOf[device] < 0 ? [device] : []));
  return { plane, cables, loose, seats, seatOf, domainOf, children, linksOf, findingsOf, numberOf, isSwitch, labels, short, causes, worst, missing };
}

// The cables of one network, or of all.
function chooseCables(plane) {
  const { a, planes } = page.links;
  const bit = 1 << page.planes.indexOf(plane);
  const rows = Int32Array.from(a, (_, row) => row);
  return page.planes.includes(plane) ? rows.filter((row) => planes[row] & bit) : rows;
}

// Returns a function that lists the cables of a device.
function groupCables(cables, count) {
  const { a, b } = page.links;
  const starts = new Int32Array(count + 1);
  for (const row of cables) { starts[a[row] + 1] += 1; starts[b[row] + 1] += 1; }
  for (let device = 0; device < count; device++) starts[device + 1] += starts[device];
  const next = starts.slice();
  const rows = new Int32Array(2 * cables.length);
  for (const row of cables) { rows[next[a[row]]++] = row; rows[next[b[row]]++] = row; }
  return (device) => [...rows.subarray(starts[device], starts[device + 1])];
}

// The devices that a finding is about: both sides of an exchange, else its subject, and for a cause those alike.
function listSubjects({ number, ends, swap, alike }) {
  const named = [number, ...alike, ...(number >= 0 && !swap.length ? [] : ends.map(([device]) => device))];
  return [...new Set(named)].filter((device) => device >= 0);
}

// By device, how many of its cables are absent.
function countMissing(count) {
  const missing = new Float64Array(count);
  for (const [a, , b] of page.absent) for (const device of [a, b]) if (device >= 0) missing[device] += 1;
  return missing;
}

// The causes about devices inside of a domain.
const listCauses = (number) => fabric.causes.filter((finding) => listSubjects(finding).some((device) => listChain(fabric.domainOf[device]).includes(number)));

// By device, the most severe finding about it: an index into SEVERITIES, or their number for none.
function rankFindings(count, causes) {
  const worst = new Uint8Array(count).fill(SEVERITIES.length);
  for (const finding of causes) {
    const rank = SEVERITIES.indexOf(finding.severity);
    for (const device of listSubjects(finding)) worst[device] = Math.min(worst[device], rank);
  }
  return worst;
}

// What tells the domains of a group apart: the words that all of them begin with are left out, and
// with `isShortest` also the words after those that make each different.
function tellApart(names, isShortest) {
  const words = names.map((name) => name.split("-"));
  if (words.length < 2) return names;
  let shared = 0;
  while (words.every((row) => row.length > shared + 1 && row[shared] === words[0][shared])) shared += 1;
  let stop = isShortest ? shared + 1 : Infinity;
  while (stop < 12 && new Set(words.map((row) => row.slice(shared, stop).join("-"))).size < words.length) stop += 1;
  return words.map((row) => row.slice(shared, stop).join("-"));
}

// By domain, what tells it from others of its tier, and the shortest text that tells it from its siblings.
function labelDomains(domains) {
  const labels = domains.map(({ name }) => name);
  const short = [...labels];
  const label = (keyOf, target, isShortest) => {
    const groups = new Map();
    domains.forEach((domain, number) => { const key = keyOf(domain); groups.set(key, [...(groups.get(key) ?? []), number]); });
    for (const numbers of groups.values()) tellApart(numbers.map((number) => domains[number].name), isShortest).forEach((text, at) => { target[numbers[at]] = text; });
  };
  label(({ tier }) => tier, labels, false);
  label(({ tier, parent }) => `${tier} ${parent}`, short, true);
  return { labels, short };
}

// The domains around a domain, the largest first, and itself at the end.
function listChain(number) {
  const chain = [];
  for (let at = number; at >= 0; at = page.domains[at].parent) chain.unshift(at);
  return chain;
}

// Most domains are named after their tier, which need not be said twice.
const showDomainName = (domain) => (domain.name.startsWith(tierName(domain)) ? domain.name : `${tierName(domain)} ${domain.name}`);
const tierName = (domain) => page.tiers[domain.tier - 1] ?? "domain";
const seatName = (seat) => page.devices.name[fabric.seats[seat]];
const isAt = (row, device) => page.links.a[row] === device;
const peerOf = (row, device) => (isAt(row, device) ? page.links.b[row] : page.links.a[row]);
const portAt = (row, device) => page.links.ports[isAt(row, device) ? page.links.aPort[row] : page.links.bPort[row]];
const showPort = (device, port) => `${page.devices.name[device]}${port ? ` port ${port}` : ""}`;
// Both ends of a cable, that of a device first.
const showEnds = (row, device) => [device, peerOf(row, device)].map((end) => showPort(end, portAt(row, end)));
const stateOf = (row) => page.states[page.links.state[row]];

// The address of a device: the domain around it, with its panel.
const placeOf = (device) => ({ view: "fabric", device: page.devices.name[device] });

function findDevice(text) {
  const wanted = text.trim().toLowerCase();
  const id = wanted.replace(/^0x/, "");
  if (!wanted) return -1;
  const names = page.devices.name;
  const plain = (name) => name.toLowerCase().replace(/\d+/g, (digits) => String(Number(digits)));
  const exact = names.findIndex((name, at) => name.toLowerCase() === wanted || page.devices.ids[at].includes(id));
  if (exact >= 0) return exact;
  // Numbers need no leading zeros.
  const alike = names.findIndex((name) => plain(name) === plain(wanted));
  return alike >= 0 ? alike : names.findIndex((name) => name.toLowerCase().includes(wanted));
}

function findDomain(text) {
  const wanted = text.trim().toLowerCase();
  return wanted ? page.domains.findIndex((domain) => domain.name.toLowerCase() === wanted) : -1;
}
