import { offerAction, pageActions } from './platform/app/page-actions.ts';

/** Names of the actions of the current page. */
export function listPageActions(): readonly string[] {
  pageActions.wanted = null;
  return [...pageActions.offered.keys()];
}

/** Does nothing if the page no longer offers the action. */
export function runPageAction(name: string): void {
  pageActions.offered.get(name)?.();
}

/** Runs the action once the next page offers it. Returns a function that cancels this. */
export function awaitPageAction(name: string): () => void {
  const asked = { name };
  pageActions.wanted = asked;
  const call = pageActions.offered.get(name);
  if (call) offerAction(name, call);
  return () => {
    if (pageActions.wanted === asked) pageActions.wanted = null;
  };
}
