(function () {
  "use strict";

  function unpack(text) {
    var raw = atob(text), bytes = new Uint8Array(raw.length);
    for (var i = 0; i < raw.length; i += 1) { bytes[i] = raw.charCodeAt(i); }
    var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  document.addEventListener("click", function (event) {
    var link = event.target.closest("a.download");
    if (!link) { return; }
    event.preventDefault();
    unpack(document.getElementById(link.dataset.csv).textContent.trim()).then(function (text) {
      var made = document.createElement("a");
      made.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
      made.download = link.dataset.name;
      made.click();
      URL.revokeObjectURL(made.href);
    });
  });

  // Another page of the same run lies at <name>/<run>/<name>, as this one does.
  var place = decodeURIComponent(location.pathname).split("/");
  Array.prototype.slice.call(document.querySelectorAll("a.beside")).forEach(function (link) {
    var own = place[place.length - 1];
    if (place.length > 3 && place[place.length - 3] === own) {
      link.href = "../../" + link.dataset.file + "/" + encodeURIComponent(place[place.length - 2]) + "/" + link.dataset.file;
    }
  });

  var plots = Array.prototype.slice.call(document.querySelectorAll(".plot"));
  var packed = document.getElementById("plotly-gzip");
  if (!plots.length || !packed) { return; }

  function ink() { return getComputedStyle(document.body).color; }

  // Names of lines on narrow pages: short lines, all after the first comma smaller.
  function folded(name) {
    var lines = [];
    name.split("<br>").forEach(function (part, place) {
      var small = place > 0 || part.indexOf("<sup>") >= 0, line = "";
      part.replace(/<[^>]*>/g, "").split(" ").forEach(function (word) {
        if (line && (line + " " + word).length > (small ? 22 : 19)) { lines.push([line, small]); line = ""; }
        line = line ? line + " " + word : word;
      });
      lines.push([line, small]);
    });
    return lines.map(function (one) { return one[1] ? '<span style="font-size:9px">' + one[0] + "</span>" : one[0]; });
  }

  function gridsOf(figure) { return figure.data.filter(function (trace) { return trace.type === "heatmap"; }); }

  // Where the columns' names do not fit side by side they stand once, below the last grid.
  function namedOnce(figure) {
    var grids = gridsOf(figure), layout = figure.layout;
    if (grids.length < 2 || grids[0].x.length < 4) { return; }
    grids.forEach(function (grid, place) {
      var below = layout["xaxis" + (place ? place + 1 : "")] || {};
      if (place < grids.length - 1) { below.showticklabels = false; } else { below.tickangle = -60; }
    });
    layout.margin = Object.assign({}, layout.margin, { b: ((layout.margin || {}).b || 0) + 80 });
    layout.height += 80;
  }

  function narrowed(figure) {
    var layout = figure.layout, axis = layout.yaxis || {}, grids = gridsOf(figure);
    layout.font.size = 11;
    layout.margin = Object.assign({}, layout.margin, { l: 4, r: 4, b: Math.max(8, (layout.margin || {}).b || 0) });
    if (grids.length) {
      (layout.annotations || []).forEach(function (title) {
        if (title.xref !== "paper") { return; }
        Object.assign(title, { text: title.text.replace("; ", "<br>"), x: 1, xanchor: "right", align: "right" });
        title.font = { size: 10 };
      });
      // Too many columns for a share and its n: the share alone.
      grids.forEach(function (grid) {
        if (grid.x.length < 4 || !grid.text) { return; }
        grid.text = grid.text.map(function (row) { return row.map(function (cell) { return String(cell).split(", n")[0]; }); });
        grid.textfont = Object.assign({}, grid.textfont, { size: 9 });
      });
      return;
    }
    figure.data.forEach(function (trace) {
      var at = (trace.name || "").length > 44 ? trace.name.lastIndexOf(" ", 44) : -1;
      if (at < 0) { return; }
      trace.name = trace.name.slice(0, at) + "<br>" + trace.name.slice(at + 1);
      layout.height += 14;
    });
    var values = axis.tickvals, names = axis.ticktext;
    if (!names && axis.type === "category") {
      values = names = figure.data.reduce(function (all, trace) { return all.concat(trace.y || []); }, []).filter(
        function (one, place, all) { return all.indexOf(one) === place; });
    }
    if (!names || !names.length) { return; }
    var most = 1;
    axis.ticktext = names.map(function (name) {
      var lines = folded(name);
      most = Math.max(most, lines.length);
      return lines.join("<br>");
    });
    axis.tickvals = values;
    axis.tickmode = "array";
    layout.height += Math.max(0, 13 * most + 10 - (layout.height - 90) / names.length) * names.length;
  }

  function draw(node) {
    var figure = JSON.parse(node.dataset.figure);
    var narrow = node.clientWidth < 560;
    figure.layout.font.color = ink();
    figure.layout.autosize = true;
    if (node.clientWidth < 900) { namedOnce(figure); }
    if (narrow) { narrowed(figure); }
    node.style.minHeight = figure.layout.height + "px";
    window.Plotly.newPlot(node, figure.data, figure.layout, { responsive: true, displayModeBar: false });
    node.dataset.drawn = "yes";
  }

  function colour(text) {
    plots.forEach(function (node) {
      if (node.dataset.drawn) { window.Plotly.relayout(node, { "font.color": text }); }
    });
  }

  // One figure a turn, so that the page can be read and scrolled while the lower ones are drawn. A figure in
  // a folded part has no width yet: it waits until that is unfolded.
  function next() {
    var node = plots.find(function (one) { return !one.dataset.drawn && one.clientWidth > 0; });
    if (!node) { return; }
    draw(node);
    setTimeout(next, 0);
  }

  unpack(packed.textContent.trim()).then(function (source) {
    var script = document.createElement("script");
    script.textContent = source;
    document.head.appendChild(script);
    next();
    document.addEventListener("toggle", next, true);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () { colour(ink()); });
    window.addEventListener("beforeprint", function () {
      plots.forEach(function (node) { if (!node.dataset.drawn && node.clientWidth > 0) { draw(node); } });
      colour("#000");
    });
    window.addEventListener("afterprint", function () { colour(ink()); });
  });
}());
