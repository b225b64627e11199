"use strict";
// Asks the server how the run stands; loads the page again when the report has changed.
const SECONDS = 5;
const status = document.querySelector(".live");

async function update() {
  try {
    const answer = await fetch("status", { cache: "no-store" });
    const now = await answer.json();
    status.textContent = now.text;
    if (now.version !== status.dataset.version) {
      location.reload();
      return;
    }
  } catch {
    status.textContent = "The server has been stopped: this page is no longer updated.";
    return;
  }
  setTimeout(update, SECONDS * 1000);
}

setTimeout(update, SECONDS * 1000);
