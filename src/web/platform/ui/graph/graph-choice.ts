import type { GraphBox, GraphChoice, GraphView } from './graph-data.ts';
import { listOfMore, membersShown } from './graph-view.ts';

/** The page may have requested another picture since. */
interface Shown {
  readonly choice: GraphChoice;
  readonly drawing: { readonly view: GraphView };
}

/** The choice after a box was expanded or collapsed. Choices since the last picture count, too. */
export function toggleBox(choice: GraphChoice, shown: Shown | null, box: GraphBox): GraphChoice {
  const isBehind = shown !== null && shown.choice !== choice;
  const isRevealed = isBehind && choice.isRevealed;
  const expanded = expandedOf(choice, shown);
  // The worker computes the rest.
  if (expanded === null) return { ...choice, added: [...choice.added, box.id], isRevealed };
  const others = expanded.filter((id) => id !== box.id);
  return { ...choice, expanded: box.isExpanded ? others : [...others, box.id], added: [], isRevealed };
}

/** The choice after the user selected the rest of a list. */
export function showMore(choice: GraphChoice, shown: Shown | null, box: GraphBox): GraphChoice {
  const list = listOfMore(box.id);
  const more = { ...choice.more, [list]: (choice.more[list] ?? 0) + membersShown };
  return { ...choice, more, expanded: choice.isNear ? choice.expanded : expandedOf(choice, shown) };
}

/** Null: as much as fits. A picture of a neighborhood does not show how much that is. */
function expandedOf(choice: GraphChoice, shown: Shown | null): readonly string[] | null {
  if (shown === null || shown.choice.isNear) return choice.expanded;
  if (shown.choice !== choice && choice.expanded !== null) return choice.expanded;
  return shown.drawing.view.boxes.flatMap(({ id, isExpanded }) => (isExpanded ? [id] : []));
}
