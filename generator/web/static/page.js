// The page: its views, its address, the search, and how it stays up to date.
const VIEWS = {
  fabric: (address) => {
    const isPlace = address.has("domain") || address.has("device");
    byId("overview").hidden = isPlace;
    byId("place").hidden = !isPlace;
    if (isPlace) showPlace(address);
    else showOverview(address);
  },
  findings: showFindings,
  jobs: showJobs,
  changes: showChanges,
};

const MAX_TABLE_FRAMES = 30;

const readAddress = () => new URLSearchParams(location.hash.slice(1));

// Changes parts of the address; null removes one. A quiet change draws nothing anew.
function changeAddress(parts, { isQuiet } = {}) {
  const address = readAddress();
  for (const [name, value] of Object.entries(parts)) {
    if (value === null) address.delete(name);
    else address.set(name, value);
  }
  history.replaceState(null, "", `#${address}`);
  if (!isQuiet) showView();
}

function showView() {
  const address = readAddress();
  const plane = address.get("plane");
  if (!fabric || fabric.plane !== plane) fabric = buildFabric(plane);
  const view = VIEWS[address.get("view")] ? address.get("view") : "fabric";
  showTip("");
  for (const name of Object.keys(VIEWS)) {
    byId(name).hidden = name !== view;
    byId(`to-${name}`).setAttribute("aria-current", name === view ? "page" : "false");
  }
  // A file has neither jobs nor changes.
  for (const [name, part] of [["jobs", page.jobs], ["changes", page.changes]]) byId(`to-${name}`).hidden = !part && !live.isLive && name !== view;
  const began = performance.now();
  keepFocus(() => VIEWS[view](address));
  document.body.dataset.viewMs = (performance.now() - began).toFixed(1);
  document.title = `Toponaut: ${view}`;
}

// A view is made anew when something in it is chosen, and when the fabric changes; what had the focus
// has it again. A table is complete some frames later.
function keepFocus(step) {
  const { id, dataset, parentElement } = document.activeElement ?? {};
  const group = parentElement?.getAttribute?.("aria-label");
  const href = document.activeElement?.getAttribute?.("href");
  const room = document.activeElement?.closest?.("[id]")?.id;
  const find = () => {
    if (id) return byId(id);
    if (dataset?.value !== undefined && group) return document.querySelector(`[aria-label="${CSS.escape(group)}"] [data-value="${CSS.escape(dataset.value)}"]`);
    return href && room ? document.querySelector(`#${CSS.escape(room)} a[href="${CSS.escape(href)}"]`) : null;
  };
  const focusAgain = (frames) => {
    if (document.activeElement !== document.body) return;
    const again = find();
    if (again) again.focus();
    else if (href && frames) requestAnimationFrame(() => focusAgain(frames - 1));
  };
  step();
  focusAgain(MAX_TABLE_FRAMES);
}

function showStatus() {
  const switches = fabric.isSwitch.filter(Boolean).length;
  const what = `${showCount(fabric.seats.length, "host")}, ${showCount(switches, "switch")}, ${showCount(page.links.a.length, "link")}`;
  if (!live.isLive) { byId("status").textContent = `${what}. A picture of one moment.`; return; }
  const age = showAge((Date.now() - live.checkedAt) / 1000);
  byId("status").classList.toggle("late", Boolean(live.problem));
  byId("status").textContent = live.problem ? `${what}. Checked ${age} ago: ${live.problem}` : `${what}. Live, checked ${age} ago`;
}

function search(text) {
  const domain = findDomain(text);
  const device = domain < 0 ? findDevice(text) : -1;
  if (domain < 0 && device < 0) { byId("status").textContent = "Nothing found."; return; }
  location.hash = new URLSearchParams(domain >= 0 ? { view: "fabric", domain: page.domains[domain].name } : placeOf(device));
}

// The names that begin like the text: a browser cannot list 10,000 of them.
function suggest(text) {
  const wanted = text.trim().toLowerCase();
  const names = wanted.length < 2 ? [] : [...page.domains.map(({ name }) => name), ...page.devices.name].filter((name) => name.toLowerCase().includes(wanted)).slice(0, 20);
  fill(byId("names"), names.map((value) => make("option", { value })));
}

function listen() {
  byId("search").addEventListener("submit", (event) => { event.preventDefault(); search(byId("name").value); });
  byId("name").addEventListener("input", () => suggest(byId("name").value));
  addEventListener("hashchange", showView);
  addEventListener("keydown", (event) => { if (event.key === "Escape") showTip(""); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showView);
  matchMedia("(max-width: 700px)").addEventListener("change", showView);
  addEventListener("beforeprint", () => { if (!byId("findings").hidden) fillPrint(matchFindings(filtersOf(readAddress())).rows); });
  if (!live.isLive) return;
  setInterval(() => refresh(() => { fabric = null; showView(); }).then(showStatus), REFRESH_MS);
  setInterval(showStatus, 1000);
}

listen();
showView();
showStatus();
document.body.dataset.readyMs = performance.now().toFixed(0);
