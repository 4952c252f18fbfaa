// Numbers and times as people read them.

const NUMBER = new Intl.NumberFormat("en");

export const count = (number) => NUMBER.format(number ?? 0);
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
export const trail = (path) => (path ?? []).join(" › ");

/** A number of clicks that may be a small one. */
export const amount = (value) => (value > 0 && value < 0.05 ? "< 0.1" : value < 100 ? String(Number(value.toFixed(1))) : count(Math.round(value)));

export const chance = (value) => (value ?? 0).toFixed(2);

export function percent(part, whole) {
  if (!whole) return "–";
  const share = (100 * part) / whole;
  return `${share > 0 && share < 10 ? share.toFixed(1) : Math.round(share)} %`;
}

export function ago(unixSeconds) {
  const seconds = Date.now() / 1000 - unixSeconds;
  if (seconds < 90) return `${Math.max(0, Math.round(seconds))} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  return seconds < 129600 ? `${Math.round(seconds / 3600)} h ago` : `${Math.round(seconds / 86400)} days ago`;
}
