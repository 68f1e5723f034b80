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
      figure.layout.margin = { l: 4, r: 4, t: 8, b: 8 };
    }
    window.Plotly.newPlot(node, figure.data, figure.layout, { responsive: true, displayModeBar: false });
  }

  unpack(packed.textContent.trim()).then(function (source) {
    var script = document.createElement("script");
    script.textContent = source;
    document.head.appendChild(script);
    plots.forEach(draw);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () {
      plots.forEach(function (node) { window.Plotly.relayout(node, { "font.color": ink() }); });
    });
  });
}());
