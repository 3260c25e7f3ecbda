// Draws every plot from the JSON that follows its box, and opens all details for print.
for (const box of document.querySelectorAll(".plot")) {
  const spec = JSON.parse(box.nextElementSibling.textContent);
  vegaEmbed(box, spec, { mode: "vega-lite", renderer: "svg", actions: false, ast: true }).catch((error) => {
    box.textContent = "This plot could not be drawn: " + error;
  });
}
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
