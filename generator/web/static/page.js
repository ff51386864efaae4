// The page: its views, its address, the keyboard and the search.
const find = (id) => document.getElementById(id);
const layout = buildLayout(page);
const links = sortLinks(page.links, layout);
const picture = new Picture(find("picture"), layout, links);
const numberOf = new Map(page.devices.name.map((name, number) => [name, number]));

function readAddress() { return new URLSearchParams(location.hash.slice(1)); }

let gang = null; // whose hosts are marked in the picture
const VIEWS = ["fabric", "findings", "jobs", "changes"];
const KEPT = ["kind", "severity", "since", "age", "by", "size", "tier"];

function writeAddress() {
  const address = new URLSearchParams({ view: VIEWS.find((name) => !find(name).hidden) });
  if (picture.chosen >= 0) address.set("device", page.devices.name[picture.chosen]);
  if (gang) address.set("gang", gang.name);
  if (picture.span < layout.width) address.set("at", `${picture.left.toFixed(2)},${picture.span.toFixed(2)}`);
  if (picture.plane >= 0) address.set("plane", page.planes[picture.plane]);
  if (picture.rail >= 0) address.set("rail", page.links.ports[picture.rail]);
  for (const id of KEPT) if (find(id).value) address.set(id, find(id).value);
  history.replaceState(null, "", `#${address}`);
}

function drawPicture() {
  if (!find("changes").hidden) heldPicture?.draw();
  if (find("fabric").hidden) return;
  document.body.dataset.drawMs = picture.draw().toFixed(1);
}

function change(step) { step(); drawPicture(); writeAddress(); }

function describe(device) {
  const name = page.devices.name[device];
  const lines = [`${page.devices.kind[device]} ${name} ${page.devices.ids[device].slice(0, 4).join(" ")}`];
  const chain = [];
  for (let at = layout.domainOf[device]; at >= 0; at = page.domains[at].parent) chain.push(`${page.tiers[page.domains[at].tier - 1]} ${page.domains[at].name}`);
  if (chain.length) lines.push(`In ${chain.join(", ")}.`);
  const out = page.unplaced.find(([unplaced]) => unplaced === device);
  if (out) lines.push(`Unplaced: ${out[1]}`);
  for (const link of links.linksOf.get(device) ?? []) {
    const isA = page.links.a[link] === device;
    const port = (end) => page.links.ports[page.links[`${end}Port`][link]];
    const peer = page.devices.name[isA ? page.links.b[link] : page.links.a[link]];
    lines.push(`${port(isA ? "a" : "b")} to ${peer} port ${port(isA ? "b" : "a")}: ${page.states[page.links.state[link]]}`);
  }
  for (const finding of page.findings) if (finding.number === device) lines.push(`${finding.severity} ${finding.kind}: ${finding.message}`);
  return lines.join("\n");
}

function choose(device) {
  picture.chosen = device;
  const hint = gang ? describeGang(gang) : "Select a device to see its ports.";
  find("selected").textContent = device < 0 ? hint : describe(device);
}

function search(text) {
  const wanted = text.trim().toLowerCase();
  const id = wanted.replace(/^0x/, "");
  if (!wanted) return -1;
  const exact = page.devices.name.findIndex((name, at) => name.toLowerCase() === wanted || page.devices.ids[at].includes(id));
  return exact >= 0 ? exact : page.devices.name.findIndex((name) => name.toLowerCase().includes(wanted));
}

// Returns the findings that match; `order` sorts their rows.
function showFindings(limit = MAX_ROWS, order = (rows) => rows) {
  const value = (id) => find(id).value;
  const { found, rows } = matchFindings({ kind: value("kind"), severity: value("severity"), device: value("device"), since: value("since"), age: value("age"), rows: value("by") });
  showRows(find("rows"), order(rows), limit, value("by") !== "finding");
  const folded = rows.length < found.length ? `, in ${rows.length} rows, one for each cause` : "";
  const cut = rows.length > limit ? `, the first ${limit} are shown; the CSV and the work order have all` : "";
  find("count").textContent = `${found.length} of ${page.findings.length} findings${folded}${cut}`;
  return found;
}

function showView() {
  const address = readAddress();
  const view = VIEWS.find((name) => name === address.get("view")) ?? "fabric";
  for (const name of VIEWS) {
    find(name).hidden = name !== view;
    find(`to-${name}`).setAttribute("aria-current", name === view ? "page" : "false");
  }
  for (const id of KEPT) find(id).value = address.get(id) ?? find(id).dataset.first ?? "";
  picture.chooseLinks(page.planes.indexOf(address.get("plane")), links.rails.find((port) => page.links.ports[port] === address.get("rail")) ?? -1);
  find("plane").value = picture.plane;
  find("rail").value = picture.rail;
  gang = page.jobs?.gangs.find((row) => row.name === address.get("gang")) ?? null;
  picture.marked = gang ? gang.nodes.map((number) => page.hosts[number]) : [];
  choose(numberOf.get(address.get("device")) ?? -1);
  const [left, span] = (address.get("at") ?? "").split(",").map(Number);
  if (span > 0 && Number.isFinite(left)) Object.assign(picture, { left, span: Math.min(Math.max(span, 2), layout.width) }), picture.move(0);
  else if (picture.chosen >= 0) picture.center(picture.chosen);
  if (view === "findings") showFindings();
  else if (view === "jobs") showJobs();
  else if (view === "changes") showChanges();
  else { picture.resize(); drawPicture(); }
  document.title = `Toponaut: ${view}`;
}

function addOption(list, value, text) { list.add(new Option(text, value)); }

function fillLists() {
  page.tiers.forEach((name, index) => addOption(find("tier"), index + 1, name));
  find("tier").dataset.first = 1;
  if (page.jobs) find("size").dataset.first = 8 * page.jobs.perNode;
  addOption(find("plane"), -1, "all");
  page.planes.forEach((name, index) => addOption(find("plane"), index, name));
  addOption(find("rail"), -1, "all");
  for (const port of links.rails) addOption(find("rail"), port, `rail ${page.links.ports[port]}`);
  for (const id of ["kind", "severity"]) {
    addOption(find(id), "", "all");
    for (const value of new Set(page.findings.map((finding) => finding[id]))) addOption(find(id), value, value);
  }
  for (const name of Object.keys(STYLES)) {
    const item = document.createElement("li");
    const sample = document.createElement("canvas");
    [sample.width, sample.height] = [34, 14];
    drawLine(sample.getContext("2d"), name, { x: 0, y: 7 }, { x: 34, y: 7 });
    item.append(sample, ` ${name}`);
    find("legend").append(item);
  }
  const switches = page.devices.kind.filter((kind) => kind !== "host").length;
  find("status").textContent = `${layout.order.length} hosts, ${switches} switches, ${page.links.a.length} links, ${page.findings.length} findings`;
}

function listen() {
  const canvas = find("picture");
  const keys = {
    ArrowLeft: () => picture.move(-0.2), ArrowRight: () => picture.move(0.2),
    "+": () => picture.zoom(0.5), "=": () => picture.zoom(0.5), "-": () => picture.zoom(2), 0: () => picture.showAll(),
  };
  canvas.addEventListener("keydown", (event) => {
    if (!keys[event.key]) return;
    event.preventDefault();
    change(keys[event.key]);
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    change(() => picture.zoom(event.deltaY > 0 ? 1.25 : 0.8, picture.left + (event.offsetX / picture.width) * picture.span));
  }, { passive: false });
  let dragged = null;
  canvas.addEventListener("pointerdown", (event) => { dragged = { x: event.offsetX, moved: false }; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    if (!dragged || (!dragged.moved && Math.abs(event.offsetX - dragged.x) < 4)) return;
    change(() => picture.move((dragged.x - event.offsetX) / picture.width));
    dragged = { x: event.offsetX, moved: true };
  });
  canvas.addEventListener("pointerup", (event) => {
    if (dragged && !dragged.moved) change(() => choose(picture.findDevice(event.offsetX, event.offsetY)));
    dragged = null;
  });
  find("nearer").addEventListener("click", () => change(() => picture.zoom(0.5)));
  find("farther").addEventListener("click", () => change(() => picture.zoom(2)));
  find("whole").addEventListener("click", () => change(() => picture.showAll()));
  for (const id of ["plane", "rail"]) find(id).addEventListener("change", () => change(() => picture.chooseLinks(Number(find("plane").value), Number(find("rail").value))));
  for (const id of ["kind", "severity", "device", "since", "age", "by"]) find(id).addEventListener("input", () => { showFindings(); writeAddress(); });
  for (const id of ["size", "tier"]) find(id).addEventListener("input", () => { showJobs(); writeAddress(); });
  find("csv").addEventListener("click", () => saveFile("findings.csv", renderCsv(showFindings())));
  find("order").addEventListener("click", () => { showFindings(Infinity, (rows) => sortForWalk(rows, layout)); print(); });
  find("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const device = search(find("name").value);
    if (device < 0) { find("status").textContent = "Nothing found."; return; }
    location.hash = new URLSearchParams({ view: "fabric", device: page.devices.name[device] });
  });
  addEventListener("hashchange", showView);
  addEventListener("resize", () => { picture.resize(); drawPicture(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawPicture);
}

fillLists();
listen();
showView();
document.body.dataset.readyMs = performance.now().toFixed(0);
