// Elements of the page and words for people. Foreign text reaches the page as text only.
const byId = (id) => document.getElementById(id);

// Makes an element: properties, then children, which are elements or texts.
function make(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name in element && name !== "list") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

const fill = (parent, ...children) => parent.replaceChildren(...children.flat().filter(Boolean));
const link = (text, address) => make("a", { href: `#${new URLSearchParams(address)}` }, text);
const badge = (severity) => make("span", { className: `badge ${severity}` }, severity);
const empty = (text) => make("p", { className: "empty" }, text);

// Says a text to readers of the screen, without moving the focus.
const announce = (text) => { byId("announcer").textContent = text; };

// Tiers may have any names; one that ends with a digit has no plural.
function showCount(count, name) {
  const number = count.toLocaleString("en");
  if (count === 1 || /\d$/.test(name)) return `${number} ${name}`;
  return `${number} ${name.endsWith("leaf") ? `${name.slice(0, -1)}ves` : name.endsWith("switch") ? `${name}es` : `${name}s`}`;
}

// A share as a percentage that says 100 % only where nothing is missing.
function showShare(part, whole) {
  if (!whole) return "–";
  const percent = (100 * part) / whole;
  return part === whole ? "100 %" : `${Math.min(percent, 99.99).toFixed(percent > 99.9 ? 2 : percent > 90 ? 1 : 0)} %`;
}

const showTime = (seconds) => (seconds ? new Date(seconds * 1000).toISOString().replace(".000Z", "Z").replace("T", " ") : "");

function showAge(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`;
}

const showRate = (gbps) => (gbps ? `${gbps.toLocaleString("en")} Gbit/s` : "");

// A list of names that says how many it leaves out.
function listSome(names, most) {
  const more = names.length - most;
  return names.slice(0, most).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

function copyButton(text) {
  const button = make("button", { type: "button", className: "quiet" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it and copy by hand";
    }
  });
  return button;
}

const command = (text) => make("div", { className: "command" }, make("pre", { tabIndex: 0 }, text), copyButton(text));

// A word for a shell, which takes nothing inside of single quotes for its own.
const quoteWord = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

function saveFile(name, text) {
  const file = make("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: name });
  file.click();
  URL.revokeObjectURL(file.href);
}

// A spreadsheet runs a cell that starts with one of these characters as a formula.
function quoteCell(text) {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}

const renderCsv = (rows) => rows.map((row) => row.map((cell) => quoteCell(String(cell ?? ""))).join(",")).join("\r\n");

// Buttons of which one is pressed; calls `choose` with its value.
function makeSwitch(label, choices, chosen, choose) {
  const group = make("div", { className: "switch", role: "group", "aria-label": label });
  for (const [value, text] of choices) {
    const button = make("button", { type: "button", "aria-pressed": String(value === chosen) }, text);
    button.dataset.value = value;
    button.addEventListener("click", () => choose(value));
    group.append(button);
  }
  return group;
}
