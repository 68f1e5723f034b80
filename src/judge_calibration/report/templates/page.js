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

  function draw(node) {
    var figure = JSON.parse(node.dataset.figure);
    var narrow = node.clientWidth < 560;
    figure.layout.font.color = ink();
    figure.layout.autosize = true;
    if (narrow) {
      figure.layout.font.size = 11;
      figure.layout.margin = Object.assign({}, figure.layout.margin, { l: 4, r: 4, b: 8 });
    }
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
