// Positions: x in hosts from the left, in tree order; rows from the top, the hosts in the last one.
const page = JSON.parse(document.getElementById("document").textContent) ?? (await loadDocument());

// A file contains its document; a server sends it, and says when it has changed.
async function loadDocument() {
  const answer = await fetch("document.json", { cache: "no-store" });
  if (answer.status === 401) location.assign("login");
  if (!answer.ok) {
    document.getElementById("status").textContent = `No data yet: ${(await answer.text()).slice(0, 300)}`;
    document.body.dataset.failed = answer.status;
    throw new Error(`document.json: ${answer.status}`);
  }
  const tag = answer.headers.get("etag");
  setInterval(async () => {
    const now = await fetch("document.json", { cache: "no-store", headers: { "if-none-match": tag } }).catch(() => null);
    if (now?.ok) document.getElementById("status").textContent = "The fabric has changed: reload the page.";
    if (now?.status === 401) location.assign("login");
  }, 30_000);
  return answer.json();
}

function buildLayout({ devices, domains, hosts, unplaced, tiers }) {
  const count = devices.name.length;
  const x = new Float64Array(count);
  const row = new Int16Array(count).fill(-1);
  const domainOf = new Int32Array(count).fill(-1);
  const last = tiers.length + 1;
  const order = [...hosts, ...unplaced.map(([device]) => device)];
  const placed = new Set(order);
  devices.kind.forEach((kind, device) => {
    if (kind === "host" && !placed.has(device)) order.push(device);
  });
  order.forEach((device, index) => {
    x[device] = index + 0.5;
    row[device] = last;
  });
  const width = Math.max(order.length, 1);
  domains.forEach((domain, number) => {
    const span = domain.stop - domain.start;
    domain.row = last - domain.tier;
    domain.switches.forEach((device, index) => {
      x[device] = domain.start + ((index + 0.5) / domain.switches.length) * span;
      row[device] = domain.row;
      domainOf[device] = number;
    });
    if (domain.tier === 1) {
      for (let at = domain.start; at < domain.stop; at++) domainOf[hosts[at]] = number;
    }
  });
  const others = [];
  for (let device = 0; device < count; device++) if (row[device] < 0) others.push(device);
  others.forEach((device, index) => {
    x[device] = ((index + 0.5) / others.length) * width;
    row[device] = 0;
  });
  const first = others.length ? 0 : 1;
  return { x, row, domainOf, order, width, first, last, others };
}

// Links in the order of their lower ends, so that those in view are one range.
function sortLinks(links, layout) {
  const count = links.a.length;
  const low = new Int32Array(count);
  const high = new Int32Array(count);
  const lowPort = new Int32Array(count);
  const perPort = new Map();
  for (let link = 0; link < count; link++) {
    const isTurned = layout.row[links.a[link]] < layout.row[links.b[link]];
    low[link] = isTurned ? links.b[link] : links.a[link];
    high[link] = isTurned ? links.a[link] : links.b[link];
    lowPort[link] = isTurned ? links.bPort[link] : links.aPort[link];
    if (layout.row[low[link]] === layout.last) {
      perPort.set(lowPort[link], (perPort.get(lowPort[link]) ?? 0) + 1);
    }
  }
  const sorted = Uint32Array.from({ length: count }, (_, link) => link);
  sorted.sort((one, other) => layout.x[low[one]] - layout.x[low[other]]);
  const faulty = [];
  for (let link = 0; link < count; link++) if (links.state[link]) faulty.push(link);
  const linksOf = new Map();
  for (let link = 0; link < count; link++) {
    for (const device of [links.a[link], links.b[link]]) {
      if (!linksOf.has(device)) linksOf.set(device, []);
      linksOf.get(device).push(link);
    }
  }
  const half = layout.order.length / 2;
  const rails = [...perPort].filter(([, uses]) => uses >= half).map(([port]) => port);
  return { low, high, lowPort, sorted, faulty, linksOf, rails };
}

// One line from the middle of a domain to a switch stands for all links of its hosts to it.
function bundleLinks(shown, links, layout) {
  const bundles = new Map();
  for (const link of shown) {
    if (layout.row[links.low[link]] !== layout.last) continue;
    const number = layout.domainOf[links.low[link]];
    const domain = page.domains[number];
    const middle = domain ? (domain.start + domain.stop) / 2 : layout.x[links.low[link]];
    bundles.set(`${number} ${links.high[link]}`, [middle, links.high[link]]);
  }
  return [...bundles.values()];
}

function findFirst(values, wanted) {
  let from = 0;
  let to = values.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (values[middle] < wanted) from = middle + 1;
    else to = middle;
  }
  return from;
}
