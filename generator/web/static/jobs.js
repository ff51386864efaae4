// The jobs: what a gang of some size gets, what is free in each domain, and where gangs run.
const MAX_NODES_SHOWN = 24;

function addText(parent, tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  parent.append(element);
  return element;
}

function nodeName(number) { return page.devices.name[page.hosts[number]]; }

function listNodes(numbers) {
  const names = numbers.slice(0, MAX_NODES_SHOWN).map(nodeName);
  const more = numbers.length - names.length;
  return names.join(", ") + (more > 0 ? ` and ${more} more` : "");
}

// Tiers may have any names; one that ends with a digit has no plural.
function showCount(count, name) {
  if (count === 1 || /\d$/.test(name)) return `${count} ${name}`;
  return `${count} ${name.endsWith("leaf") ? `${name.slice(0, -1)}ves` : `${name}s`}`;
}

function describeSpread(row) {
  const parts = Object.entries(row.spread).filter(([, count]) => count).map(([tier, count]) => showCount(count, tier));
  if (row.numOutside) parts.push(`${row.numOutside} outside of the tree`);
  return parts.join(", ");
}

// The free quantity of a domain, its free whole nodes, and how many gangs of whole nodes fit in it.
function countFree(jobs, domain, quantity) {
  let free = 0;
  let whole = 0;
  for (let at = domain.start; at < domain.stop; at++) {
    free += jobs.free[at];
    if (jobs.perNode && jobs.free[at] >= jobs.perNode) whole += 1;
  }
  const needed = Math.max(1, Math.ceil(quantity / Math.max(jobs.perNode, 1)));
  return { free, whole, slots: Math.floor(whole / needed) };
}

function chooseWanted(jobs, quantity) {
  return jobs.wanted.find((row) => row.quantity >= quantity) ?? jobs.wanted.at(-1);
}

function showWanted(parent, jobs, quantity) {
  parent.replaceChildren();
  const row = chooseWanted(jobs, quantity);
  if (!row) { addText(parent, "p", "The capacity of the nodes is unknown."); return; }
  const size = `${row.quantity} ${jobs.resource} (${row.count} whole nodes)`;
  if (quantity !== row.quantity) addText(parent, "p", `The nearest size that was tried is ${size}.`);
  if (row.isFeasible) {
    const proof = row.isProved ? "No better placement exists" : "A better placement may exist";
    addText(parent, "p", `A gang of ${size} gets nodes within one ${row.tier}: ${describeSpread(row)}. ${proof}.`);
    addText(parent, "p", `Nodes: ${listNodes(row.nodes)}`);
  } else addText(parent, "p", `A gang of ${size} does not fit: ${row.reason}.`);
  if (!row.verdicts.length) return;
  addText(parent, "p", "Why this place, and not another:");
  const list = addText(parent, "ul", "");
  for (const [name, verdict, needs] of row.verdicts) addText(list, "li", `${verdict}: ${needs.startsWith(`${name}:`) ? "" : `${name}: `}${needs}`);
}

function showCapacity(jobs, tier, quantity) {
  const body = document.getElementById("capacity");
  body.replaceChildren();
  let total = 0;
  for (const domain of page.domains.filter((row) => row.tier === tier)) {
    const { free, whole, slots } = countFree(jobs, domain, quantity);
    total += slots;
    const row = body.insertRow();
    for (const text of [domain.name, free, whole, slots]) addCell(row, String(text));
  }
  const name = page.tiers[tier - 1] ?? "domain";
  document.getElementById("slots").textContent = `${total} slots of ${quantity} ${jobs.resource} are left, each in one ${name} and on whole nodes.`;
}

function showGangs(jobs) {
  const body = document.getElementById("gangs");
  body.replaceChildren();
  document.getElementById("gang-count").textContent = jobs.isKnown ? `${jobs.numGangs} gangs` : "It is unknown which gangs run.";
  for (const gang of jobs.gangs.slice(0, MAX_ROWS)) {
    const row = body.insertRow();
    const name = gang.nodes.length ? addText(addCell(row, ""), "a", gang.name) : addCell(row, gang.name);
    if (gang.nodes.length) name.href = `#view=fabric&gang=${encodeURIComponent(gang.name)}`;
    addCell(row, String(gang.pods));
    addCell(row, gang.nodes.length ? gang.tier : "no node of the tree");
    addCell(row, describeSpread(gang));
    const cell = addCell(row, "");
    gang.nodes.slice(0, MAX_NODES_SHOWN).forEach((number, index) => {
      if (index) cell.append(", ");
      const link = addText(cell, "a", nodeName(number));
      link.href = `#view=fabric&device=${encodeURIComponent(nodeName(number))}`;
    });
    if (gang.nodes.length > MAX_NODES_SHOWN) cell.append(` and ${gang.nodes.length - MAX_NODES_SHOWN} more`);
  }
}

function describeGang(gang) {
  return `Gang ${gang.name}: ${gang.pods} pods within one ${gang.tier}, on ${describeSpread(gang)}.`;
}

function showJobs() {
  const jobs = page.jobs;
  if (!jobs) { document.getElementById("wanted").textContent = "The jobs are unknown."; return; }
  const quantity = Math.max(1, Number(document.getElementById("size").value) || jobs.perNode || 1);
  document.getElementById("resource").textContent = jobs.resource;
  showWanted(document.getElementById("wanted"), jobs, quantity);
  showCapacity(jobs, Number(document.getElementById("tier").value) || 1, quantity);
  showGangs(jobs);
}
