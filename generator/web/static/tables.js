// Tables of Tabulator: sortable, with a head that stays, and every cell a text or an element.
const isNarrow = () => innerWidth < 700;
const asText = (cell) => document.createTextNode(cell.getValue() ?? "");
const asLink = (address) => (cell) => link(cell.getValue(), address(cell.getData()));

// On a narrow screen, the columns that have no room stand below their row.
function collapse(cells) {
  return make("dl", null, cells.filter(({ value }) => value !== "" && value !== undefined && value !== null).map(({ title, value }) => [make("dt", null, title), make("dd", null, value instanceof Node ? value : String(value))]));
}

// Makes a table in an element. A column is `{title, field, width, grow, format, isNumber, priority}`;
// one with a higher priority is the first that moves below its row, and a fixed one never grows.
function makeTable(element, columns, rows, { height, onRow, none = "nothing to show", sort, label } = {}) {
  const toggle = { formatter: "responsiveCollapse", width: 34, minWidth: 34, hozAlign: "center", resizable: false, headerSort: false, responsive: 0, title: "" };
  const table = new Tabulator(element, {
    data: rows,
    height,
    layout: "fitColumns",
    responsiveLayout: "collapse",
    responsiveLayoutCollapseStartOpen: false,
    responsiveLayoutCollapseFormatter: collapse,
    placeholder: make("span", null, none),
    initialSort: sort,
    headerSortElement: "<i></i>",
    columns: [...(isNarrow() ? [toggle] : []), ...columns.map(({ title, field, width, grow, format = asText, isNumber, priority = 1, isWrapped, isFixed }) => ({
      title, field, formatter: format, responsive: priority, headerHozAlign: isNumber && !isWrapped ? "right" : "left",
      hozAlign: isNumber && !isWrapped ? "right" : "left", minWidth: Math.max(width ?? 80, 34 + 8 * title.length), ...(grow ? { widthGrow: grow } : {}), ...(isFixed ? { width } : {}), variableHeight: isWrapped,
      sorter: isNumber ? "number" : (one, other) => bySense(String(one ?? ""), String(other ?? "")), cssClass: isWrapped ? "wrapped" : "",
    }))],
  });
  // The part that scrolls takes the focus, and a grid may contain only rows and groups of rows.
  table.on("tableBuilt", () => {
    element.querySelector(".tabulator-tableholder").setAttribute("role", "rowgroup");
    element.querySelector(".tabulator-table").setAttribute("role", "presentation");
  });
  if (label) element.setAttribute("aria-label", label);
  if (onRow) table.on("rowClick", (_, row) => onRow(row.getData(), row));
  return table;
}
