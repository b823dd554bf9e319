import { useEffect, useRef } from 'react';
import { pageActionTexts } from '../texts.tsx';
import type { StackRef } from './procedure-types.ts';

/** The actions of the current page, by their names in the command palette, and the action to run once a page offers it. */
export const pageActions: { readonly offered: Map<string, () => void>; wanted: { readonly name: string } | null } = {
  offered: new Map(),
  wanted: null,
};

/** Offers an action of a page to the command palette while the page is shown. `run`: null if the user may not run it. */
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
  const { offered, wanted } = pageActions;
  offered.set(name, call);
  if (wanted?.name === name) {
    pageActions.wanted = null;
    call();
  }
  return () => void (offered.get(name) === call && offered.delete(name));
}

/** Browsers permit copying only on pages that were loaded over TLS, or from this computer. */
export function useCopyAction({ organization, project, stack }: StackRef): void {
  const copy = (): void => void navigator.clipboard.writeText(`${organization}/${project}/${stack}`).catch(() => {});
  usePageAction(pageActionTexts.copyStackName, window.isSecureContext ? copy : null);
}
