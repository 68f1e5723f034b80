(function () {
  "use strict";
  var nodes = Array.prototype.slice.call(document.querySelectorAll("details.item"));
  var loaded = null;

  function unpack(text) {
    var raw = atob(text), bytes = new Uint8Array(raw.length);
    for (var i = 0; i < raw.length; i += 1) { bytes[i] = raw.charCodeAt(i); }
    var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  function items() {
    loaded = loaded || unpack(document.getElementById("items-gzip").textContent.trim()).then(JSON.parse);
    return loaded;
  }

  // Every text goes in as text, never as markup: candidates, replies and names are not to be trusted.
  function add(parent, name, text) {
    var node = document.createElement(name);
    if (text !== undefined) { node.textContent = text; }
    parent.appendChild(node);
    return node;
  }

  function shown(text) { return text === "" ? "(nothing)" : text; }

  function folded(parent, title, text) {
    var box = add(parent, "details");
    add(box, "summary", title);
    add(box, "pre", shown(text));
  }

  function judgments(inside, all, none) {
    if (!all.length) { add(inside, "p", none).className = "note"; }
    all.forEach(function (one) {
      var said = one.outcome === "valid" ? "verdict " + one.verdict : "no verdict: " + one.outcome.replace(/_/g, " ");
      var extra = (one.confidence ? ", confidence " + one.confidence : "") + (one.parse_path ? ", read from " + one.parse_path + " form" : "") + (one.flags ? ", flags " + one.flags : "");
      add(inside, "h4", (one.order === "AB" ? "A shown first" : "B shown first") + ", repetition " + one.repetition + ": " + said + extra);
      if (!one.calls.length) { add(inside, "p", "Request and reply are not on record here: the verdict comes from a log.").className = "note"; }
      one.calls.forEach(function (call) {
        var step = one.calls.length > 1 ? " (" + call.step + ")" : "";
        folded(inside, "Raw reply" + step + (call.failure ? ", failed: " + call.failure : "") + (call.finish_reason ? ", finish reason " + call.finish_reason : ""), call.reply);
        if (call.reasoning) { folded(inside, "Reasoning" + step, call.reasoning); }
        folded(inside, "Raw request" + step, call.request);
      });
    });
  }

  function fill(node, item) {
    var inside = node.querySelector(".inside");
    var facts = ["source " + item.source];
    if (item.manipulation) { facts.push("changed: " + item.manipulation.replace(/_/g, " ") + (item.modified ? ", side " + item.modified : "")); }
    facts.push("reference: " + (item.reference ? item.reference + " (" + item.reference_kind + ")" : "none"));
    if (item.candidates[0] || item.candidates[1]) { facts.push("A by " + (item.candidates[0] || "unknown") + ", B by " + (item.candidates[1] || "unknown")); }
    if (item.people) { facts.push("people say " + item.people); }
    add(inside, "p", facts.join("; ") + ".").className = "note";
    add(inside, "h3", "Question");
    add(inside, "pre", item.question || "(the log came without it)");
    var sides = add(inside, "div");
    sides.className = "sides";
    ["a", "b"].forEach(function (side) {
      var box = add(sides, "div");
      add(box, "h3", "Answer " + side.toUpperCase());
      add(box, "pre", item["answer_" + side] || "(the log came without it)");
    });
    if (item.before) {
      add(inside, "h3", "Before");
      judgments(inside, item.before, "The earlier run has no such judgment.");
      add(inside, "h3", "Now");
    } else {
      add(inside, "h3", "Judgments");
    }
    judgments(inside, item.judgments, "There is none.");
    if (item.left_out) { add(inside, "p", item.left_out + " more judgments in the table answers.").className = "note"; }
  }

  nodes.forEach(function (node) {
    node.addEventListener("toggle", function () {
      if (!node.open || node.dataset.filled) { return; }
      node.dataset.filled = "yes";
      items().then(function (all) { fill(node, all[Number(node.dataset.item)]); });
    });
  });

  var boxes = Array.prototype.slice.call(document.querySelectorAll(".filters input[type=checkbox]"));
  var words = document.getElementById("containing");
  if (!words) { return; }

  function filter() {
    var wanted = boxes.filter(function (box) { return box.checked; }).map(function (box) { return box.value; });
    var text = words.value.trim().toLowerCase(), n = 0;
    nodes.forEach(function (node) {
      var has = node.dataset.reasons.split(" ").some(function (reason) { return wanted.indexOf(reason) >= 0; });
      var found = !text || node.querySelector("summary").textContent.toLowerCase().indexOf(text) >= 0;
      node.hidden = !(has && found);
      n += node.hidden ? 0 : 1;
    });
    document.getElementById("count").textContent = n + " of " + nodes.length + " shown.";
  }

  boxes.forEach(function (box) { box.addEventListener("change", filter); });
  words.addEventListener("input", filter);
}());
