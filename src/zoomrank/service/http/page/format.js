// Numbers and times as people read them.

const NUMBER = new Intl.NumberFormat("en");

export const count = (number) => NUMBER.format(number ?? 0);
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
export const trail = (path) => (path ?? []).join(" › ");

/** A number of clicks, possibly below 1. */
export const amount = (value) => (value > 0 && value < 0.05 ? "< 0.1" : value < 100 ? String(Number(value.toFixed(1))) : count(Math.round(value)));

/** A share from 0 to 1; the service has the same rule in its sentences. */
export function chance(share) {
  if (share > 0 && share < 0.0005) return "< 0.1 %";
  if (share >= 0.995 && share < 1) return "> 99 %";
  return `${share > 0 && share < 0.0995 ? (100 * share).toFixed(1) : Math.round(100 * (share ?? 0))} %`;
}

export const percent = (part, whole) => (whole ? chance(part / whole) : "–");

export const ago = (unixSeconds) => `${lasting(Date.now() / 1000 - unixSeconds)} ago`;

export function lasting(seconds) {
  if (seconds < 90) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 129600 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
}

export function bytes(number) {
  const power = Math.min(4, Math.max(0, Math.floor(Math.log2(Math.max(1, number)) / 10)));
  return `${amount(number / 1024 ** power)} ${["bytes", "KB", "MB", "GB", "TB"][power]}`;
}
