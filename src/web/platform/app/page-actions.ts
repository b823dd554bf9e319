import { useEffect, useRef } from 'react';

/** What may be done on the page that is shown, by the name that the command palette has for it. */
const actions = new Map<string, () => void>();
/** What is to be done once a page that can do it is shown. */
let wanted: string | null = null;

/** Offers an action of a page to the command palette while the page is shown. `run`: null where the user may not. */
export function usePageAction(name: string, run: (() => void) | null): void {
  const latest = useRef(run);
  useEffect(() => {
    latest.current = run;
  });
  const isOffered = run !== null;
  useEffect(() => {
    if (!isOffered) return undefined;
    const call = (): void => latest.current?.();
    actions.set(name, call);
    if (wanted === name) {
      wanted = null;
      call();
    }
    return () => void (actions.get(name) === call && actions.delete(name));
  }, [name, isOffered]);
}

/** Names of the actions of the page that is shown. */
export function listPageActions(): readonly string[] {
  wanted = null;
  return [...actions.keys()];
}

/** Runs an action of the page that is shown, or of the next one that offers it. */
export function runPageAction(name: string): void {
  const run = actions.get(name);
  if (run) run();
  else wanted = name;
}
