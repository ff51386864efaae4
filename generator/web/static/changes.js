// The changes: the plan that is held as before and after, and what moved when.
function showTime(seconds) { return seconds ? new Date(seconds * 1000).toISOString().replace(".000Z", "Z") : ""; }

let heldPicture = null; // is drawn again when the window or the colors change

function addChangeTable(parent, step) {
  if (!step.changes.length) return;
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  for (const text of ["What", "Name", "Before", "After"]) addText(head, "th", text).scope = "col";
  const body = table.createTBody();
  for (const change of step.changes) {
    const row = body.insertRow();
    for (const text of change) addCell(row, text);
  }
  parent.append(table);
  const more = step.numChanges - step.changes.length;
  if (more > 0) addText(parent, "p", `and ${more} more`);
}

function showHeld(parent, held) {
  parent.replaceChildren();
  heldPicture = null;
  if (!held) { addText(parent, "p", "No plan is held."); return; }
  addText(parent, "p", `The plan ${held.plan} is held since ${held.since}: ${held.movedNodes} nodes would leave a domain; ${held.creates} HyperNodes would be created, ${held.updates} changed and ${held.deletes} deleted.`);
  addText(parent, "p", "This command approves it:");
  addText(parent, "pre", held.command).tabIndex = 0;
  if (held.drawing.before.length + held.drawing.after.length) {
    const canvas = document.createElement("canvas");
    canvas.id = "held-picture";
    parent.append(canvas);
    const { numOthers } = held.drawing;
    if (numOthers) addText(parent, "p", `${numOthers} more domains that the plan touches are not drawn.`);
    heldPicture = new HeldPicture(canvas, held.drawing);
    heldPicture.draw();
  }
  addChangeTable(parent, held);
}

function showSteps(parent, changes) {
  parent.replaceChildren();
  if (!changes?.isKnown) { addText(parent, "p", "The history is unknown: the page was made without one."); return; }
  if (!changes.steps.length) addText(parent, "p", "The history is empty.");
  for (const step of changes.steps) {
    const what = step.isFirst ? "the oldest generation that is shown" : `${step.numChanges} changes`;
    const details = document.createElement("details");
    addText(details, "summary", `Generation ${step.generation}, ${showTime(step.atS)}, ${step.nodes} nodes: ${what}`);
    addChangeTable(details, step);
    parent.append(details);
  }
}

function showChanges() {
  showHeld(document.getElementById("held"), page.changes?.held);
  showSteps(document.getElementById("steps"), page.changes);
}
