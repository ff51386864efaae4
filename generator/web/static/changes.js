// The changes: the plan that is held as a flow and a table, and a time line of what moved when.
const CHANGE_COLUMNS = [
  { title: "What", field: "what", width: 90, priority: 0 }, { title: "Name", field: "name", width: 140, grow: 2, priority: 0 },
  { title: "Before", field: "before", width: 140, grow: 2, priority: 1 }, { title: "After", field: "after", width: 140, grow: 2, priority: 1 },
];

function fillChanges(element, step) {
  const rows = step.changes.map(([what, name, before, after]) => ({ what, name, before, after }));
  makeTable(element, CHANGE_COLUMNS, rows, { height: rows.length > 12 ? 360 : undefined, label: "What changes" });
}

const cutNote = (step) => (step.numChanges > step.changes.length ? make("p", { className: "soft" }, `${step.changes.length} of ${step.numChanges} changes shown`) : null);

// The nodes that go from a domain to another one, as bands from left to right.
function makeFlow(held) {
  const { before, after, flows } = held.drawing;
  const [left, right] = [(number) => (number < 0 ? "elsewhere " : `${before[number].name} `), (number) => (number < 0 ? " elsewhere" : ` ${after[number].name}`)];
  const counts = `${flows.map(([from, to, count]) => `${showCount(count, "node")} from ${left(from).trim()} to ${right(to).trim()}`).join("; ") || "no node moves"}`;
  const element = make("div", { id: "held-picture", className: "chart", role: "img", "aria-label": `The held plan: ${counts}.` });
  element.style.height = `${Math.max(160, 40 * Math.max(new Set(flows.map(([from]) => from)).size, new Set(flows.map(([, to]) => to)).size))}px`;
  const drawFlow = () => {
    const names = new Set(flows.flatMap(([from, to]) => [left(from), right(to)]));
    const side = Math.min(190, element.clientWidth * 0.36);
    chartIn(element).setOption({
      animation: false,
      series: [{
        type: "sankey", left: side, right: side, top: 10, bottom: 10, nodeGap: 16, draggable: false, emphasis: { focus: "adjacency" },
        data: [...names].map((name) => ({ name, itemStyle: { color: color(name.trim() === "elsewhere" ? "warning" : "accent") }, label: { position: name.endsWith(" ") ? "left" : "right" } })),
        links: flows.map(([from, to, value]) => ({ source: left(from), target: right(to), value })),
        label: { ...fonts(), width: side - 12, overflow: "truncate", formatter: ({ name, value }) => `${name.trim()} (${value})` },
        lineStyle: { color: "source", opacity: 0.35 },
      }],
    }, { notMerge: true });
  };
  return { element, draw: drawFlow };
}

function showHeld(held) {
  if (!held) return { element: make("div", { className: "card", id: "held" }, make("h2", null, "Held plan"), empty("No plan is held.")) };
  const flow = held.drawing.flows.length ? makeFlow(held) : null;
  const table = make("div");
  const { numOthers } = held.drawing;
  const element = make("div", { className: "card", id: "held" }, make("h2", null, "Held plan"),
    make("p", null, `The plan ${held.plan} is held since ${held.since}: ${held.movedNodes} nodes would leave a domain; ${held.creates} HyperNodes would be created, ${held.updates} changed and ${held.deletes} deleted.`),
    make("p", null, "This command approves it:"), command(held.command),
    flow?.element, numOthers ? make("p", { className: "soft" }, `${numOthers} more domains that the plan touches are not drawn.`) : null,
    table, cutNote(held));
  return { element, draw: () => { flow?.draw(); fillChanges(table, held); } };
}

// A bar for each generation: when it was written, and how many places changed.
function makeTimeline(steps, chosen) {
  const element = make("div", { id: "timeline", className: "chart", tabIndex: 0, role: "img", "aria-label": `${showCount(steps.length, "generation")}. Arrow keys choose one.` });
  const choose = (step) => changeAddress({ generation: String(step.generation) });
  const drawTimeline = () => {
    const chart = chartIn(element);
    const rows = [...steps].reverse();
    chart.setOption({
      animation: false,
      grid: { left: 44, right: 12, top: 12, bottom: 42 },
      xAxis: { type: "category", data: rows.map((step) => `${step.generation}\n${showTime(step.atS).slice(5, 16)}`), axisLabel: { ...fonts(), fontSize: 11, lineHeight: 15 }, axisLine: { lineStyle: { color: color("line") } } },
      yAxis: { type: "value", minInterval: 1, axisLabel: { ...fonts(), fontSize: 11 }, splitLine: { lineStyle: { color: color("line") } } },
      series: [{ type: "bar", barMaxWidth: 34, barMinHeight: 3, data: rows.map((step) => ({ value: step.isFirst ? 0 : step.numChanges, itemStyle: { color: color(step === chosen ? "accent" : "info"), borderRadius: [3, 3, 0, 0] } })) }],
    }, { notMerge: true });
    chart.getZr().on("click", ({ offsetX, offsetY }) => { const at = chart.convertFromPixel({ seriesIndex: 0 }, [offsetX, offsetY])?.[0]; if (rows[at]) choose(rows[at]); });
    tipOver(chart, (x, y) => { const step = rows[chart.convertFromPixel({ seriesIndex: 0 }, [x, y])?.[0]]; return step ? `generation ${step.generation}\n${showTime(step.atS)}\n${step.nodes} nodes, ${step.isFirst ? "the oldest that is shown" : showCount(step.numChanges, "change")}` : ""; });
  };
  element.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: 1, ArrowRight: -1 }[event.key];
    const next = steps[steps.indexOf(chosen) + step];
    if (!step || !next) return;
    event.preventDefault();
    choose(next);
    byId("timeline")?.focus();
  });
  return { element, draw: drawTimeline };
}

function showSteps(address) {
  const { changes } = page;
  const element = make("div", { className: "card", id: "steps" }, make("h2", null, "History"));
  if (!changes?.isKnown) { element.append(empty("The history is unknown: the page was made without one.")); return { element }; }
  if (!changes.steps.length) { element.append(empty("The history is empty.")); return { element }; }
  const chosen = changes.steps.find((step) => String(step.generation) === address.get("generation")) ?? changes.steps[0];
  const timeline = makeTimeline(changes.steps, chosen);
  const table = make("div");
  element.append(timeline.element,
    make("h3", null, `Generation ${chosen.generation}, ${showTime(chosen.atS)}, ${showCount(chosen.nodes, "node")}: ${chosen.isFirst ? "the oldest generation that is shown" : showCount(chosen.numChanges, "change")}`));
  if (chosen.changes.length) element.append(table);
  const note = cutNote(chosen);
  if (note) element.append(note);
  return { element, draw: () => { timeline.draw(); if (chosen.changes.length) fillChanges(table, chosen); } };
}

function showChanges(address) {
  const room = byId("changes");
  dropCharts(room);
  const parts = [showHeld(page.changes?.held), showSteps(address)];
  fill(room, parts.map(({ element }) => element));
  for (const { draw } of parts) draw?.();
}
