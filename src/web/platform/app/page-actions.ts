import { useEffect, useRef } from 'react';
import { pageActionTexts } from '../texts.tsx';
import type { StackRef } from './procedure-types.ts';

/** The actions of the current page, by their names in the command palette. */
const actions = new Map<string, () => void>();
/** The action to run once a page that offers it is shown. */
let wanted: { readonly name: string } | null = null;

/** Offers an action of a page to the command palette while the page is shown. `run`: null where the user may not. */
export function usePageAction(name: string, run: (() => void) | null): void {
  const latest = useRef(run);
  useEffect(() => {
    latest.current = run;
  });
  const isOffered = run !== null;
  useEffect(() => (isOffered ? offerAction(name, () => latest.current?.()) : undefined), [name, isOffered]);
}

/** Returns a function that ends the offer. */
export function offerAction(name: string, call: () => void): () => void {
  actions.set(name, call);
  if (wanted?.name === name) {
    wanted = null;
    call();
  }
  return () => void (actions.get(name) === call && actions.delete(name));
}

/** Offers to copy the name of the stack on view. Browsers permit it only on pages that were loaded over TLS, or from this computer. */
export function useCopyAction({ organization, project, stack }: StackRef): void {
  const copy = (): void => void navigator.clipboard.writeText(`${organization}/${project}/${stack}`).catch(() => {});
  usePageAction(pageActionTexts.copyStackName, window.isSecureContext ? copy : null);
}

/** Names of the actions of the current page. */
export function listPageActions(): readonly string[] {
  wanted = null;
  return [...actions.keys()];
}

/** Runs an action of the current page, if it still offers it. */
export function runPageAction(name: string): void {
  actions.get(name)?.();
}

/** Runs an action of the page that is gone to, once it offers it. Returns a function that gives it up. */
export function awaitPageAction(name: string): () => void {
  const asked = { name };
  wanted = asked;
  const run = actions.get(name);
  if (run) {
    wanted = null;
    run();
  }
  return () => {
    if (wanted === asked) wanted = null;
  };
}
