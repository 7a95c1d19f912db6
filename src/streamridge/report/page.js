"use strict";
(() => {
  // A figure is drawn when it comes near the screen: a page of many sensors opens at once.
  // Buttons are named one by one: among the usual ones is one that sends the figure away.
  const buttons = ["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"];
  const config = { responsive: true, displaylogo: false, modeBarButtons: [buttons] };
  const touch = matchMedia("(pointer: coarse)").matches;
  const narrow = matchMedia("(max-width: 760px)").matches;

  // A phone has no room beside the data for wide margins, large names, or a second small chart.
  function fitPhone(layout) {
    layout.margin = { l: 44, r: 6, t: 30, b: 20 };
    layout.legend = { ...layout.legend, font: { size: 11 } };
    if (layout.xaxis) delete layout.xaxis.rangeslider;
    if (layout.yaxis?.ticktext) layout.yaxis = { ...layout.yaxis, title: "", tickfont: { size: 9 } };
  }

  function draw(plot) {
    if (plot.dataset.drawn) return;
    plot.dataset.drawn = "yes";
    const figure = JSON.parse(plot.nextElementSibling.textContent);
    // On a touch screen a finger on a figure scrolls the page.
    if (touch) figure.layout.dragmode = false;
    if (narrow) fitPhone(figure.layout);
    const displayModeBar = touch || narrow ? false : "hover";
    Plotly.newPlot(plot, figure.data, figure.layout, { ...config, displayModeBar });
  }

  const plots = document.querySelectorAll(".chart");
  const near = new IntersectionObserver(
    (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => draw(entry.target)),
    { rootMargin: "600px" },
  );
  plots.forEach((plot) => near.observe(plot));
  addEventListener("beforeprint", () => plots.forEach(draw));
})();
