// Tastes of simulated visitors: one category each; documents farther away in the tree are liked less.

const LIKED = 0.9; // the chance of a click inside the category
const FADING = 0.3; // factor of the chance per level of distance
const STRANGER = 0.01; // the chance where only the root is shared

/** Levels from a category up to what it shares with a path; infinite where that is only the root. */
function distance(category, path) {
  let common = 0;
  while (common < category.length && category[common] === path[common]) common++;
  return common === 0 ? Infinity : category.length - common;
}

/** The taste a document is in or beside, as {index, levels}, or null. */
export function nearestTaste(tastes, path) {
  const near = tastes.map((taste, index) => ({ index, levels: path ? distance(taste.path, path) : Infinity })).filter(({ levels }) => levels <= 1);
  return near.sort((a, b) => a.levels - b.levels)[0] ?? null;
}

/** The number of a taste, drawn by weight. */
export function drawTaste(tastes) {
  let left = Math.random() * tastes.reduce((sum, taste) => sum + taste.weight, 0);
  return Math.max(0, tastes.findIndex(({ weight }) => (left -= weight) < 0));
}

/** The document that a visitor with this taste clicks: an id, or null. */
export function visit(taste, documents, pathOf) {
  const liked = documents.find((item) => {
    const levels = distance(taste.path, pathOf(item) ?? []);
    return Math.random() < (levels === Infinity ? STRANGER : LIKED * FADING ** levels);
  });
  return liked?.id ?? null;
}

/** Categories for tastes: deep, not too large, and in different branches where that is possible. */
export function chooseCategories(categories, number, total) {
  const worthFinding = categories.filter(({ documents }) => documents >= 2 && documents <= total / 6);
  const candidates = (worthFinding.length >= number ? worthFinding : categories).map((category) => ({ category, order: Math.random() - 2 * category.path.length }));
  const chosen = [];
  for (const least of [Infinity, 1]) { // far apart, or at least not inside another
    for (const { category } of candidates.sort((a, b) => a.order - b.order)) {
      const apart = chosen.every(({ path }) => distance(path, category.path) >= least && distance(category.path, path) >= least);
      if (apart && chosen.length < number) chosen.push(category);
    }
  }
  return chosen;
}
