// The list of results: only rows whose path or command holds every word of the filter.
"use strict";
const filter = document.getElementById("filter");
const rows = [...document.querySelectorAll("#results tr")];
const count = document.getElementById("count");

function apply() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const fits = words.every((word) => row.dataset.text.includes(word));
    row.hidden = !fits;
    // What is not seen is not chosen.
    if (!fits) row.querySelector("input").checked = false;
    shown += fits;
  }
  count.textContent = `${shown} of ${rows.length}`;
}

filter.addEventListener("input", apply);
// Return in the filter chooses nothing.
filter.addEventListener("keydown", (event) => {
  if (event.key === "Enter") event.preventDefault();
});
apply();
