// Confirmation dialog for actions that affect others or cannot be undone.

import { button, make } from "./dom.js";

let questions = 0;

/** Ask in a dialog; `agree` is called if the answer is yes. `name` is the test id. */
export function ask(page, name, { heading, words, no, yes }, agree) {
  const id = `question-${questions++}`;
  const dialog = make("dialog", { "aria-labelledby": id, test: `${name}-question`, onclose: () => dialog.remove() },
    make("h2", { id }, heading), make("p", {}, words),
    make("div", { class: "row" },
      button(no, () => dialog.close(), { autofocus: true, test: `${name}-cancel` }),
      button(yes, () => {
        dialog.close();
        agree();
      }, { class: "primary", test: `${name}-confirm` })));
  page.append(dialog);
  dialog.showModal();
}
