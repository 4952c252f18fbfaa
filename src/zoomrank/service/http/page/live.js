// Polling that stops with its page, pauses while the tab is hidden, and never overlaps.

import { clearProblem, showProblem } from "./messages.js";

const PAUSE = 2000;

export async function keepFresh(task, signal, pause = PAUSE) {
  while (!signal.aborted) {
    try {
      if (!document.hidden) {
        await task();
        if (!signal.aborted) clearProblem();
      }
    } catch (error) {
      if (signal.aborted) return;
      showProblem(error);
      if (error.wantsKey) return; // a new key opens the page again
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}
