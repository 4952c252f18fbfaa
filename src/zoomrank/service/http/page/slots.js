// Clicks by slot.

import { meter, quiet, table } from "./dom.js";
import { count, percent } from "./format.js";

export const slotHint = () => quiet("Of the visitors who clicked nothing above a slot, the share who clicked there.");

export function slotTable(clicks, examined) {
  return table(["slot", "clicks", "click rate"], clicks.map((number, slot) => [String(slot + 1), count(number),
    meter(examined[slot] > 0 ? number / examined[slot] : 0, percent(number, examined[slot]))]), { class: "slots" });
}
