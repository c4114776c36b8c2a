// The mean over the rows: one vector for every order of the words.
import { drawOrders } from "./all_orders.js";
import { byId, el, fill } from "./dom.js";
import { heatmap, strip } from "./heatmap.js";
import { runBoth, state } from "./state.js";
import { comparison, unchangedNote } from "./verdict.js";

export function meanStep() {
  return () => {
    const { first, second, means } = runBoth();
    fill(byId("mean-first"), column("first", state.words.map((_, i) => i), first, means[0]));
    fill(byId("mean-second"), column("second", state.order, second, means[1]));
    fill(byId("mean-result"), unchangedNote() ?? comparison([means[0]], [means[1]], ["mean", "means"]));
    drawOrders();
  };
}

const column = (name, order, rows, mean) => el("div", { class: "card" },
  heatmap(`outputs, ${name} sentence`, rows, { rows: order, id: `mean-rows-${name}` }),
  strip(mean, { id: `mean-${name}-strip`, name: "mean", label: `mean of the ${name} sentence` }));
