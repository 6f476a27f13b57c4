// Suggestions of nodes by id.
import {badge, idName} from "./names.js";
import {ask} from "./server.js";
import {percentText} from "./texts.js";

const mostSuggestions = 10;

export async function findNodes(text, signal) {
  const answer = await ask("nodes", {query: {search: text, limit: mostSuggestions}, signal});
  return answer.nodes.map((node) => ({
    value: node.id,
    content: [idName(node.id), " ", badge(node.predicted_class), ` ${percentText(node.probability, 0)}`],
  }));
}
